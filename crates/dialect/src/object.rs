//! API objects into trees: the same readers serve a file and an object of a cluster.

use crate::tree::{Document, Entry, Node, Range, Value};

/// The tree of a JSON value. Its ranges are made up: they only tell one value from another, so that paths can be found.
pub fn document_from_object(object: &serde_json::Value) -> Document<'static> {
    let mut counter = 0;
    Document { source: None, root: node(object, &mut counter) }
}

fn node(json: &serde_json::Value, counter: &mut u32) -> Node {
    let start = next(counter);
    let value = match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Boolean(*value),
        serde_json::Value::Number(number) => {
            match number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)) {
                Some(integer) => Value::Integer(integer),
                None => Value::Number(number.as_f64().unwrap_or(f64::NAN), number.to_string()),
            }
        }
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(items) => {
            Value::List(items.iter().map(|item| node(item, counter)).collect())
        }
        serde_json::Value::Object(fields) => Value::Map(
            fields
                .iter()
                .map(|(key, value)| {
                    let key_range = Range { start: next(counter), end: *counter };
                    Entry { key: key.clone(), key_range, merges: false, node: node(value, counter) }
                })
                .collect(),
        ),
    };
    Node { range: Range { start, end: next(counter) }, value }
}

fn next(counter: &mut u32) -> u32 {
    *counter = counter.saturating_add(1);
    *counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_without_text() {
        let document =
            document_from_object(&serde_json::json!({"spec": {"items": [1, {"a": null}]}}));
        let node = &document.root.at(&["spec", "items"]).expect("it is there").items()[1];
        assert_eq!(document.place(node).path, "spec.items[1]");
        assert_eq!(document.place(node).span, None);
        assert_eq!(
            document.root.to_json(),
            serde_json::json!({"spec": {"items": [1, {"a": null}]}})
        );
    }
}
