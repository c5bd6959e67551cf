//! What a reader gathers on its way through a document: everything there is to tell, and where each value stood.

use unisono_job::{Note, Origins};

use crate::tree::{Document, Entry, Node};

/// Notes and origins of one document.
pub(crate) struct Notebook<'document> {
    document: &'document Document<'document>,
    notes: Vec<Note>,
    origins: Origins,
}

impl<'document> Notebook<'document> {
    /// A notebook that begins with what checking the field table gave.
    pub(crate) fn new(document: &'document Document<'document>, notes: Vec<Note>) -> Self {
        Self { document, notes, origins: Origins::default() }
    }

    /// Tells something about a value.
    pub(crate) fn tell(&mut self, note: Note, node: &Node) {
        self.notes.push(self.document.note(note, node));
    }

    /// Tells something about a key.
    pub(crate) fn tell_key(&mut self, note: Note, entry: &Entry) {
        self.notes.push(note.at(self.document.key_place(entry)));
    }

    /// Remembers where a value of the job stood.
    pub(crate) fn origin(&mut self, key: impl Into<String>, node: Option<&Node>) {
        if let Some(node) = node {
            self.origins.set(key, self.document.place(node));
        }
    }

    /// Whether anything told so far keeps the job from running.
    pub(crate) fn has_faults(&self) -> bool {
        self.notes.iter().any(Note::is_fault)
    }

    /// The origins gathered so far, for the job, and the notes, in the order of the file.
    pub(crate) fn finish(self) -> (Vec<Note>, Origins) {
        let Self { document: _, mut notes, origins } = self;
        let offset = |note: &Note| note.place.as_ref().and_then(|place| place.span);
        notes.sort_by_key(|note| offset(note).map_or(0, |span| span.start.offset));
        (notes, origins)
    }
}
