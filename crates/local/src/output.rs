//! What hosts write, line by line: bytes come out of pipes, lines go into a bounded channel. A slow reader slows the writer; nothing is lost.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::SyncSender;
use std::thread;

use unisono_plan::Incarnation;

use crate::Happening;
use crate::tagged::TagForm;
use crate::untagger::{LONGEST_LINE, Piece, Untagger};

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
    let hand_on = move |piece: Piece| {
        let Piece { rank, host, is_error: told, bytes } = piece;
        let is_error = told.unwrap_or(is_error);
        let written = Written { incarnation, rank, host, is_error, bytes };
        // Nobody listens any more: the run is over, and the pipe ends with its writer.
        happenings.send(Happening::Wrote(written)).is_ok()
    };
    thread::spawn(move || {
        let mut stream = BufReader::with_capacity(LONGEST_LINE, stream);
        let mut untagger = tags.map(Untagger::new);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = stream.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
            if !matches!(read, Ok(length) if length > 0) {
                break;
            }
            let complete = match &mut untagger {
                Some(untagger) => untagger.take(&line),
                None => vec![Piece { bytes: line.clone(), ..Piece::default() }],
            };
            if !complete.into_iter().all(&hand_on) {
                return;
            }
        }
        let _all_taken = untagger.into_iter().flat_map(Untagger::rest).all(&hand_on);
    })
}
