//! Field tables into schemas: JSON Schema for editors, OpenAPI v3 for the API server.

use serde_json::{Map, Value, json};

use crate::kubernetes::POD_TEMPLATE;
use crate::reference::sentence;
use crate::shape::{Field, Kind, Others, Presence, Shape};

/// Which rules a schema is written by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaStyle {
    /// JSON Schema, draft 2020-12: strict, so that an editor marks a misspelt key.
    JsonSchema,
    /// A structural OpenAPI v3 schema, as custom resource definitions need it: types everywhere, none inside a choice.
    ///
    /// Nothing is pruned and nothing is required: the API server serves one object in every version, so that a rule about
    /// the whole object would refuse an edit through a version the object was not written in.
    Structural,
}

/// The published JSON Schema of `UnisonoJob`.
pub fn job_schema() -> Value {
    let Value::Object(body) = schema(crate::unisono::shape(), SchemaStyle::JsonSchema) else {
        return Value::Null;
    };
    let mut document = Map::new();
    document.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    document.insert("$id".into(), "https://unisono.dev/schemas/unisonojob.json".into());
    document.extend(body);
    document.into()
}

/// The schema of an object.
pub fn schema(shape: &'static Shape, style: SchemaStyle) -> Value {
    let mut document = object(shape, style);
    document.insert("title".into(), shape.name.into());
    document.into()
}

