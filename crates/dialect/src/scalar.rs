//! What a plain scalar means: `no`, `0777`, `1e3`, by the YAML version that the dialect's own reader spoke.

use crate::tree::{Node, Value};

/// The rules for plain scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// YAML 1.1, as Kubernetes' tools read it.
    Yaml11,
    /// YAML 1.2 core schema.
    Yaml12,
}

/// Gives every plain scalar of a tree its type.
pub(crate) fn resolve(node: &mut Node, schema: Schema) {
    match &mut node.value {
        Value::Plain(text) => node.value = resolved(std::mem::take(text), schema),
        Value::List(items) => items.iter_mut().for_each(|item| resolve(item, schema)),
        Value::Map(entries) => {
            entries.iter_mut().for_each(|entry| resolve(&mut entry.node, schema));
        }
        Value::Null
        | Value::Boolean(_)
        | Value::Integer(_)
        | Value::Number(..)
        | Value::Text(_) => {}
    }
}

fn resolved(text: String, schema: Schema) -> Value {
    if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") {
        return Value::Null;
    }
    if let Some(truth) = truth(&text, schema) {
        return Value::Boolean(truth);
    }
    if !text.starts_with(|it: char| it.is_ascii_digit() || matches!(it, '+' | '-' | '.')) {
        return Value::Text(text);
    }
    if let Some(number) = integer(&text, schema) {
        return Value::Integer(number);
    }
    match float(&text, schema) {
        Some(number) => Value::Number(number, text),
        None => Value::Text(text),
    }
}

fn truth(text: &str, schema: Schema) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => return Some(true),
        "false" | "False" | "FALSE" => return Some(false),
        _ => {}
    }
    if schema == Schema::Yaml12 {
        return None;
    }
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn integer(text: &str, schema: Schema) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match (schema, digits) {
        (_, digits) if digits.starts_with("0x") => (16, digits.trim_start_matches("0x")),
        (_, digits) if digits.starts_with("0o") => (8, digits.trim_start_matches("0o")),
        (Schema::Yaml11, digits) if digits.starts_with("0b") => {
            (2, digits.trim_start_matches("0b"))
        }
        (Schema::Yaml11, digits) if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        (_, digits) => (10, digits),
    };
    let cleaned;
    let digits = if schema == Schema::Yaml11 && digits.contains('_') {
        cleaned = digits.replace('_', "");
        cleaned.as_str()
    } else {
        digits
    };
    if digits.is_empty() || !digits.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    i128::from_str_radix(digits, radix).ok().map(|number| sign * number)
}

fn float(text: &str, schema: Schema) -> Option<f64> {
    let unsigned = text.trim_start_matches(['+', '-']);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => {
            return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        ".nan" | ".NaN" | ".NAN" if unsigned == text => return Some(f64::NAN),
        _ => {}
    }
    let shape = |it: char| it.is_ascii_digit() || matches!(it, '.' | 'e' | 'E' | '+' | '-');
    if !unsigned.starts_with(|it: char| it.is_ascii_digit() || it == '.') {
        return None;
    }
    if schema == Schema::Yaml11 && text.contains('_') {
        return float(&text.replace('_', ""), schema);
    }
    text.chars().all(shape).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, schema: Schema) -> Value {
        resolved(text.to_owned(), schema)
    }

    #[test]
    fn kubernetes_reads_no_as_false_and_a_leading_zero_as_octal() {
        assert_eq!(value("no", Schema::Yaml11), Value::Boolean(false));
        assert_eq!(value("no", Schema::Yaml12), Value::Text("no".into()));
        assert_eq!(value("0777", Schema::Yaml11), Value::Integer(511));
        assert_eq!(value("0777", Schema::Yaml12), Value::Integer(777));
        assert_eq!(value("1_000", Schema::Yaml11), Value::Integer(1000));
        assert_eq!(value("1_000", Schema::Yaml12), Value::Text("1_000".into()));
    }

    #[test]
    fn numbers_keep_their_text() {
        assert_eq!(value("1e3", Schema::Yaml12), Value::Number(1000.0, "1e3".into()));
        assert_eq!(value("-4", Schema::Yaml12), Value::Integer(-4));
        assert!(matches!(value(".nan", Schema::Yaml12), Value::Number(it, _) if it.is_nan()));
        let huge = "9".repeat(60);
        assert!(matches!(value(&huge, Schema::Yaml11), Value::Number(..)));
    }

    #[test]
    fn text_that_looks_a_little_like_a_number_stays_text() {
        for text in [
            "2Gi",
            "500m",
            "^openib",
            "-np",
            "1.2.3",
            "2020-05-15",
            ".",
            "-",
            "+",
            "0x",
            "..",
            "1e",
        ] {
            assert_eq!(value(text, Schema::Yaml11), Value::Text(text.into()), "{text}");
        }
    }
}
