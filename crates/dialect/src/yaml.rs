//! YAML text into trees, one for each document, with anchors and merge keys resolved.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use unisono_job::Note;

use crate::build::{Builder, MAX_DEPTH, count, too_deep};
use crate::tree::{Entry, Node, Range, Value};
use crate::{Source, codes};

/// More than anybody keeps in one file; each document is told about by itself.
const MAX_DOCUMENTS: usize = 1000;

/// One document of a file, or why it could not be read.
pub(crate) struct Read {
    /// The tree; absent when the text is no YAML.
    pub(crate) root: Option<Node>,
    /// Faults found while reading.
    pub(crate) faults: Vec<Note>,
}

/// Reads every document of a text. A syntax error ends the file: what follows cannot be trusted.
pub(crate) fn read(source: &Source<'_>) -> Vec<Read> {
    let options = granit_parser::options! { emit_comments: false };
    let mut events = Parser::new_from_str_with_options(source.text(), options);
    let mut documents = Vec::new();
    let mut values = 0;
    loop {
        if documents.len() > MAX_DOCUMENTS {
            documents.truncate(MAX_DOCUMENTS);
            documents.push(Read { root: None, faults: vec![too_many_documents()] });
            return documents;
        }
        match next_document(source, &mut events, &mut values) {
            Ok(Some(document)) => documents.push(document),
            Ok(None) => return documents,
            Err(fault) => {
                documents.push(Read { root: None, faults: vec![fault] });
                return documents;
            }
        }
    }
}

type Events<'source> = Parser<'source, granit_parser::StrInput<'source>>;

fn next_document(
    source: &Source<'_>,
    events: &mut Events<'_>,
    values: &mut usize,
) -> Result<Option<Read>, Note> {
    let mut reading = Reading::new(source, *values);
    for event in events {
        let (event, span) = event.map_err(|error| syntax_fault(source, &error))?;
        match event {
            Event::StreamEnd => return Ok(None),
            Event::DocumentEnd => {
                *values = reading.builder.values();
                let (root, mut faults) = reading.builder.finish();
                let root = root.map(|root| merged(source, root, &mut faults));
                // A document of nothing (a trailing `---`) holds no job and is no fault.
                if root.as_ref().is_none_or(is_blank) && faults.is_empty() {
                    reading = Reading::new(source, *values);
                    continue;
                }
                return Ok(Some(Read { root, faults }));
            }
            other => reading.take(other, range(source, &span))?,
        }
    }
    Ok(None)
}

fn too_many_documents() -> Note {
    let message = format!("the file holds more than {MAX_DOCUMENTS} documents");
    Note::new(&codes::TOO_MANY_DOCUMENTS, message).hint("split it into several files")
}

fn is_blank(node: &Node) -> bool {
    node.is_null()
        || matches!(&node.value, Value::Plain(text) if matches!(text.as_str(), "" | "~" | "null"))
}

struct Reading<'source> {
    source: &'source Source<'source>,
    builder: Builder<'source>,
    /// Finished values by the number of their anchor, with how many values each holds.
    anchors: HashMap<usize, (Node, usize)>,
    open_anchors: Vec<usize>,
}

