//! What hosts write, line by line: bytes come out of pipes, lines go into a bounded channel. A slow reader slows the writer; nothing is lost.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::SyncSender;
use std::thread;

use unisono_plan::Incarnation;

use crate::Happening;
use crate::tagged::{Line, TagForm, untag};

/// A line longer than this is handed on in pieces, so that memory stays bounded.
const LONGEST_LINE: u64 = 64 * 1024;

/// One line (or piece of a long one) that a host wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Who wrote it.
    pub incarnation: Incarnation,
    /// The rank that wrote it, when its launcher tells.
    pub rank: Option<u32>,
    /// The host of that rank, when its launcher tells.
    pub host: Option<String>,
    /// Whether it was standard error.
    pub is_error: bool,
    /// The bytes, with the line end if there was one.
    pub bytes: Vec<u8>,
}

/// Reads a stream to its end in a thread of its own.
pub(crate) fn pump(
    stream: impl Read + Send + 'static,
    incarnation: Incarnation,
    is_error: bool,
    tags: Option<TagForm>,
    happenings: SyncSender<Happening>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = BufReader::with_capacity(64 * 1024, stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            if !matches!(read, Ok(length) if length > 0) {
                return;
            }
            let told = tags.map_or(untagged(&line), |form| untag(&line, form));
            let written = Written {
                incarnation,
                rank: told.rank,
                host: told.host.map(str::to_owned),
                is_error: told.is_error.unwrap_or(is_error),
                bytes: told.text.to_vec(),
            };
            // Nobody listens any more: the run is over, and the pipe ends with its writer.
            if happenings.send(Happening::Wrote(written)).is_err() {
                return;
            }
        }
    })
}

const fn untagged(line: &[u8]) -> Line<'_> {
    Line { rank: None, host: None, is_error: None, text: line }
}
