//! Checks a tree against a field table and tells every fault at once.

use unisono_job::{Note, Quantity};

use crate::codes;
use crate::notebook::Room;
use crate::shape::{Field, Kind, Others, Presence, Shape};
use crate::tree::{Document, Node, Value};

/// What a dialect's own reader let pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// Numbers and truth values may be written as text (`"3"`).
    pub numbers_as_text: bool,
}

/// Every fault of a document, in the order of the file.
pub fn check(document: &Document<'_>, shape: &'static Shape, leniency: Leniency) -> Vec<Note> {
    check_node(document, &document.root, &Kind::Object(shape), leniency)
}

/// Every fault of one value of a document.
pub fn check_node(
    document: &Document<'_>,
    node: &Node,
    kind: &Kind,
    leniency: Leniency,
) -> Vec<Note> {
    let mut checker = Checker { document, leniency, room: Room::default(), notes: Vec::new() };
    checker.value(node, kind);
    checker.notes
}

struct Checker<'document> {
    document: &'document Document<'document>,
    leniency: Leniency,
    room: Room,
    notes: Vec<Note>,
}

impl Checker<'_> {
    fn value(&mut self, node: &Node, kind: &Kind) {
        match (kind, &node.value) {
            (Kind::Any, _) => {}
            (Kind::Nullable(_), Value::Null) => {}
            (Kind::Nullable(inner), _) => self.value(node, inner),
            (Kind::Either(kinds), _) => self.either(node, kinds),
            (Kind::Object(shape), Value::Map(_)) => self.object(node, shape),
            (Kind::Map(inner), Value::Map(entries)) => {
                entries.iter().for_each(|entry| self.value(&entry.node, inner));
            }
            (Kind::List(inner), Value::List(items)) => {
                items.iter().for_each(|item| self.value(item, inner));
            }
            (Kind::FilledList(_), Value::List(items)) if items.is_empty() => {
                self.tell(Note::new(&codes::BAD_FORM, "the list needs at least one item"), node);
            }
            (Kind::FilledList(inner), Value::List(items)) => {
                items.iter().for_each(|item| self.value(item, inner));
            }
            _ => self.scalar(node, kind),
        }
    }

    fn object(&mut self, node: &Node, shape: &'static Shape) {
        for entry in node.entries() {
            match shape.field(&entry.key) {
                Some(field) if entry.node.is_null() && field.presence == Presence::Optional => {}
                Some(field) => self.value(&entry.node, &field.kind),
                None if shape.others == Others::Keep => {}
                None => {
                    let note = unknown_key(&entry.key, shape);
                    self.notes.extend(self.room.admit(note, || self.document.key_place(entry)));
                }
            }
        }
        let required = shape.fields.iter().filter(|field| field.presence == Presence::Required);
        for field in required.filter(|field| node.get(field.name).is_none()) {
            self.tell(missing(field, shape), node);
        }
    }

    /// Checks against the kind that fits by type; when none does, names them all.
    fn either(&mut self, node: &Node, kinds: &'static [Kind]) {
        match kinds.iter().find(|kind| fits_by_type(node, kind)) {
            Some(kind) => self.value(node, kind),
            None => {
                let wanted: Vec<String> = kinds.iter().map(describe).collect();
                self.wrong_type(node, &wanted.join(" or "));
            }
        }
    }

    fn scalar(&mut self, node: &Node, kind: &Kind) {
        let lenient = self.leniency.numbers_as_text;
        match (kind, &node.value) {
            (Kind::Text, Value::Text(_)) => {}
            (Kind::FilledText, Value::Text(text)) => {
                if text.trim().is_empty() {
                    self.tell(Note::new(&codes::BAD_FORM, "the text may not be empty"), node);
                }
            }
            (Kind::Form(form), Value::Text(text)) => {
                if !(form.fits)(text) {
                    let message = format!("`{}` is not {}", clipped(text), form.name);
                    self.tell(Note::new(&codes::BAD_FORM, message), node);
                }
            }
            (Kind::Integer { min, max }, Value::Integer(number)) => {
                self.bounds(node, *number, *min, *max);
            }
            (Kind::Integer { min, max }, Value::Text(text)) if lenient => {
                match text.trim().parse::<i128>() {
                    Ok(number) => self.bounds(node, number, *min, *max),
                    Err(_) => self.wrong_type(node, &describe(kind)),
                }
            }
            (Kind::Boolean, Value::Boolean(_)) => {}
            (Kind::Boolean, Value::Text(text))
                if lenient && matches!(text.as_str(), "true" | "false") => {}
            (Kind::Quantity, Value::Integer(_) | Value::Number(..) | Value::Text(_)) => {
                let text = node.scalar_text().unwrap_or_default();
                if let Err(error) = Quantity::parse(&text) {
                    self.tell(Note::new(&codes::BAD_FORM, error.to_string()), node);
                }
            }
            (
                Kind::Scalar,
                Value::Text(_)
                | Value::Integer(_)
                | Value::Number(..)
                | Value::Boolean(_)
                | Value::Plain(_),
            ) => {}
            (Kind::OneOf(allowed), Value::Text(text)) => {
                if !allowed.contains(&text.as_str()) {
                    self.not_one_of(node, text, allowed);
                }
            }
            (Kind::OneOfAnyCase(allowed), Value::Text(text)) => {
                if !allowed.iter().any(|it| it.eq_ignore_ascii_case(text)) {
                    self.not_one_of(node, text, allowed);
                }
            }
            _ => self.wrong_type(node, &describe(kind)),
        }
    }

    fn bounds(&mut self, node: &Node, number: i128, min: i64, max: i64) {
        if (i128::from(min)..=i128::from(max)).contains(&number) {
            return;
        }
        let message = if number < i128::from(min) {
            format!("{number} is too small: the least is {min}")
        } else {
            format!("{number} is too large: the most is {max}")
        };
        self.tell(Note::new(&codes::OUT_OF_RANGE, message), node);
    }

    fn not_one_of(&mut self, node: &Node, text: &str, allowed: &[&str]) {
        let message = format!("`{}` is none of {}", clipped(text), allowed.join(", "));
        let mut note = Note::new(&codes::NOT_ONE_OF, message);
        if let Some(near) = nearest(text, allowed.iter().copied()) {
            note = note.hint(format!("did you mean `{near}`?"));
        }
        self.tell(note, node);
    }

    fn wrong_type(&mut self, node: &Node, wanted: &str) {
        let message = format!("this is {}, but {wanted} is needed", node.kind_name());
        let mut note = Note::new(&codes::WRONG_TYPE, message);
        if let Some(written) = self.written(node) {
            if wanted.starts_with("text")
                && !matches!(node.value, Value::List(_) | Value::Map(_) | Value::Null)
            {
                note = note.hint(format!("quote it: \"{written}\""));
            } else if let Value::Text(text) = &node.value
                && text.trim().parse::<i64>().is_ok()
            {
                note = note.hint(format!("write it without quotes: {}", text.trim()));
            }
        }
        self.tell(note, node);
    }

    /// The value as the file has it.
    fn written(&self, node: &Node) -> Option<String> {
        let range = node.range.start as usize..node.range.end as usize;
        let text = self.document.source.and_then(|source| source.text().get(range));
        text.map(|text| clipped(text.trim())).or_else(|| node.scalar_text())
    }

    fn tell(&mut self, note: Note, node: &Node) {
        self.notes.extend(self.room.admit(note, || self.document.place(node)));
    }
}