impl<'source> Reading<'source> {
    fn new(source: &'source Source<'source>, values: usize) -> Self {
        Self {
            source,
            builder: Builder::new(source, values),
            anchors: HashMap::new(),
            open_anchors: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>, range: Range) -> Result<(), Note> {
        match event {
            Event::MappingStart(_, anchor, _) => {
                self.open_anchors.push(anchor);
                self.builder.open_map(range)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open_anchors.push(anchor);
                self.builder.open_list(range)
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let anchor = self.open_anchors.pop().unwrap_or(0);
                match self.builder.close(range.end, anchor != 0) {
                    Some(node) => {
                        let values = count(&node);
                        self.remember(anchor, node, values)
                    }
                    None => Ok(()),
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.suffix() == "str");
                let value = match style {
                    ScalarStyle::Plain if !is_text => Value::Plain(text.into_owned()),
                    _ => Value::Text(text.into_owned()),
                };
                let node = Node { range, value };
                if anchor != 0 {
                    self.remember(anchor, node.clone(), 1)?;
                }
                self.builder.add(node, 1)
            }
            Event::Alias(anchor) => self.take_alias(anchor, range),
            _ => Ok(()),
        }
    }

    /// Keeps a value for the aliases that name it. Its copy counts as much as the value itself.
    fn remember(&mut self, anchor: usize, node: Node, values: usize) -> Result<(), Note> {
        self.builder.take_room(values, node.range)?;
        self.anchors.insert(anchor, (node, values));
        Ok(())
    }

    fn take_alias(&mut self, anchor: usize, range: Range) -> Result<(), Note> {
        let Some((node, values)) = self.anchors.get(&anchor) else {
            return Err(Note::new(&codes::SYNTAX, "an alias stands inside the value it names")
                .at(self.source.place(range)));
        };
        if self.builder.depth() + depth(node) > MAX_DEPTH {
            return Err(too_deep().at(self.source.place(range)));
        }
        let (node, values) = (node.clone(), *values);
        self.builder.add(node, values)
    }
}

fn depth(node: &Node) -> usize {
    let items = node.items().iter().map(depth);
    let entries = node.entries().iter().map(|entry| depth(&entry.node));
    1 + items.chain(entries).max().unwrap_or(0)
}

/// Replaces every plain `<<` key by the entries of the maps it names; keys that stand beside it win.
fn merged(source: &Source<'_>, node: Node, faults: &mut Vec<Note>) -> Node {
    let value = match node.value {
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| merged(source, item, faults)).collect())
        }
        Value::Map(entries) => Value::Map(merged_entries(source, entries, faults)),
        other => other,
    };
    Node { value, ..node }
}

fn merged_entries(source: &Source<'_>, entries: Vec<Entry>, faults: &mut Vec<Note>) -> Vec<Entry> {
    let has_merge = entries.iter().any(|entry| entry.merges);
    let mut own: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut inherited: Vec<Entry> = Vec::new();
    for entry in entries {
        let node = merged(source, entry.node, faults);
        if !entry.merges {
            own.push(Entry { node, ..entry });
            continue;
        }
        let maps = if let Value::List(items) = &node.value {
            items.as_slice()
        } else {
            std::slice::from_ref(&node)
        };
        for map in maps {
            if !matches!(map.value, Value::Map(_)) {
                let message = format!("`<<` merges maps, but this is {}", map.kind_name());
                faults.push(Note::new(&codes::WRONG_TYPE, message).at(source.place(map.range)));
            }
            inherited.extend(map.entries().iter().cloned());
        }
    }
    if has_merge {
        let mut known: std::collections::HashSet<String> =
            own.iter().map(|entry| entry.key.clone()).collect();
        own.extend(inherited.into_iter().filter(|entry| known.insert(entry.key.clone())));
    }
    own
}

fn range(source: &Source<'_>, span: &Span) -> Range {
    let offset =
        |marker: &granit_parser::Marker| marker.byte_offset().unwrap_or(source.text().len());
    Range::new(offset(&span.start), offset(&span.end))
}

