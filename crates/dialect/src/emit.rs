//! Values into text: YAML as people write it, JSON with two blanks.

/// The value as a YAML document. Text that any YAML version would take for something else is quoted.
pub fn to_yaml(value: &serde_json::Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| to_json(value))
}

/// The value as JSON.
pub fn to_json(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Schema, Source, scalar, yaml};

    #[test]
    fn what_is_written_is_read_back_under_both_yaml_versions() {
        let value = serde_json::json!({
            "words": ["no", "y", "0777", "1_000", "1e3", "null", "~", "", " x", "a: b", "# c", "^openib", "- d", "é\n", "2020-05-15", "0x1f", ".5", "=", "<<", "it's", "\"q\"", "multi\nline\n", "trailing ", "\t", "*a", "&b", "!c", "%d", "@e", "`f"],
            "numbers": [0, -3, 1.5, true, null],
            "empty": {"list": [], "map": {}},
            "yes": {"on": "off"},
        });
        for schema in [Schema::Yaml11, Schema::Yaml12] {
            let text = to_yaml(&value);
            let source = Source::new(text.as_bytes()).expect("it is text");
            let mut root = yaml::read(&source).remove(0).root.expect("it is YAML");
            scalar::resolve(&mut root, schema);
            assert_eq!(root.to_json(), value, "{text}");
        }
    }
}