fn object(shape: &'static Shape, style: SchemaStyle) -> Map<String, Value> {
    let properties: Map<String, Value> =
        shape.fields.iter().map(|it| (it.name.to_owned(), field(it, style))).collect();
    let required: Vec<&str> = shape
        .fields
        .iter()
        .filter(|field| field.presence == Presence::Required)
        .map(|field| field.name)
        .collect();
    let mut document = Map::new();
    document.insert("type".into(), "object".into());
    if style == SchemaStyle::Structural {
        document.insert(PRESERVE.into(), true.into());
        // What a pod is made of changes with the server's version, and is the server's to check.
        if !std::ptr::eq(shape, &POD_TEMPLATE) {
            document.insert("properties".into(), properties.into());
        }
        return document;
    }
    document.insert("properties".into(), properties.into());
    if !required.is_empty() {
        document.insert("required".into(), required.into());
    }
    if shape.others == Others::Warn {
        document.insert("additionalProperties".into(), false.into());
    }
    document
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

fn field(field: &'static Field, style: SchemaStyle) -> Value {
    let description = if field.default.is_empty() {
        sentence(field.doc)
    } else {
        format!("{} Default: {}.", sentence(field.doc), field.default.trim_end_matches('.'))
    };
    let mut document = Map::new();
    document.insert("description".into(), description.into());
    document.extend(kind(&field.kind, style));
    document.into()
}

fn kind(it: &'static Kind, style: SchemaStyle) -> Map<String, Value> {
    let value = match it {
        Kind::Text => json!({"type": "string"}),
        Kind::FilledText => json!({"type": "string", "minLength": 1}),
        Kind::Form(form) if form.pattern.is_empty() => json!({"type": "string"}),
        Kind::Form(form) => json!({"type": "string", "pattern": form.pattern}),
        Kind::Integer { min, max } => integer(*min, *max, style),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Quantity => quantity(style),
        Kind::Scalar if style == SchemaStyle::JsonSchema => {
            json!({"type": ["string", "number", "boolean"]})
        }
        Kind::OneOf(allowed) => json!({"type": "string", "enum": allowed}),
        Kind::OneOfAnyCase(allowed) => json!({"type": "string", "pattern": any_case(allowed)}),
        Kind::Object(shape) => return object(shape, style),
        Kind::List(item) => json!({"type": "array", "items": kind(item, style)}),
        Kind::FilledList(item) => {
            json!({"type": "array", "minItems": 1, "items": kind(item, style)})
        }
        Kind::Map(item) => json!({"type": "object", "additionalProperties": kind(item, style)}),
        Kind::Nullable(item) => return nullable(item, style),
        Kind::Either(kinds) if style == SchemaStyle::JsonSchema => {
            let choices: Vec<Value> = kinds.iter().map(|it| kind(it, style).into()).collect();
            json!({"anyOf": choices})
        }
        Kind::Any if style == SchemaStyle::JsonSchema => json!({}),
        // A structural schema has no word for a choice of types.
        Kind::Scalar | Kind::Either(_) | Kind::Any => json!({PRESERVE: true}),
    };
    match value {
        Value::Object(document) => document,
        _ => Map::new(),
    }
}

fn integer(min: i64, max: i64, style: SchemaStyle) -> Value {
    let mut document = Map::new();
    document.insert("type".into(), "integer".into());
    if style == SchemaStyle::Structural {
        let small = i32::try_from(min).is_ok() && i32::try_from(max).is_ok();
        document.insert("format".into(), if small { "int32" } else { "int64" }.into());
    }
    document.insert("minimum".into(), min.into());
    // The largest 64-bit number is no bound a user could hit, and not exact in every reader of JSON.
    if max != i64::MAX {
        document.insert("maximum".into(), max.into());
    }
    document.into()
}

fn quantity(style: SchemaStyle) -> Value {
    let choices = json!([{"type": "integer"}, {"type": "string"}]);
    match style {
        SchemaStyle::JsonSchema => json!({"anyOf": [{"type": "number"}, {"type": "string"}]}),
        SchemaStyle::Structural => {
            json!({"anyOf": choices, "x-kubernetes-int-or-string": true})
        }
    }
}

fn nullable(item: &'static Kind, style: SchemaStyle) -> Map<String, Value> {
    let mut document = kind(item, style);
    match style {
        SchemaStyle::JsonSchema => {
            let choices = json!([document, {"type": "null"}]);
            document = Map::new();
            document.insert("anyOf".into(), choices);
        }
        SchemaStyle::Structural => {
            document.insert("nullable".into(), true.into());
        }
    }
    document
}

/// A regular expression that takes the words in any letter case; schemas have no flag for it.
fn any_case(words: &[&str]) -> String {
    let letter = |it: char| {
        if it.is_ascii_alphabetic() {
            format!("[{}{}]", it.to_ascii_lowercase(), it.to_ascii_uppercase())
        } else if it.is_ascii_alphanumeric() || it == '_' || it == '-' {
            it.to_string()
        } else {
            format!("\\{it}")
        }
    };
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("^({})$", words.join("|"))
}

#[cfg(test)]
mod tests {
    use unisono_job::Dialect;

    use super::*;
    use crate::shape_of;

    static SAMPLE: Shape = Shape::open(
        "Sample",
        &[
            Field::new("size", Kind::Quantity, "how much").required(),
            Field::new("policy", Kind::OneOfAnyCase(&["mpi"]), "which").or("mpi"),
            Field::new("count", Kind::Nullable(&Kind::COUNT), "how many"),
            Field::new("code", Kind::Either(&[Kind::Text, Kind::Boolean]), "two ways"),
        ],
    );

    #[test]
    fn an_editor_gets_every_rule() {
        assert_eq!(
            schema(&SAMPLE, SchemaStyle::JsonSchema),
            json!({
                "title": "Sample", "type": "object", "required": ["size"],
                "properties": {
                    "size": {"description": "How much.", "anyOf": [{"type": "number"}, {"type": "string"}]},
                    "policy": {"description": "Which. Default: mpi.", "type": "string", "pattern": "^([mM][pP][iI])$"},
                    "count": {"description": "How many.", "anyOf": [
                        {"type": "integer", "minimum": 0, "maximum": 2_147_483_647}, {"type": "null"}]},
                    "code": {"description": "Two ways.", "anyOf": [{"type": "string"}, {"type": "boolean"}]},
                },
            })
        );
    }

    /// The rules that an API server checks a structural schema by.
    fn assert_structural(schema: &Value, path: &str) {
        let fields = schema.as_object().unwrap_or_else(|| panic!("{path} is no schema"));
        let is_open =
            fields.contains_key(PRESERVE) || fields.contains_key("x-kubernetes-int-or-string");
        assert!(fields.contains_key("type") || is_open, "{path} has no type");
        assert!(
            !fields.contains_key("properties") || !fields.contains_key("additionalProperties"),
            "{path}"
        );
        for (name, inner) in
            fields.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            assert_structural(inner, &format!("{path}.{name}"));
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = fields.get(key) {
                assert_structural(inner, &format!("{path}.{key}"));
            }
        }
    }

    #[test]
    fn an_api_server_would_take_the_structural_form_of_every_table() {
        assert_structural(&schema(&SAMPLE, SchemaStyle::Structural), "");
        for dialect in Dialect::ALL {
            assert_structural(&schema(shape_of(dialect), SchemaStyle::Structural), dialect.name());
        }
    }
}