fn syntax_fault(source: &Source<'_>, error: &granit_parser::ScanError) -> Note {
    let offset = error.marker().byte_offset().unwrap_or(source.text().len());
    let place = source.place(Range::new(offset, offset));
    if matches!(error.kind(), granit_parser::ErrorKind::RecursionLimitExceeded) {
        return too_deep().at(place);
    }
    let before = source.text().get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = source.text().get(line_start..).unwrap_or_default();
    let hint = if line.trim_start_matches(' ').starts_with('\t') {
        "indent with spaces: YAML does not take tabs"
    } else {
        "look at this line and the one before it: indentation, a missing colon, an open quote"
    };
    let message = format!("this is not YAML: {}", error.info());
    Note::new(&codes::SYNTAX, message).hint(hint).at(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Read {
        let source = Source::new(text.as_bytes()).expect("it is text");
        let mut documents = read(&source);
        assert_eq!(documents.len(), 1, "{text:?}");
        documents.remove(0)
    }

    fn fault(text: &str) -> &'static str {
        one(text).faults.first().expect("it has a fault").code.name
    }

    #[test]
    fn anchors_and_merges_are_resolved() {
        let text = "base: &b {image: x, cpu: 1}\nworker:\n  <<: *b\n  cpu: 2\nalso: *b\n";
        let root = one(text).root.expect("it is YAML");
        assert_eq!(root.at(&["worker", "image"]).and_then(Node::text), Some("x"));
        assert_eq!(root.at(&["worker", "cpu"]).and_then(Node::text), Some("2"));
        assert_eq!(root.at(&["also", "cpu"]).and_then(Node::text), Some("1"));
    }

    #[test]
    fn a_quoted_merge_key_is_a_key_like_any_other() {
        let root = one("a: &a {x: 1}\nb: {\"<<\": *a}\nc: {'<<': 3, !!str <<: 4, d: *a}\n");
        assert_eq!(root.faults[0].code.name, "duplicate-key", "both are text");
        let root = one("a: &a {x: 1}\nb: {\"<<\": *a}\nc: {'<<': 3}\n").root.expect("it is YAML");
        assert_eq!(root.at(&["b", "<<", "x"]).and_then(Node::text), Some("1"));
        assert_eq!(root.at(&["c", "<<"]).and_then(Node::text), Some("3"));
        assert_eq!(root.at(&["b", "x"]), None);
    }

    #[test]
    fn quoted_scalars_are_text_and_plain_ones_wait() {
        let root = one("a: '1'\nb: 1\nc: !!str 1\n").root.expect("it is YAML");
        assert_eq!(root.get("a").map(|it| &it.value), Some(&Value::Text("1".into())));
        assert_eq!(root.get("b").map(|it| &it.value), Some(&Value::Plain("1".into())));
        assert_eq!(root.get("c").map(|it| &it.value), Some(&Value::Text("1".into())));
    }

    #[test]
    fn hostile_files_are_refused_within_bounds() {
        assert_eq!(fault("a: 1\na: 2\n"), "duplicate-key");
        assert_eq!(fault("a:\n\t- b\n"), "syntax");
        assert_eq!(fault(&format!("{}x", "- ".repeat(10_000))), "too-deep");
        assert_eq!(fault(&format!("a: {}x{}", "[".repeat(300), "]".repeat(300))), "too-deep");
        assert_eq!(fault(&format!("a: {}", "- ".repeat(5))), "syntax");
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, before) in ('b'..='z').zip('a'..) {
            let aliases = format!("*{before}, ").repeat(10);
            bomb.extend([format!(
                "{name}: &{name} [{aliases}]
"
            )]);
        }
        assert_eq!(fault(&bomb), "too-many-values");
        let anchors: String = (0..200_000).map(|it| format!("- &a{it} x\n")).collect();
        assert_eq!(fault(&anchors), "too-many-values");
        assert_eq!(fault("a: &a [*a]\n"), "syntax");
        assert_eq!(fault("<<: 3\n"), "wrong-type");
        assert_eq!(fault("? [a]\n: b\n"), "wrong-type");
    }

    #[test]
    fn documents_are_bounded_in_number_and_together() {
        let many = "a: 1\n---\n".repeat(5000);
        let many = read(&Source::new(many.as_bytes()).expect("it is text"));
        assert_eq!(many.len(), MAX_DOCUMENTS + 1);
        assert_eq!(many[MAX_DOCUMENTS].faults[0].code.name, "too-many-documents");
        let large = format!("a: [{}]\n---\n", "1, ".repeat(100_000)).repeat(4);
        let large = read(&Source::new(large.as_bytes()).expect("it is text"));
        assert_eq!(large.last().expect("the last").faults[0].code.name, "too-many-values");
    }

    #[test]
    fn empty_documents_are_skipped() {
        let source = Source::new(b"---\na: 1\n---\n---\nb: 2\n---\n").expect("it is text");
        assert_eq!(read(&source).len(), 2);
    }
}
