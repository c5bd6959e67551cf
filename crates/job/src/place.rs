//! Where a value stood: a path inside the document and, for text, a span.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// Where a value stood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The path inside the document, such as `spec.slotsPerWorker` or `taskRoles[1].name`.
    pub path: String,
    /// The span inside the text; absent for objects that never were text.
    pub span: Option<Span>,
}

/// A stretch of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Its first character.
    pub start: Position,
    /// The position after its last character.
    pub end: Position,
}

/// A position in a text. Line and column count from 1, columns in characters; the offset is in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// Bytes before it.
    pub offset: usize,
    /// Its line.
    pub line: usize,
    /// Its column.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// Where the values of a job stood in its file.
///
/// Keys are names in the neutral model: `name`, `GROUP.replicas`, `GROUP.slots`, `GROUP.command`, `policies.retry`, ….
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, Place>);

impl Origins {
    /// Remembers where a value stood.
    pub fn set(&mut self, key: impl Into<String>, place: Place) {
        self.0.insert(key.into(), place);
    }

    /// Where the value stood, if the file has it.
    pub fn of(&self, key: &str) -> Option<&Place> {
        self.0.get(key)
    }
}
