//! Parts of a file that the neutral job has no place for, kept in one annotation so that a conversion back restores them.

use serde_json::{Map, Value};

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
}
