//! The text of a job file: from untrusted bytes to text whose positions can be told.

use unisono_job::{Note, Place, Position, Span};

use crate::codes;
use crate::tree::Range;

/// The largest file we read.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A text with its line starts.
#[derive(Clone, Debug)]
pub struct Source<'text> {
    text: &'text str,
    line_starts: Vec<u32>,
}

impl<'text> Source<'text> {
    /// Takes the bytes of a file, or says why they are no text to read.
    ///
    /// # Errors
    ///
    /// When the file is too large, empty, not UTF-8, or binary.
    pub fn new(bytes: &'text [u8]) -> Result<Self, Note> {
        if bytes.len() > MAX_BYTES {
            return Err(Note::new(
                &codes::TOO_LARGE,
                format!(
                    "the file has {} bytes; a job file may have at most {MAX_BYTES}",
                    bytes.len()
                ),
            )
            .hint("is this the job file, or the data it works on?"));
        }
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err(Note::new(&codes::NOT_TEXT, "the file is UTF-16, not UTF-8")
                .hint("save it as UTF-8: `iconv -f UTF-16 -t UTF-8 FILE`"));
        }
        if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
            return Err(Note::new(
                &codes::NOT_TEXT,
                format!("the file is binary: byte {offset} is zero"),
            )
            .hint("give the job file itself, as text"));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, &error))?;
        // Positions are told as an editor shows them, and an editor does not show the mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(Note::new(&codes::EMPTY, "the file is empty")
                .hint("`unisono init --dialect DIALECT` prints a file to start from"));
        }
        Ok(Self::from_text(text))
    }

    fn from_text(text: &'text str) -> Self {
        let line_starts = std::iter::once(0)
            .chain(text.bytes().zip(1..).filter(|(byte, _)| *byte == b'\n').map(|(_, next)| next))
            .collect();
        Self { text, line_starts }
    }

    /// The whole text.
    pub const fn text(&self) -> &'text str {
        self.text
    }

    /// The position of a byte offset; offsets past the end mean the end.
    pub fn position(&self, offset: u32) -> Position {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_starts.partition_point(|start| *start as usize <= offset);
        let start = self.line_starts.get(line.saturating_sub(1)).map_or(0, |it| *it as usize);
        let before = self.text.get(start..offset).unwrap_or_default();
        Position { offset, line, column: before.chars().count() + 1 }
    }

    /// The span of a range.
    pub fn span(&self, range: Range) -> Span {
        Span { start: self.position(range.start), end: self.position(range.end) }
    }

    /// A place in the text without a path.
    pub fn place(&self, range: Range) -> Place {
        Place { path: String::new(), span: Some(self.span(range)) }
    }
}

fn not_utf8(bytes: &[u8], error: &std::str::Utf8Error) -> Note {
    let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
    let source = Source::from_text(std::str::from_utf8(good).unwrap_or_default());
    Note::new(&codes::NOT_TEXT, "the file is not UTF-8: it is binary or in another encoding")
        .hint("save it as UTF-8")
        .at(source.place(Range::new(error.valid_up_to(), error.valid_up_to())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> &'static str {
        Source::new(bytes).expect_err("it is no text").code.name
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert_eq!(refusal(b""), "empty-file");
        assert_eq!(refusal(b" \r\n\t"), "empty-file");
        assert_eq!(refusal(b"\x7fELF\0\0"), "not-text");
        assert_eq!(refusal(b"\xff\xfea\0"), "not-text");
        assert_eq!(refusal(b"name: \xe9t\xe9"), "not-text");
        assert_eq!(refusal(&vec![b'x'; MAX_BYTES + 1]), "file-too-large");
    }

    #[test]
    fn positions_count_characters_and_skip_the_byte_order_mark() {
        let source = Source::new("\u{feff}a: ü\r\nb: x".as_bytes()).expect("it is text");
        let b = u32::try_from(source.text().find('b').unwrap()).unwrap();
        assert_eq!((source.position(5).line, source.position(5).column), (1, 5));
        assert_eq!((source.position(b).line, source.position(b).column), (2, 1));
        assert_eq!(source.position(9999).line, 2);
    }
}