fn fits_by_type(node: &Node, kind: &Kind) -> bool {
    match kind {
        Kind::Any => true,
        Kind::Object(_) | Kind::Map(_) => matches!(node.value, Value::Map(_)),
        Kind::List(_) | Kind::FilledList(_) => matches!(node.value, Value::List(_)),
        Kind::Integer { .. } => matches!(node.value, Value::Integer(_)),
        Kind::Boolean => matches!(node.value, Value::Boolean(_)),
        Kind::Text | Kind::FilledText | Kind::Form(_) | Kind::OneOf(_) | Kind::OneOfAnyCase(_) => {
            matches!(node.value, Value::Text(_))
        }
        Kind::Quantity => {
            matches!(node.value, Value::Integer(_) | Value::Number(..) | Value::Text(_))
        }
        Kind::Scalar => !matches!(node.value, Value::Null | Value::List(_) | Value::Map(_)),
        Kind::Nullable(inner) => node.is_null() || fits_by_type(node, inner),
        Kind::Either(kinds) => kinds.iter().any(|kind| fits_by_type(node, kind)),
    }
}

/// What a field takes, in a user's words.
pub fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Text | Kind::FilledText => "text".to_owned(),
        Kind::Form(form) => format!("text, {}", form.name),
        Kind::Integer { .. } => "a whole number".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Quantity => "an amount such as 2, 500m or 4Gi".to_owned(),
        Kind::Scalar => "a single value".to_owned(),
        Kind::OneOf(allowed) | Kind::OneOfAnyCase(allowed) => {
            format!("text, one of {}", allowed.join(", "))
        }
        Kind::Object(_) | Kind::Map(_) => "a map".to_owned(),
        Kind::List(_) | Kind::FilledList(_) => "a list".to_owned(),
        Kind::Nullable(inner) => format!("{} or null", describe(inner)),
        Kind::Either(kinds) => kinds.iter().map(describe).collect::<Vec<_>>().join(" or "),
        Kind::Any => "anything".to_owned(),
    }
}

