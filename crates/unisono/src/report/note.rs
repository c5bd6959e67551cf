//! A note: with the line it stands on, for people; with its fields, for programs.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;
use unisono_job::{Note, Severity, Span};

/// A note's fields, as JSON documents have them.
#[derive(Debug, Serialize)]
pub(crate) struct NoteView<'note> {
    code: &'static str,
    severity: Severity,
    message: &'note str,
    hint: Option<&'note str>,
    line: Option<usize>,
    column: Option<usize>,
    path: Option<&'note str>,
}

impl<'note> NoteView<'note> {
    /// The fields of a note.
    pub(crate) fn of(note: &'note Note) -> Self {
        let start = note.place.as_ref().and_then(|place| place.span).map(|span| span.start);
        Self {
            code: note.code.name,
            severity: note.severity(),
            message: &note.message,
            hint: note.hint.as_deref(),
            line: start.map(|it| it.line),
            column: start.map(|it| it.column),
            path: note.place.as_ref().map(|place| place.path.as_str()),
        }
    }
}

/// A note with the line it stands on.
pub(crate) fn rendered(note: &Note, file: &str, text: &str) -> String {
    let level = match note.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(note.message.as_str()).id(note.code.name);
    let span = note.place.as_ref().and_then(|place| place.span);
    let path = note.place.as_ref().map_or("", |place| place.path.as_str());
    let mut group = Group::with_title(title);
    group = match span.and_then(|span| Some((span, Window::around(text, span)?))) {
        Some((span, window)) => group.element(
            Snippet::source(window.line).line_start(span.start.line).path(file).annotation(
                AnnotationKind::Primary
                    .span(window.start..window.end)
                    .label((!path.is_empty()).then_some(path)),
            ),
        ),
        None => {
            let start = span.map(|span| span.start);
            let origin = Origin::path(file);
            group.element(match start {
                Some(start) => origin.line(start.line).char_column(start.column),
                None => origin,
            })
        }
    };
    if let Some(hint) = &note.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    Renderer::styled().render(&[group]) + "\n"
}

/// The part of the text that is shown: one line, however large the file and whatever the span covers.
struct Window<'text> {
    line: &'text str,
    start: usize,
    end: usize,
}

impl<'text> Window<'text> {
    fn around(text: &'text str, span: Span) -> Option<Self> {
        let (before, after) = text.split_at_checked(span.start.offset)?;
        let first = before.rfind('\n').map_or(0, |at| at + 1);
        let rest = after.find('\n').unwrap_or(after.len());
        let line = text.get(first..span.start.offset + rest)?.trim_end_matches('\r');
        // A job file may be one line of megabytes; the report need not.
        const LONGEST: usize = 4096;
        if line.len() > LONGEST {
            return None;
        }
        let start = (span.start.offset - first).min(line.len());
        let end = span.end.offset.saturating_sub(first).clamp(start, line.len());
        line.is_char_boundary(end).then_some(Self { line, start, end })
    }
}
