//! The two streams: standard output for data, standard error for talk, with colours only where they are wanted. What a program
//! wrote passes as it is: escapes and bytes that are no text are its own.

use std::borrow::Cow;
use std::error::Error as _;
use std::io::{self, BufWriter, Write};

use annotate_snippets::{Group, Level, Renderer};
use anstream::adapter::strip_str;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use unisono_job::{Note, Severity};

use crate::error::Error;
use crate::exit::Exit;
use crate::job_file::JobFile;
use crate::report::live::Live;
use crate::report::note::rendered;
use crate::settings::ColorWhen;

/// The streams of the program.
pub(crate) struct Console {
    out: BufWriter<io::Stdout>,
    err: io::Stderr,
    out_looks: Looks,
    err_looks: Looks,
    live: Live,
    unended: Option<Unended>,
}

/// The line that is shown and has not ended.
struct Unended {
    /// What stands before it.
    prefix: String,
    is_error: bool,
    /// Whether it is drawn anew, from its beginning.
    anew: bool,
}

/// What a stream can show of our own words.
#[derive(Clone, Copy)]
struct Looks {
    coloured: bool,
    /// Whether a carriage return makes the next words appear in place of the last.
    redraws: bool,
}

impl Looks {
    fn of(stream: &impl RawStream, wanted: ColorWhen) -> Self {
        let coloured = match wanted {
            ColorWhen::Auto => AutoStream::choice(stream) != ColorChoice::Never,
            ColorWhen::Always => true,
            ColorWhen::Never => false,
        };
        Self { coloured, redraws: stream.is_terminal() }
    }

    fn dress(self, text: &str) -> Cow<'_, str> {
        match self.coloured {
            true => text.into(),
            false => strip_str(text).to_string().into(),
        }
    }

    /// A program's bytes behind words of ours, which stand before what is drawn over them, too.
    fn behind(self, prefix: &str, bytes: &[u8], before: Before) -> Vec<u8> {
        let prefix = self.dress(prefix);
        let mut line = Vec::with_capacity(prefix.len() + bytes.len());
        let mut before = before;
        for part in bytes.split_inclusive(|byte| self.redraws && *byte == b'\r') {
            // A line's end behind a carriage return draws nothing.
            let draws = before == Before::LineEnd || (before == Before::Return && part != b"\n");
            line.extend_from_slice(if draws { prefix.as_bytes() } else { b"" });
            line.extend_from_slice(part);
            before = Before::Return;
        }
        line
    }
}

/// What stands before a program's bytes on their stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    LineEnd,
    /// A carriage return of the same line.
    Return,
    /// The beginning of the same line.
    Line,
}

