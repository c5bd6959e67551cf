//! `params.libsonnet`, of the components and of an environment: read, and edited in place so that comments stay.

use std::ops::Range;

use serde_json::{Map, Value};

use super::lexer::{TokenKind, tokens};
use super::literal::{LiteralError, Object, object, overrides};
use super::objects::Params;

/// The file of an application without components.
pub(super) const EMPTY_COMPONENTS: &str = "\
{
  global: {
    // Parameters of all components.
  },
  components: {
    // Parameters of each component, by its name.
  },
}
";

/// The file of an environment that overrides nothing.
pub(super) const EMPTY_ENVIRONMENT: &str = "\
local params = std.extVar(\"__ksonnet/params\");
local globals = import \"globals.libsonnet\";
local envParams = params + {
  components +: {
    // Parameters that are different in this environment, by component.
  },
};

{
  components: {
    [name]: envParams.components[name] + globals
    for name in std.objectFields(envParams.components)
  },
}
";

/// Which of the two kinds of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Components,
    Environment,
}

impl Level {
    fn read(self, text: &str) -> Result<Object, LiteralError> {
        match self {
            Self::Components => object(text),
            Self::Environment => overrides(text),
        }
    }
}

/// The parameters of every component, with an environment's overrides when there are any.
pub(super) fn all(
    components: &str,
    environment: Option<&str>,
) -> Result<Map<String, Value>, (Level, LiteralError)> {
    let base = object(components).map_err(|error| (Level::Components, error))?;
    let mut merged = Map::new();
    base.put_over(&mut merged);
    if let Some(text) = environment {
        let over = overrides(text).map_err(|error| (Level::Environment, error))?;
        over.put_over(&mut merged);
    }
    let Some(Value::Object(components)) = merged.remove("components") else {
        return Ok(Map::new());
    };
    let Some(Value::Object(globals)) = merged.remove("global") else { return Ok(components) };
    let with_globals = |params: Value| match params {
        Value::Object(own) => {
            let mut params: Params = globals.clone();
            params.extend(own);
            params.into()
        }
        other => other,
    };
    Ok(components.into_iter().map(|(name, params)| (name, with_globals(params))).collect())
}

/// The text with a new component.
pub(super) fn with_component(
    text: &str,
    name: &str,
    values: &[(&str, Value)],
) -> Result<String, LiteralError> {
    let mut values: Vec<_> = values.iter().collect();
    values.sort_by_key(|(key, _)| *key);
    let lines: Vec<String> =
        values.iter().map(|(key, value)| format!("  {}: {value},\n", written_key(key))).collect();
    let field = format!("{}: {{\n{}}}", written_key(name), lines.concat());
    let file = Level::Components.read(text)?;
    Ok(match file.object("components") {
        Some(components) => inserted(text, components, &field),
        None => inserted(text, &file, &nested("components: {", &field)),
    })
}

/// The text without a component, in either file.
pub(super) fn without_component(
    text: &str,
    level: Level,
    name: &str,
) -> Result<String, LiteralError> {
    let file = level.read(text)?;
    let field = file.object("components").and_then(|components| components.field(name));
    Ok(field.map_or_else(|| text.to_owned(), |field| removed(text, &field.span)))
}

/// The text with one parameter set.
pub(super) fn with_param(
    text: &str,
    level: Level,
    component: &str,
    key: &str,
    value: &Value,
) -> Result<String, LiteralError> {
    let file = level.read(text)?;
    let adds = if level == Level::Environment { " +" } else { "" };
    let field = format!("{}: {value}", written_key(key));
    let component_field = nested(&format!("{}{adds}: {{", written_key(component)), &field);
    let Some(components) = file.object("components") else {
        return Ok(inserted(
            text,
            &file,
            &nested(&format!("components{adds}: {{"), &component_field),
        ));
    };
    let Some(params) = components.object(component) else {
        return Ok(inserted(text, components, &component_field));
    };
    Ok(match params.field(key) {
        Some(old) => replaced(text, old.value_span.clone(), &value.to_string()),
        None => inserted(text, params, &field),
    })
}

/// The text without a parameter; none when it is not there.
pub(super) fn without_param(
    text: &str,
    level: Level,
    component: &str,
    key: &str,
) -> Result<Option<String>, LiteralError> {
    let file = level.read(text)?;
    let params = file.object("components").and_then(|components| components.object(component));
    Ok(params.and_then(|params| params.field(key)).map(|field| removed(text, &field.span)))
}

/// A key as Jsonnet takes it.
fn written_key(key: &str) -> String {
    const RESERVED: [&str; 18] = [
        "assert",
        "else",
        "error",
        "false",
        "for",
        "function",
        "if",
        "import",
        "importstr",
        "in",
        "local",
        "null",
        "tailstrict",
        "then",
        "self",
        "super",
        "true",
        "importbin",
    ];
    let first = key.chars().next();
    let plain = first.is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
        && key.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        && !RESERVED.contains(&key);
    if plain { key.to_owned() } else { Value::from(key).to_string() }
}

fn nested(head: &str, field: &str) -> String {
    format!("{head}\n{},\n}}", indented(field, "  "))
}

