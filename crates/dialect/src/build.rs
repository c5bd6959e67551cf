//! Builds a tree from a stream of values, within bounds: depth, number of values, one value per key.

use unisono_job::Note;

use crate::tree::{Entry, Node, Range, Value};
use crate::{Source, codes};

/// Deeper than any job file, shallow enough that walking a tree never runs out of stack.
pub(crate) const MAX_DEPTH: usize = 100;

/// With about 100 bytes a value this keeps a tree well under 64 MiB, and holds a `List` of a thousand jobs.
pub(crate) const MAX_VALUES: usize = 300_000;

/// Duplicate keys and keys that are no text are told this often; nobody reads more.
const MAX_FAULTS: usize = 100;

/// A tree that grows value by value.
pub(crate) struct Builder<'source> {
    source: &'source Source<'source>,
    open: Vec<Open>,
    root: Option<Node>,
    values: usize,
    /// Faults that do not stop the reading: duplicate keys, keys that are not text.
    faults: Vec<Note>,
}

/// A list or map that is not closed yet.
enum Open {
    List { start: u32, items: Vec<Node> },
    Map { start: u32, entries: Vec<Entry>, key: Option<Key> },
}

/// A key whose value is still to come.
struct Key {
    text: String,
    range: Range,
    /// Whether it is YAML's merge key.
    merges: bool,
}

impl<'source> Builder<'source> {
    /// A tree of a source in which so many values were read before.
    pub(crate) const fn new(source: &'source Source<'source>, values: usize) -> Self {
        Self { source, open: Vec::new(), root: None, values, faults: Vec::new() }
    }

    /// Values read from the source so far.
    pub(crate) const fn values(&self) -> usize {
        self.values
    }

    pub(crate) fn open_list(&mut self, range: Range) -> Result<(), Note> {
        self.check_room(range)?;
        self.open.push(Open::List { start: range.start, items: Vec::new() });
        Ok(())
    }

    pub(crate) fn open_map(&mut self, range: Range) -> Result<(), Note> {
        self.check_room(range)?;
        self.open.push(Open::Map { start: range.start, entries: Vec::new(), key: None });
        Ok(())
    }

    /// Closes the innermost list or map and puts it where it belongs; hands out a copy when it has a name to be used by.
    pub(crate) fn close(&mut self, end: u32, copy: bool) -> Option<Node> {
        let node = match self.open.pop()? {
            Open::List { start, items } => {
                Node { range: Range { start, end: end.max(start) }, value: Value::List(items) }
            }
            Open::Map { start, entries, key: _ } => {
                self.report_duplicates(&entries);
                Node { range: Range { start, end: end.max(start) }, value: Value::Map(entries) }
            }
        };
        let named = copy.then(|| node.clone());
        self.put(node);
        named
    }

    /// Adds a scalar, or a finished tree where an alias stands.
    pub(crate) fn add(&mut self, node: Node, values: usize) -> Result<(), Note> {
        self.take_room(values, node.range)?;
        self.put(node);
        Ok(())
    }

    /// The finished tree and the faults found on the way.
    pub(crate) fn finish(self) -> (Option<Node>, Vec<Note>) {
        (self.root, self.faults)
    }

    pub(crate) const fn depth(&self) -> usize {
        self.open.len()
    }

    fn check_room(&mut self, range: Range) -> Result<(), Note> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep().at(self.source.place(range)));
        }
        self.take_room(1, range)
    }

    pub(crate) fn take_room(&mut self, values: usize, range: Range) -> Result<(), Note> {
        self.values = self.values.saturating_add(values);
        if self.values <= MAX_VALUES {
            return Ok(());
        }
        Err(too_many_values().at(self.source.place(range)))
    }

    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                Some(Key { text: key, range: key_range, merges }) => {
                    entries.push(Entry { key, key_range, merges, node });
                }
                None => {
                    let text = node.scalar_text();
                    if text.is_none() && !node.is_null() && self.faults.len() < MAX_FAULTS {
                        let message = format!("a key must be text, not {}", node.kind_name());
                        let place = self.source.place(node.range);
                        self.faults.push(Note::new(&codes::WRONG_TYPE, message).at(place));
                    }
                    let merges = matches!(&node.value, Value::Plain(text) if text == "<<");
                    *key = Some(Key { text: text.unwrap_or_default(), range: node.range, merges });
                }
            },
        }
    }

    fn report_duplicates(&mut self, entries: &[Entry]) {
        let mut sorted: Vec<&Entry> = entries.iter().filter(|entry| !entry.merges).collect();
        sorted.sort_by(|left, right| left.key.cmp(&right.key));
        let pairs = sorted.iter().zip(sorted.iter().skip(1));
        let duplicates = pairs.filter(|(first, second)| first.key == second.key);
        for (first, second) in duplicates.take(MAX_FAULTS.saturating_sub(self.faults.len())) {
            let first_line = self.source.position(first.key_range.start).line;
            let message = format!("the key `{}` stands here a second time", second.key);
            self.faults.push(
                Note::new(&codes::DUPLICATE_KEY, message)
                    .hint(format!("it is already on line {first_line}: keep one of the two"))
                    .at(self.source.place(second.key_range)),
            );
        }
    }
}

pub(crate) fn too_deep() -> Note {
    Note::new(&codes::TOO_DEEP, format!("values are nested more than {MAX_DEPTH} deep"))
}

pub(crate) fn too_many_values() -> Note {
    Note::new(
        &codes::TOO_MANY_VALUES,
        format!("the file holds more than {MAX_VALUES} values (an alias counts each time)"),
    )
}

/// The number of values in a tree.
pub(crate) fn count(node: &Node) -> usize {
    1 + node.items().iter().map(count).sum::<usize>()
        + node.entries().iter().map(|entry| count(&entry.node)).sum::<usize>()
}
