//! The two streams: standard output for data, standard error for talk, with colours only where they are wanted. What a program
//! wrote passes as it is: escapes and bytes that are no text are its own.

use std::borrow::Cow;
use std::error::Error as _;
use std::io::{self, BufWriter, Write};

use annotate_snippets::{Group, Level, Renderer};
use anstream::adapter::strip_str;
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
}

/// Whether our own words may have colours on a stream.
#[derive(Clone, Copy)]
enum Looks {
    Coloured,
    Plain,
}

impl Looks {
    fn of(wanted: ColorWhen, automatic: ColorChoice) -> Self {
        let coloured = match wanted {
            ColorWhen::Auto => automatic != ColorChoice::Never,
            ColorWhen::Always => true,
            ColorWhen::Never => false,
        };
        if coloured { Self::Coloured } else { Self::Plain }
    }

    fn dress(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Coloured => text.into(),
            Self::Plain => strip_str(text).to_string().into(),
        }
    }
}

impl Console {
    /// The streams of this process.
    pub(crate) fn new(color: ColorWhen) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            out_looks: Looks::of(color, AutoStream::choice(&out)),
            err_looks: Looks::of(color, AutoStream::choice(&err)),
            out: BufWriter::with_capacity(64 * 1024, out),
            err,
            live: Live::default(),
        }
    }

    /// Prints data.
    pub(crate) fn data(&mut self, text: &str) -> io::Result<()> {
        self.live.clear();
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

    /// Passes a program's bytes on behind words of ours.
    pub(crate) fn prefixed(
        &mut self,
        prefix: &str,
        bytes: &[u8],
        is_error: bool,
    ) -> io::Result<()> {
        let looks = if is_error { self.err_looks } else { self.out_looks };
        let line = [looks.dress(prefix).as_bytes(), bytes].concat();
        self.bytes(&line, is_error)
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
        // What cannot be written there is told here.
        let _nobody_listens = self.out.flush();
        let _nobody_listens = self.err.write_all(self.err_looks.dress(text).as_bytes());
    }

    /// Shows on a terminal what is being waited for, until something else is written.
    pub(crate) fn wait(&mut self, text: &str) {
        self.live.show(text);
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
