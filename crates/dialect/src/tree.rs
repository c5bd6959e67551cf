//! One tree for YAML, JSON and API objects, with a range on every value.

use unisono_job::{Note, Place};

use crate::Source;

/// A stretch of the source, in bytes. For objects that never were text the numbers only tell values apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Range {
    /// The range between two offsets; offsets beyond 4 GiB, which no source has, mean the end.
    pub fn new(start: usize, end: usize) -> Self {
        let offset = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { start: offset(start), end: offset(end) }
    }

    const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub range: Range,
    /// What it is.
    pub value: Value,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A plain scalar whose type depends on the dialect's YAML version; [`crate::scalar::resolve`] turns it into one of the next five.
    Plain(String),
    /// Nothing.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number, with its text.
    Number(f64, String),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values, in the order of the file.
    Map(Vec<Entry>),
}

/// One key of a map, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_range: Range,
    /// Whether it is YAML's merge key: `<<` without quotes.
    pub merges: bool,
    /// The value.
    pub node: Node,
}

impl Node {
    /// The value under a key, when this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The value at the end of a path of keys; a null counts as absent.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key)).filter(|node| !node.is_null())
    }

    /// The entries, when this is a map; else none.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Plain(_)
            | Value::Null
            | Value::Boolean(_)
            | Value::Integer(_)
            | Value::Number(..)
            | Value::Text(_)
            | Value::List(_) => &[],
        }
    }

    /// The items, when this is a list; else none.
    pub fn items(&self) -> &[Self] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// The text, when this is text.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) | Value::Plain(text) = &self.value { Some(text) } else { None }
    }

    /// The whole number, when this is one that fits.
    pub fn integer<T: TryFrom<i128>>(&self) -> Option<T> {
        if let Value::Integer(number) = self.value { T::try_from(number).ok() } else { None }
    }

    /// The truth value, when this is one.
    pub fn boolean(&self) -> Option<bool> {
        if let Value::Boolean(value) = self.value { Some(value) } else { None }
    }

    /// Any scalar as the text a user would write for it; none for null, lists and maps.
    pub fn scalar_text(&self) -> Option<String> {
        match &self.value {
            Value::Plain(text) | Value::Text(text) | Value::Number(_, text) => Some(text.clone()),
            Value::Boolean(value) => Some(value.to_string()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Whether this is a null.
    pub const fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// What kind of value this is, in a user's words.
    pub const fn kind_name(&self) -> &'static str {
        match self.value {
            Value::Plain(_) | Value::Text(_) => "text",
            Value::Null => "nothing",
            Value::Boolean(_) => "true or false",
            Value::Integer(_) => "a whole number",
            Value::Number(..) => "a number",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// The value as JSON, for parts that are kept as they are.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Boolean(value) => (*value).into(),
            Value::Integer(number) => i64::try_from(*number)
                .map(serde_json::Value::from)
                .or_else(|_| u64::try_from(*number).map(serde_json::Value::from))
                .unwrap_or_else(|_| number.to_string().into()),
            Value::Number(number, text) => serde_json::Number::from_f64(*number)
                .map_or_else(|| text.clone().into(), serde_json::Value::Number),
            Value::Plain(text) | Value::Text(text) => text.clone().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.node.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// One document: a tree and, when it was text, its source.
#[derive(Clone, Debug)]
pub struct Document<'source> {
    /// The text it came from.
    pub source: Option<&'source Source<'source>>,
    /// Its top value.
    pub root: Node,
}

impl Document<'_> {
    /// Where a node of this document stands: its path and, for text, its span.
    pub fn place(&self, node: &Node) -> Place {
        let mut path = String::new();
        push_path(&self.root, node.range, &mut path);
        Place { path, span: self.source.map(|source| source.span(node.range)) }
    }

    /// Where a key of this document stands.
    pub fn key_place(&self, entry: &Entry) -> Place {
        Place {
            span: self.source.map(|source| source.span(entry.key_range)),
            ..self.place(&entry.node)
        }
    }

    /// A note at a node.
    pub fn note(&self, note: Note, node: &Node) -> Note {
        note.at(self.place(node))
    }
}

/// Walks down to the node with this range and writes the way.
fn push_path(node: &Node, target: Range, path: &mut String) {
    if node.range == target {
        return;
    }
    for entry in node.entries() {
        if entry.node.range.contains(target) {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&entry.key);
            return push_path(&entry.node, target, path);
        }
    }
    for (index, item) in node.items().iter().enumerate() {
        if item.range.contains(target) {
            path.push('[');
            path.push_str(&index.to_string());
            path.push(']');
            return push_path(item, target, path);
        }
    }
}