impl Console {
    /// The streams of this process.
    pub(crate) fn new(color: ColorWhen) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            out_looks: Looks::of(&out, color),
            err_looks: Looks::of(&err, color),
            out: BufWriter::with_capacity(64 * 1024, out),
            err,
            live: Live::default(),
            unended: None,
        }
    }

    /// Prints data.
    pub(crate) fn data(&mut self, text: &str) -> io::Result<()> {
        self.live.clear();
        self.end_line()?;
        self.out.write_all(self.out_looks.dress(text).as_bytes())?;
        self.out.flush()
    }

    /// Prints one JSON document.
    pub(crate) fn json(&mut self, document: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(document).map_err(io::Error::from)?;
        text.push('\n');
        self.document(&text)
    }

    /// Prints one JSON line.
    pub(crate) fn json_line(&mut self, document: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(document).map_err(io::Error::from)?;
        text.push('\n');
        self.document(&text)
    }

    /// Prints what a program reads, as it is.
    fn document(&mut self, text: &str) -> io::Result<()> {
        self.live.clear();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Passes a program's line, or a piece of one, on behind words of ours, which also tell who wrote it. A piece goes on where the
    /// last one ended if that was the same writer's, else on a line of its own. A line that is drawn again keeps the words.
    pub(crate) fn prefixed(
        &mut self,
        prefix: &str,
        bytes: &[u8],
        is_error: bool,
    ) -> io::Result<()> {
        let before = match &self.unended {
            Some(it) if (it.prefix.as_str(), it.is_error) == (prefix, is_error) => {
                if it.anew {
                    Before::Return
                } else {
                    Before::Line
                }
            }
            Some(_) | None => {
                self.end_line()?;
                Before::LineEnd
            }
        };
        let looks = if is_error { self.err_looks } else { self.out_looks };
        let line = looks.behind(prefix, bytes, before);
        self.unended = (!bytes.ends_with(b"\n")).then(|| {
            let anew = looks.redraws && bytes.ends_with(b"\r");
            Unended { prefix: prefix.to_owned(), is_error, anew }
        });
        self.bytes(&line, is_error)
    }

    /// Ends the line that was shown last, if it has not ended.
    fn end_line(&mut self) -> io::Result<()> {
        match self.unended.take() {
            Some(line) => self.bytes(b"\n", line.is_error),
            None => Ok(()),
        }
    }

    /// Passes a program's bytes on, to the stream that it wrote them to. They may wait for [`Self::flush`].
    pub(crate) fn bytes(&mut self, bytes: &[u8], is_error: bool) -> io::Result<()> {
        self.live.clear();
        if is_error {
            // Whoever sees both streams sees them in order.
            let flushed = self.out.flush();
            return self.err.write_all(bytes).and(flushed);
        }
        self.out.write_all(bytes)
    }

    /// Lets go what [`Self::bytes`] took.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Talks. Nobody listening is no reason to stop the work.
    pub(crate) fn talk(&mut self, text: &str) {
        self.live.clear();
        let _nobody_listens = self.end_line();
        // What cannot be written there is told here.
        let _nobody_listens = self.out.flush();
        let _nobody_listens = self.err.write_all(self.err_looks.dress(text).as_bytes());
    }

    /// Shows on a terminal what is being waited for, until something else is written.
    pub(crate) fn wait(&mut self, text: &str) {
        self.live.show(text);
    }

    /// Whether what is being waited for can be shown so.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn has_live_line(&self) -> bool {
        Live::is_seen()
    }

    /// Talks about a job file, each note with its line.
    pub(crate) fn notes<'note>(
        &mut self,
        file: &JobFile,
        notes: impl IntoIterator<Item = &'note Note>,
    ) {
        for note in notes {
            let text = rendered(note, &file.name, &file.text);
            self.talk(&format!("{text}\n"));
        }
    }

    /// Tells why a command that understood everything still did nothing.
    pub(crate) fn refuse(&mut self, message: &str) {
        let text = headline(Level::ERROR, message, None);
        self.talk(&text);
    }

    /// Talks about a plan; notes that say that all is well, and ask for nothing, are left out.
    pub(crate) fn plan_notes(&mut self, notes: &[Note]) {
        let worth_telling = |note: &&Note| note.severity() > Severity::Note || note.hint.is_some();
        for note in notes.iter().filter(worth_telling) {
            let is_note = note.severity() == Severity::Note;
            let level = if is_note { Level::NOTE } else { Level::WARNING };
            let text = headline(level, &note.message, note.hint.as_deref());
            self.talk(&text);
        }
    }

    /// Talks about what this machine makes of a job.
    pub(crate) fn machine_notes(&mut self, notes: &[Note]) {
        for note in notes {
            let level = match note.severity() {
                Severity::Note => Level::NOTE,
                Severity::Warning => Level::WARNING,
                Severity::Error => Level::ERROR,
            };
            self.talk(&headline(level, &note.message, note.hint.as_deref()));
        }
    }

    /// Warns about settings.
    pub(crate) fn warn(&mut self, warnings: &[String]) {
        for warning in warnings {
            let text = headline(Level::WARNING, warning, None);
            self.talk(&text);
        }
    }

    /// Tells what is wrong, and what to do about it.
    pub(crate) fn help(&mut self, message: &str, hint: &str) {
        let text = headline(Level::ERROR, message, Some(hint));
        self.talk(&text);
    }

    /// Tells why a command could not do its work, with all causes and advice, and says how to exit.
    pub(crate) fn fail(&mut self, error: &Error) -> Exit {
        let exit = error.exit();
        if exit != Exit::Fine {
            let mut message = error.to_string();
            let mut cause = error.source();
            while let Some(next) = cause {
                message = format!("{message}: {next}");
                cause = next.source();
            }
            let text = headline(Level::ERROR, &message, error.hint().as_deref());
            self.talk(&text);
        }
        exit
    }
}

/// Prints help, the version, or what is wrong with the command line.
pub(crate) fn usage(error: &clap::Error) -> Exit {
    let printed = error.print();
    match (error.use_stderr(), printed) {
        (true, _) => Exit::Usage,
        (false, Ok(())) => Exit::Fine,
        (false, Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Fine,
        (false, Err(_)) => Exit::Usage,
    }
}

/// A message without a place.
fn headline(level: Level<'_>, message: &str, hint: Option<&str>) -> String {
    let help = hint.map(|hint| Level::HELP.message(hint.to_owned()));
    let title = level.primary_title(message);
    let group = match help {
        Some(help) => title.element(help),
        None => Group::with_title(title),
    };
    Renderer::styled().render(&[group]) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(redraws: bool, before: Before, bytes: &str) -> String {
        let looks = Looks { coloured: false, redraws };
        String::from_utf8_lossy(&looks.behind("0 |", bytes.as_bytes(), before)).into_owned()
    }

    #[test]
    fn what_is_drawn_over_a_line_stands_behind_the_same_words() {
        let shown = |before, bytes| shown(true, before, bytes);
        assert_eq!(shown(Before::LineEnd, "a\n"), "0 |a\n");
        assert_eq!(shown(Before::LineEnd, "\n"), "0 |\n");
        assert_eq!(shown(Before::LineEnd, "a\r\n"), "0 |a\r\n");
        assert_eq!(shown(Before::LineEnd, "10%\r20%\r"), "0 |10%\r0 |20%\r");
        assert_eq!(shown(Before::Return, "30%"), "0 |30%");
        assert_eq!(shown(Before::Return, "\n"), "\n");
        assert_eq!(shown(Before::Line, "\r 30%"), "\r0 | 30%");
        assert_eq!(shown(Before::Line, "b\n"), "b\n");
    }

    #[test]
    fn a_file_has_the_words_once_a_line() {
        assert_eq!(shown(false, Before::LineEnd, "10%\r20%\n"), "0 |10%\r20%\n");
    }
}
