//! What a reader gathers on its way through a document: everything there is to tell, and where each value stood.

use unisono_job::{Note, Origins, Place};

use crate::codes;
use crate::tree::{Document, Entry, Node};

/// Notes and origins of one document.
pub(crate) struct Notebook<'document> {
    document: &'document Document<'document>,
    notes: Vec<Note>,
    room: Room,
    origins: Origins,
}

/// Room for notes. Nobody reads thousands, and finding the place of each would take a hostile file's square of time.
#[derive(Debug, Default)]
pub(crate) struct Room {
    faults: usize,
    others: usize,
}

impl Room {
    /// As many faults, and as many other notes, as one document may give.
    const MOST: usize = 100;

    /// The note with its place, while there is room; then once a note that there are more; then nothing.
    pub(crate) fn admit(&mut self, note: Note, place: impl FnOnce() -> Place) -> Option<Note> {
        let count = if note.is_fault() { &mut self.faults } else { &mut self.others };
        *count += 1;
        match (*count).cmp(&(Self::MOST + 1)) {
            std::cmp::Ordering::Less => Some(note.at(place())),
            std::cmp::Ordering::Equal => {
                let message = format!("there are more than {} such notes", Self::MOST);
                Some(
                    Note::new(&codes::MORE_NOTES, message)
                        .hint("the rest is told once these are gone"),
                )
            }
            std::cmp::Ordering::Greater => None,
        }
    }
}

impl<'document> Notebook<'document> {
    /// A notebook that begins with what checking the field table gave.
    pub(crate) fn new(document: &'document Document<'document>, notes: Vec<Note>) -> Self {
        Self { document, notes, room: Room::default(), origins: Origins::default() }
    }

    /// Tells something about a value.
    pub(crate) fn tell(&mut self, note: Note, node: &Node) {
        self.notes.extend(self.room.admit(note, || self.document.place(node)));
    }

    /// Tells something about a key.
    pub(crate) fn tell_key(&mut self, note: Note, entry: &Entry) {
        self.notes.extend(self.room.admit(note, || self.document.key_place(entry)));
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
        let Self { document: _, mut notes, room: _, origins } = self;
        let offset = |note: &Note| note.place.as_ref().and_then(|place| place.span);
        // What has no place of its own (that there is more) comes last; objects, which have none at all, keep their order.
        notes.sort_by_key(|note| offset(note).map_or(usize::MAX, |span| span.start.offset));
        (notes, origins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_warnings_does_not_hide_a_fault() {
        let mut room = Room::default();
        let mut told =
            |code| room.admit(Note::new(code, "x"), Place::default).map(|note| note.code.name);
        let warnings: Vec<_> = (0..500).filter_map(|_| told(&codes::UNKNOWN_KEY)).collect();
        assert_eq!((warnings.len(), warnings.last()), (101, Some(&"more-notes")));
        assert_eq!(told(&codes::MISSING), Some("missing-field"));
    }
}
