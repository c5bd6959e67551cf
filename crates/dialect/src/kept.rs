//! Parts of a file that the neutral job has no place for, kept in one annotation so that a conversion back restores them.

use serde_json::{Map, Value};
use unisono_job::Job;

/// How every annotation that holds kept parts ends.
pub(crate) const KEPT_SUFFIX: &str = ".unisono.dev/kept";

/// A partial document: the kept parts, at the paths where the dialect that writes them has them.
#[derive(Debug, Default)]
pub(crate) struct Kept(Map<String, Value>);

impl Kept {
    /// Keeps a value at a path.
    pub(crate) fn set(&mut self, path: &[&str], value: Value) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut map = &mut self.0;
        for parent in parents {
            let slot = map.entry(*parent).or_insert_with(|| Value::Object(Map::new()));
            match slot {
                Value::Object(inner) => map = inner,
                // A scalar already stands where the path leads through: the first value wins.
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_) => return,
            }
        }
        map.insert((*last).to_owned(), value);
    }

    /// The annotation's text; none when nothing is kept.
    pub(crate) fn into_annotation(self) -> Option<String> {
        (!self.0.is_empty()).then(|| Value::Object(self.0).to_string())
    }

    /// What a job keeps under this annotation; nothing when it is absent or was damaged.
    pub(crate) fn of(job: &Job, annotation: &str) -> Self {
        let text = job.annotations.get(annotation);
        Self(text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default())
    }

    /// The top keys under which something is kept.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// The text that is kept under a top key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// Puts the kept parts back into a document; what the document already has stays.
    pub(crate) fn restore(self, document: &mut Map<String, Value>) {
        fill(document, self.0);
    }
}

fn fill(target: &mut Map<String, Value>, kept: Map<String, Value>) {
    for (key, value) in kept {
        match (target.get_mut(&key), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => fill(inner, more),
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(_), _) => {}
            (None, value) => {
                target.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_parts_come_back_without_replacing_anything() {
        let mut kept = Kept::default();
        kept.set(&["resources", "instance_type"], "large".into());
        kept.set(&["resources", "instance_count"], 9.into());
        kept.set(&["prerequisites"], serde_json::json!(["b"]));
        kept.set(&["resources", "instance_type", "deeper"], 1.into());
        let mut document = Map::new();
        document.insert("resources".into(), serde_json::json!({"instance_count": 2}));
        document.insert("prerequisites".into(), serde_json::json!(["a"]));
        kept.restore(&mut document);
        assert_eq!(
            Value::Object(document),
            serde_json::json!({
                "resources": {"instance_count": 2, "instance_type": "large"},
                "prerequisites": ["a", "b"],
            })
        );
    }
}