fn unknown_key(key: &str, shape: &'static Shape) -> Note {
    let message = format!("`{}` is not a field of {}; it has no effect", clipped(key), shape.name);
    let note = Note::new(&codes::UNKNOWN_KEY, message);
    match nearest(key, shape.fields.iter().map(|field| field.name)) {
        Some(near) => note.hint(format!("did you mean `{near}`?")),
        None => note.hint("remove it, or see `unisono explain` for the fields that are known"),
    }
}

fn missing(field: &Field, shape: &'static Shape) -> Note {
    Note::new(&codes::MISSING, format!("{} needs `{}`", shape.name, field.name)).hint(format!(
        "add `{}`: {} ({})",
        field.name,
        field.doc,
        describe(&field.kind)
    ))
}

/// The candidate that a typing slip would turn into the text.
pub fn nearest<'list>(
    text: &str,
    candidates: impl Iterator<Item = &'list str>,
) -> Option<&'list str> {
    let lower = text.to_lowercase();
    candidates
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= 0.85)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// A text that fits a message, whatever a file holds.
pub fn clipped(text: &str) -> String {
    const LONGEST: usize = 60;
    let line: String =
        text.chars().take(LONGEST).map(|it| if it.is_control() { ' ' } else { it }).collect();
    if text.chars().nth(LONGEST).is_some() { format!("{line}…") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Schema, Source, scalar, yaml};

    static INNER: Shape = Shape::new(
        "Inner",
        &[
            Field::new("requests", Kind::Map(&Kind::Quantity), "what is promised"),
            Field::new("limits", Kind::Map(&Kind::Quantity), "what is allowed"),
        ],
    );
    static OUTER: Shape = Shape::new(
        "Outer",
        &[
            Field::new("name", Kind::FilledText, "the name").required(),
            Field::new("replicas", Kind::Integer { min: 1, max: 9 }, "how many"),
            Field::new("policy", Kind::OneOf(&["None", "Running", "All"]), "what stays"),
            Field::new("on", Kind::Boolean, "whether"),
            Field::new("inner", Kind::Object(&INNER), "more"),
            Field::new("items", Kind::List(&Kind::Text), "words"),
            Field::new("code", Kind::Either(&[Kind::Text, Kind::Object(&INNER)]), "two ways"),
        ],
    );

    fn told(text: &str) -> Vec<(String, &'static str, Option<String>)> {
        let source = Source::new(text.as_bytes()).expect("it is text");
        let mut root = yaml::read(&source).remove(0).root.expect("it is YAML");
        scalar::resolve(&mut root, Schema::Yaml11);
        let document = Document { source: Some(&source), root };
        check(&document, &OUTER, Leniency::default())
            .into_iter()
            .map(|note| (note.place.expect("it has a place").path, note.code.name, note.hint))
            .collect()
    }

    #[test]
    fn a_good_document_has_no_faults() {
        let text = "name: x\nreplicas: 3\npolicy: All\non: yes\ninner: {requests: {cpu: 1, memory: 2Gi}}\nitems: [a]\ncode: x\n";
        assert_eq!(told(text), []);
    }

    #[test]
    fn every_fault_is_told_with_its_path() {
        let text = "replicas: 12\npolicy: Runing\non: '1'\ninner: {request: {cpu: 1}, limits: {cpu: lots}}\nitems: [a, 3]\ncode: [1]\n";
        let told = told(text);
        let codes: Vec<_> = told.iter().map(|(path, code, _)| (path.as_str(), *code)).collect();
        assert_eq!(
            codes,
            [
                ("replicas", "out-of-range"),
                ("policy", "not-one-of"),
                ("on", "wrong-type"),
                ("inner.request", "unknown-key"),
                ("inner.limits.cpu", "bad-form"),
                ("items[1]", "wrong-type"),
                ("code", "wrong-type"),
                ("", "missing-field"),
            ]
        );
        let hint = |path: &str| told.iter().find(|it| it.0 == path).and_then(|it| it.2.clone());
        assert_eq!(hint("inner.request").as_deref(), Some("did you mean `requests`?"));
        assert_eq!(hint("policy").as_deref(), Some("did you mean `Running`?"));
        assert_eq!(hint("items[1]").as_deref(), Some("quote it: \"3\""));
    }

    #[test]
    fn a_null_means_absent() {
        assert_eq!(told("name: x\nreplicas:\ninner: ~\n"), []);
        assert_eq!(told("name:\n").len(), 1);
    }
}
