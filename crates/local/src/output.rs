//! What hosts write, line by line: bytes come out of pipes, lines go into a bounded channel. A slow reader slows the writer; nothing is lost.

use std::io::{BufRead as _, BufReader, ErrorKind, Read};
use std::sync::mpsc::SyncSender;
use std::thread;

use unisono_plan::Incarnation;

use crate::Happening;
use crate::untagger::{LONGEST_LINE, Piece, Reading, Untagger};

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
    reading: Reading,
    happenings: SyncSender<Happening>,
) -> thread::JoinHandle<()> {
    let hand_on = move |piece: Piece| {
        let Piece { rank, host, is_error: told, bytes } = piece;
        let is_error = told.unwrap_or(is_error);
        let written = Written { incarnation, rank, host, is_error, bytes };
        // Nobody listens any more: the run is over, and the pipe ends with its writer.
        happenings.send(Happening::Wrote(written)).is_ok()
    };
    thread::spawn(move || {
        let mut stream = BufReader::with_capacity(LONGEST_LINE, stream);
        let mut untagger = Untagger::new(reading);
        let mut line = Vec::new();
        loop {
            let mut unread = match stream.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok([]) | Err(_) => break,
                Ok(bytes) => bytes,
            };
            let length = unread.len();
            while !unread.is_empty() {
                line.clear();
                // Reading from memory cannot fail.
                let _read = unread.read_until(b'\n', &mut line);
                if !untagger.take(&line).into_iter().all(&hand_on) {
                    return;
                }
            }
            stream.consume(length);
        }
        let _all_taken = untagger.rest().all(&hand_on);
    })
}
