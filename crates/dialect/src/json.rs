//! JSON text into a tree. Comments are taken, because people's OpenPAI files have them, and told.

use jsonc_parser::ast::{ObjectPropName, Value as Json};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use unisono_job::Note;

use crate::build::{Builder, MAX_VALUES, too_many_values};
use crate::tree::{Node, Range, Value};
use crate::yaml::Read;
use crate::{Source, codes};

/// Whether the text is JSON (perhaps with comments before it): a YAML reader would misread it without an error.
pub(crate) fn is_json(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with('{')
        || start.starts_with('[')
        || start.starts_with("//")
        || start.starts_with("/*")
}

/// Reads the one document of a text.
pub(crate) fn read(source: &Source<'_>) -> Read {
    if may_hold_too_many_values(source.text()) {
        return Read { root: None, faults: vec![too_many_values()] };
    }
    let collect = CollectOptions { comments: CommentCollectionStrategy::Separate, tokens: false };
    match parse_to_ast(source.text(), &collect, &strict()) {
        Err(error) => Read { root: None, faults: vec![syntax_fault(source, &error)] },
        Ok(parsed) => {
            let mut builder = Builder::new(source, 0);
            let stopped = parsed.value.and_then(|value| put(&mut builder, value).err());
            let (root, mut faults) = builder.finish();
            faults.extend(stopped);
            let has_comments = parsed.comments.is_some_and(|comments| !comments.is_empty());
            if has_comments {
                faults.push(
                    Note::new(&codes::JSON_COMMENT, "the file has comments, which JSON does not")
                        .hint("Unisono reads them; the system the file was written for may not"),
                );
            }
            Read { root, faults }
        }
    }
}

/// JSON as its standard has it, but for comments.
const fn strict() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The parser builds its whole tree before we see any of it, so values are counted first: each needs a comma or a bracket.
fn may_hold_too_many_values(text: &str) -> bool {
    text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() > MAX_VALUES
        && values_outside_strings(text) > MAX_VALUES
}

fn values_outside_strings(text: &str) -> usize {
    let (mut in_string, mut escaped, mut count) = (false, false, 0);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

fn put(builder: &mut Builder<'_>, value: Json<'_>) -> Result<(), Note> {
    let range = range(&value);
    let value = match value {
        Json::Object(object) => {
            builder.open_map(range)?;
            for property in object.properties {
                let key_range = self::range(&property.name);
                let key = match property.name {
                    ObjectPropName::String(text) => text.value.into_owned(),
                    ObjectPropName::Word(word) => word.value.to_owned(),
                };
                builder.add(Node { range: key_range, value: Value::Text(key) }, 0)?;
                put(builder, property.value)?;
            }
            builder.close(range.end, false);
            return Ok(());
        }
        Json::Array(array) => {
            builder.open_list(range)?;
            for item in array.elements {
                put(builder, item)?;
            }
            builder.close(range.end, false);
            return Ok(());
        }
        Json::StringLit(text) => Value::Text(text.value.into_owned()),
        // Numbers, truth values and null are written alike in JSON and both YAMLs: the dialect's rules resolve them.
        Json::NumberLit(number) => Value::Plain(number.value.to_owned()),
        Json::BooleanLit(literal) => Value::Boolean(literal.value),
        Json::NullKeyword(_) => Value::Null,
    };
    builder.add(Node { range, value }, 1)
}

fn range(ranged: &impl Ranged) -> Range {
    let offset = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let range = ranged.range();
    Range { start: offset(range.start), end: offset(range.end) }
}

fn syntax_fault(source: &Source<'_>, error: &jsonc_parser::errors::ParseError) -> Note {
    Note::new(&codes::SYNTAX, format!("this is not JSON: {}", error.kind()))
        .hint(
            "JSON needs double quotes around keys and text, and a comma between, not after, values",
        )
        .at(source.place(Range::new(error.range().start, error.range().end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Read {
        read(&Source::new(text.as_bytes()).expect("it is text"))
    }

    fn fault(text: &str) -> &'static str {
        one(text).faults.first().expect("it has a fault").code.name
    }

    #[test]
    fn comments_are_taken_and_told() {
        let read = one("// head\n{\"a\": \"x // y\" /* why */, \"b\": 2}");
        let root = read.root.expect("it is JSON");
        assert_eq!(root.get("a").and_then(Node::text), Some("x // y"));
        assert_eq!(read.faults.iter().map(|it| it.code.name).collect::<Vec<_>>(), ["json-comment"]);
    }

    #[test]
    fn what_json_does_not_allow_is_refused() {
        for text in [
            "{a: 1}",
            "{\"a\": 1,}",
            "{\"a\": 'x'}",
            "{\"a\": NaN}",
            "{\"a\": 1 \"b\": 2}",
            "{",
            "[1] x",
        ] {
            assert_eq!(fault(text), "syntax", "{text}");
        }
        assert_eq!(fault("{\"a\": 1, \"a\": 2}"), "duplicate-key");
    }

    #[test]
    fn hostile_files_are_refused_within_bounds() {
        assert_eq!(fault(&"[".repeat(10_000)), "syntax");
        assert_eq!(fault(&format!("{}{}", "[".repeat(200), "]".repeat(200))), "too-deep");
        assert_eq!(fault(&format!("[{}1]", "1,".repeat(MAX_VALUES))), "too-many-values");
        let commas_in_text = format!("[\"{}\"]", ",".repeat(2 * MAX_VALUES));
        assert!(one(&commas_in_text).faults.is_empty());
    }
}