fn indented(text: &str, indent: &str) -> String {
    text.lines().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n")
}

fn replaced(text: &str, range: Range<usize>, new: &str) -> String {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    format!("{before}{new}{after}")
}

/// The text with one more field at the end of an object.
fn inserted(text: &str, object: &Object, field: &str) -> String {
    let close = object.span.end.saturating_sub(1);
    let line_start = text.get(..close).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let line = text.get(line_start..close).unwrap_or_default();
    let indent: String = line.chars().take_while(|it| it.is_whitespace()).collect();
    let field = indented(field, &format!("{indent}  "));
    let with_field = if line.trim().is_empty() {
        replaced(text, line_start..line_start, &format!("{field},\n"))
    } else {
        replaced(text, close..close, &format!("\n{field},\n{indent}"))
    };
    // The field before may stand without a comma.
    match object.fields.last() {
        Some(last) if !comma_follows(text, last.span.end) => {
            replaced(&with_field, last.span.end..last.span.end, ",")
        }
        Some(_) | None => with_field,
    }
}

fn comma_follows(text: &str, at: usize) -> bool {
    next_sign(text, at).is_some_and(|(sign, _)| sign == ',')
}

/// The sign that comes next, past comments, and where it ends.
fn next_sign(text: &str, at: usize) -> Option<(char, usize)> {
    let rest = tokens(text.get(at..)?).ok()?;
    let first = rest.first()?;
    match first.kind {
        TokenKind::Sign(sign) => Some((sign, at + first.span.end)),
        TokenKind::Word(_) | TokenKind::Number(_) | TokenKind::Text(_) => None,
    }
}

/// The text without a field, its comma and, when nothing else stands there, its line.
fn removed(text: &str, field: &Range<usize>) -> String {
    let end = match next_sign(text, field.end) {
        Some((',', end)) => end,
        Some(_) | None => field.end,
    };
    let line_start = text.get(..field.start).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let alone = text.get(line_start..field.start).is_some_and(|it| it.trim().is_empty());
    let after = text.get(end..).unwrap_or_default();
    let line_end =
        after.find('\n').filter(|it| after.get(..*it).is_some_and(|it| it.trim().is_empty()));
    match line_end {
        Some(line_end) if alone => replaced(text, line_start..end + line_end + 1, ""),
        _ => replaced(text, field.start..end, ""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        all(text, None).unwrap_or_else(|error| panic!("{error:?}\n{text}")).into()
    }

    #[test]
    fn a_component_is_written_as_ksonnet_wrote_it() {
        let values = [("name", json!("ring-8")), ("gpus", json!(8))];
        let text = with_component(EMPTY_COMPONENTS, "ring-8", &values).unwrap();
        assert!(
            text.ends_with(
                "by its name.\n    \"ring-8\": {\n      gpus: 8,\n      name: \"ring-8\",\n    },\n  },\n}\n"
            ),
            "{text}"
        );
        assert_eq!(read(&text), json!({"ring-8": {"gpus": 8, "name": "ring-8"}}));
        assert_eq!(
            without_component(&text, Level::Components, "ring-8").unwrap(),
            EMPTY_COMPONENTS
        );
    }

    #[test]
    fn edits_keep_comments_and_layout() {
        let text = "{ components: { a: { n: 1 /* one */ }, // first\n  b: {} } }";
        let text = with_param(text, Level::Components, "a", "m", &json!("x")).unwrap();
        let text = with_param(&text, Level::Components, "a", "n", &json!(2)).unwrap();
        let text = with_component(&text, "c", &[("k", json!(null))]).unwrap();
        assert!(text.contains("/* one */") && text.contains("// first"), "{text}");
        assert_eq!(read(&text), json!({"a": {"n": 2, "m": "x"}, "b": {}, "c": {"k": null}}));
        let text = without_param(&text, Level::Components, "a", "n").unwrap().unwrap();
        assert_eq!(read(&text)["a"], json!({"m": "x"}));
        assert_eq!(without_param(&text, Level::Components, "a", "n").unwrap(), None);
    }

    #[test]
    fn a_file_without_components_gets_them() {
        assert_eq!(
            read(&with_component("{}", "a", &[("n", json!(1))]).unwrap()),
            json!({"a": {"n": 1}})
        );
        let text = with_param("{}", Level::Components, "a", "if", &json!(1)).unwrap();
        assert_eq!(read(&text), json!({"a": {"if": 1}}));
    }

    #[test]
    fn an_environment_overrides_and_globals_fill_in() {
        let components = "{global: {image: 'g', n: 0}, components: {a: {n: 1, m: 2}}}";
        let environment =
            with_param(EMPTY_ENVIRONMENT, Level::Environment, "a", "n", &json!(5)).unwrap();
        let merged = all(components, Some(&environment)).unwrap();
        assert_eq!(Value::from(merged), json!({"a": {"image": "g", "n": 5, "m": 2}}));
        let back = without_param(&environment, Level::Environment, "a", "n").unwrap().unwrap();
        assert_eq!(all(components, Some(&back)).unwrap()["a"]["n"], 1);
    }
}
