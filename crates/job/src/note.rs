//! What we tell a user about a job file: faults, warnings and notes, all of one shape.

use serde::Serialize;

use crate::Place;

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Which kind of thing.
    pub code: &'static Code,
    /// What is the matter, as a sentence.
    pub message: String,
    /// What to type instead, or what to do.
    pub hint: Option<String>,
    /// Where it stands.
    pub place: Option<Place>,
}

/// A kind of note, with a stable name that people can look up.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// The stable name, such as `unknown-key`.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One line for lists.
    pub summary: &'static str,
    /// What `unisono explain` prints.
    pub explanation: &'static str,
}

/// How bad a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Probably not what was meant; the job still runs.
    Warning,
    /// The job cannot run.
    Error,
}

impl Note {
    /// A note without hint and place.
    pub fn new(code: &'static Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, place: None }
    }

    /// The note with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The note with a place.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<Place>>) -> Self {
        self.place = place.into();
        self
    }

    /// How bad it is.
    pub const fn severity(&self) -> Severity {
        self.code.severity
    }

    /// Whether the job cannot run because of it.
    pub fn is_fault(&self) -> bool {
        self.severity() == Severity::Error
    }
}
