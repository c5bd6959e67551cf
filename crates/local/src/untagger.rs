//! Lines as ranks wrote them: what a launcher passes on enters, whole lines with their rank leave.
//!
//! A launcher reads its ranks' output in pieces and puts a tag before each, wherever the piece begins. So a tag can stand in the
//! middle of a line, and two ranks' pieces on one line.

use std::collections::BTreeMap;

use crate::tagged::{Line, TagForm, untag};

/// A line longer than this is handed on in pieces, so that memory stays bounded.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;

/// A line, or a piece of a long one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The rank that wrote it; absent when there was no tag.
    pub rank: Option<u32>,
    /// The host of that rank, when its tag tells.
    pub host: Option<String>,
    /// Whether it was standard error; absent when the tag does not tell.
    pub is_error: Option<bool>,
    /// What was written, with the line's end if there was one.
    pub bytes: Vec<u8>,
}

/// Takes tags off one stream.
#[derive(Debug)]
pub(crate) struct Untagger {
    form: TagForm,
    /// Lines whose end has not come yet, by who writes them.
    open: BTreeMap<(u32, Option<bool>), Piece>,
    /// Who wrote the last bytes, when they did not end their line.
    cut: Option<Writer>,
}

type Writer = (Option<u32>, Option<String>, Option<bool>);

impl Untagger {
    /// For a launcher that tags in this form.
    pub(crate) const fn new(form: TagForm) -> Self {
        Self { form, open: BTreeMap::new(), cut: None }
    }

    /// Takes bytes up to a line's end, or as many as are read at once; gives what is complete.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Vec<Piece> {
        let mut complete = Vec::new();
        let mut writer = self.cut.take();
        if writer.is_none() {
            let first = untag(bytes, self.form);
            writer = Some(writer_of(&first));
            bytes = first.text;
        }
        loop {
            let next = self.next_tag(bytes, writer.as_ref());
            let end = next.map_or(bytes.len(), |(at, _)| at);
            let text = bytes.get(..end).unwrap_or_default();
            complete.extend(self.add(writer.clone().unwrap_or_default(), text));
            let Some((_, line)) = next else {
                break;
            };
            writer = Some(writer_of(&line));
            bytes = line.text;
        }
        self.cut = writer.filter(|_| !bytes.ends_with(b"\n"));
        complete
    }

    /// What is left when the stream has ended.
    pub(crate) fn rest(self) -> impl Iterator<Item = Piece> {
        self.open.into_values()
    }

    /// The next tag inside a rank's text. What no rank wrote is left as it is.
    fn next_tag<'text>(
        &self,
        bytes: &'text [u8],
        writer: Option<&Writer>,
    ) -> Option<(usize, Line<'text>)> {
        writer?.0?;
        let brackets = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'[');
        brackets.map(|(at, _)| at).find_map(|at| {
            let line = untag(bytes.get(at..)?, self.form);
            line.rank.map(|_| (at, line))
        })
    }

    fn add(&mut self, (rank, host, is_error): Writer, text: &[u8]) -> Option<Piece> {
        let Some(number) = rank else {
            let bytes = text.to_vec();
            return (!text.is_empty()).then_some(Piece { rank, host, is_error, bytes });
        };
        let key = (number, is_error);
        let new = || Piece { rank, host, is_error, bytes: Vec::new() };
        let open = self.open.entry(key).or_insert_with(new);
        open.bytes.extend_from_slice(text);
        if text.ends_with(b"\n") || open.bytes.len() >= LONGEST_LINE {
            return self.open.remove(&key);
        }
        None
    }
}

fn writer_of(line: &Line<'_>) -> Writer {
    (line.rank, line.host.map(str::to_owned), line.is_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(form: TagForm, chunks: &[&str]) -> Vec<(Option<u32>, String)> {
        let mut untagger = Untagger::new(form);
        let mut pieces: Vec<Piece> =
            chunks.iter().flat_map(|chunk| untagger.take(chunk.as_bytes())).collect();
        pieces.extend(untagger.rest());
        let text = |piece: &Piece| String::from_utf8_lossy(&piece.bytes).into_owned();
        pieces.iter().map(|piece| (piece.rank, text(piece))).collect()
    }

    fn wrote(rank: u32, text: &str) -> (Option<u32>, String) {
        (Some(rank), text.to_owned())
    }

    #[test]
    fn a_tag_inside_a_line_is_taken_out() {
        let line = "[1,0]<stdout>:00[1,0]<stdout>:41\n";
        assert_eq!(told(TagForm::OpenMpi4, &[line]), [wrote(0, "0041\n")]);
        assert_eq!(told(TagForm::Hydra, &["[2@w] a b[2@w] c\n"]), [wrote(2, "a bc\n")]);
    }

    #[test]
    fn two_ranks_on_one_line_are_taken_apart() {
        let lines = ["[1,0]<stdout>:ab[1,1]<stdout>:xy\n", "[1,0]<stdout>:cd\n"];
        assert_eq!(told(TagForm::OpenMpi4, &lines), [wrote(1, "xy\n"), wrote(0, "abcd\n")]);
    }

    #[test]
    fn standard_error_and_output_of_a_rank_are_two_lines() {
        let lines = ["[1,0]<stdout>:ab[1,0]<stderr>:oh\n", "[1,0]<stdout>:cd\n"];
        assert_eq!(told(TagForm::OpenMpi4, &lines), [wrote(0, "oh\n"), wrote(0, "abcd\n")]);
    }

    #[test]
    fn a_long_line_that_is_read_in_pieces_stays_its_ranks() {
        let long = "x".repeat(LONGEST_LINE);
        let first = format!("[1,3]<stdout>:{long}");
        let told = told(TagForm::OpenMpi4, &[&first, "y\n", "[1,3]<stdout>:z\n"]);
        assert_eq!(told, [wrote(3, &long), wrote(3, "y\n"), wrote(3, "z\n")]);
    }

    #[test]
    fn what_the_launcher_says_itself_and_the_last_line_without_an_end_are_kept() {
        let told = told(TagForm::OpenMpi4, &["mpirun: [1,0]<stdout>:\n", "[1,0]<stdout>:end"]);
        assert_eq!(told, [(None, "mpirun: [1,0]<stdout>:\n".to_owned()), wrote(0, "end")]);
    }
}
