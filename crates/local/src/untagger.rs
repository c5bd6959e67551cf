//! Lines as ranks wrote them: what a launcher passes on enters, whole lines with their rank leave.
//!
//! A launcher reads its ranks' output in pieces and puts a tag before each, wherever the piece begins. So a tag can stand in the
//! middle of a line, and two ranks' pieces on one line. We read in pieces, too, so a tag can be cut anywhere: what may be the
//! beginning of one is held back until it is known.

use std::collections::BTreeMap;

use unisono_agent::tags::TagForm;

use crate::tagged::{Begins, Line, begins};

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

/// How a stream is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// How ranks are told, if they are.
    pub(crate) tags: Option<TagForm>,
    /// Whether lines that are drawn again and again, by a carriage return, are handed on as far as they are drawn.
    pub(crate) at_once: bool,
}

/// Takes tags off one stream.
#[derive(Debug)]
pub(crate) struct Untagger {
    reading: Reading,
    /// Lines whose end has not come yet, by who writes them.
    open: BTreeMap<(Option<u32>, Option<bool>), Open>,
    /// Who wrote the last bytes, when they did not end their line.
    cut: Option<Cut>,
    /// The beginning of what may be a tag.
    held: Vec<u8>,
}

/// A line whose end has not come yet.
#[derive(Debug, Default)]
struct Open {
    piece: Piece,
    /// Whether it has a carriage return: it is drawn again and again.
    redrawn: bool,
}

#[derive(Clone, Debug, Default)]
struct Cut {
    rank: Option<u32>,
    host: Option<String>,
    is_error: Option<bool>,
    /// Whether a tag has just ended. Launchers put no tag right behind another, so what looks like one is a rank's text.
    behind_tag: bool,
}

impl Cut {
    fn behind(line: &Line<'_>) -> Self {
        let host = line.host.map(str::to_owned);
        Self { rank: Some(line.rank), host, is_error: line.is_error, behind_tag: true }
    }
}

impl Untagger {
    /// For a stream that is read so.
    pub(crate) const fn new(reading: Reading) -> Self {
        Self { reading, open: BTreeMap::new(), cut: None, held: Vec::new() }
    }

    /// Takes bytes up to a line's end, or as many as are read at once; gives what is complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Piece> {
        if self.held.is_empty() {
            return self.take_apart(bytes);
        }
        let held = std::mem::take(&mut self.held);
        self.take_apart(&[&held, bytes].concat())
    }

    /// What is left when the stream has ended.
    pub(crate) fn rest(mut self) -> impl Iterator<Item = Piece> {
        let held = std::mem::take(&mut self.held);
        let writer = self.cut.take().unwrap_or_default();
        let last = self.add(&writer, &held);
        let open = self.open.into_values().map(|open| open.piece);
        last.into_iter().chain(open).filter(|piece| !piece.bytes.is_empty())
    }

    fn take_apart(&mut self, mut bytes: &[u8]) -> Vec<Piece> {
        let mut complete = Vec::new();
        let mut writer = match (self.cut.take(), self.begins(bytes)) {
            (Some(writer), _) => writer,
            (None, Begins::Text) => Cut::default(),
            (None, Begins::Tag(line)) => {
                bytes = line.text;
                Cut::behind(&line)
            }
            (None, Begins::Unfinished) => {
                self.held = bytes.to_vec();
                return complete;
            }
        };
        loop {
            let (at, next) = self.next_tag(bytes, &writer);
            let (text, rest) = bytes.split_at(at);
            complete.extend(self.add(&writer, text));
            writer.behind_tag &= text.is_empty();
            match next {
                Begins::Tag(line) => {
                    writer = Cut::behind(&line);
                    bytes = line.text;
                }
                Begins::Unfinished => {
                    self.held = rest.to_vec();
                    self.cut = Some(writer);
                    return complete;
                }
                Begins::Text => {
                    self.cut = Some(writer).filter(|_| !text.ends_with(b"\n"));
                    return complete;
                }
            }
        }
    }

    fn begins<'text>(&self, bytes: &'text [u8]) -> Begins<'text> {
        self.reading.tags.map_or(Begins::Text, |form| begins(bytes, form))
    }

    /// Where the next tag inside a rank's text stands, or its beginning. What no rank wrote is left as it is.
    fn next_tag<'text>(&self, bytes: &'text [u8], writer: &Cut) -> (usize, Begins<'text>) {
        if writer.rank.is_none() {
            return (bytes.len(), Begins::Text);
        }
        let brackets = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'[');
        let places = brackets.map(|(at, _)| at).skip_while(|at| writer.behind_tag && *at == 0);
        let mut tags = places.map(|at| (at, self.begins(bytes.get(at..).unwrap_or_default())));
        tags.find(|(_, tag)| *tag != Begins::Text).unwrap_or((bytes.len(), Begins::Text))
    }

    fn add(&mut self, writer: &Cut, text: &[u8]) -> Option<Piece> {
        if text.is_empty() {
            return None;
        }
        let key = (writer.rank, writer.is_error);
        let open = self.open.entry(key).or_default();
        if open.piece.bytes.is_empty() {
            let (host, bytes) = (writer.host.clone(), Vec::new());
            open.piece = Piece { rank: writer.rank, host, is_error: writer.is_error, bytes };
        }
        open.piece.bytes.extend_from_slice(text);
        if text.ends_with(b"\n") {
            return self.open.remove(&key).map(|open| open.piece);
        }
        open.redrawn = open.redrawn || (self.reading.at_once && text.contains(&b'\r'));
        let is_enough = open.redrawn || open.piece.bytes.len() >= LONGEST_LINE;
        is_enough.then(|| std::mem::take(&mut open.piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(form: TagForm, chunks: &[&str]) -> Vec<(Option<u32>, String)> {
        let mut untagger = Untagger::new(Reading { tags: Some(form), at_once: false });
        let mut pieces: Vec<Piece> =
            chunks.iter().flat_map(|chunk| untagger.take(chunk.as_bytes())).collect();
        pieces.extend(untagger.rest());
        let text = |piece: &Piece| String::from_utf8_lossy(&piece.bytes).into_owned();
        pieces.iter().map(|piece| (piece.rank, text(piece))).collect()
    }

    const HYDRA: TagForm = TagForm::Hydra(None);

    fn wrote(rank: u32, text: &str) -> (Option<u32>, String) {
        (Some(rank), text.to_owned())
    }

    #[test]
    fn a_tag_inside_a_line_is_taken_out() {
        let line = "[1,0]<stdout>:00[1,0]<stdout>:41\n";
        assert_eq!(told(TagForm::OpenMpi4, &[line]), [wrote(0, "0041\n")]);
        assert_eq!(told(HYDRA, &["[2@w] a b[2@w] c\n"]), [wrote(2, "a bc\n")]);
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
    fn tags_that_are_cut_at_any_place_are_taken_out() {
        let lines = [
            (TagForm::OpenMpi4, "[1,0]<stdout>:ab[1,10]<stderr>:x[y\n[1,0]<stdout>:cd\n"),
            (
                TagForm::Prrte,
                "[1,0][w:5]<stdout>: ab[1,10][w:6]<stderr>: x[y\n[1,0][w:5]<stdout>: cd\n",
            ),
            (HYDRA.marked(7), "[0@w:00000007] ab[10@w:00000007] x[y\n[0@w:00000007] cd\n"),
        ];
        for (form, line) in lines {
            for cut in 0..line.len() {
                let (first, second) = line.split_at(cut);
                // As they are read: never beyond a line's end.
                let chunks: Vec<&str> =
                    [first, second].iter().flat_map(|it| it.split_inclusive('\n')).collect();
                let told = told(form, &chunks);
                assert_eq!(told, [wrote(10, "x[y\n"), wrote(0, "abcd\n")], "{form:?} {cut}");
            }
        }
    }

    #[test]
    fn words_of_a_rank_that_look_like_a_tag_are_its_own() {
        for (form, tag) in [
            (TagForm::OpenMpi4, "[1,0]<stdout>:"),
            (TagForm::Prrte, "[1,0][w:5]<stdout>: "),
            (HYDRA, "[0@w] "),
        ] {
            let line = format!("{tag}{tag}x\n");
            let expected = wrote(0, &format!("{tag}x\n"));
            for cut in 0..line.len() {
                let (first, second) = line.split_at(cut);
                assert_eq!(
                    told(form, &[first, second]),
                    std::slice::from_ref(&expected),
                    "{line:?} {cut}"
                );
            }
        }
        // With a mark, anywhere.
        let line = "[0@w:00000007] x[3@w] y\n";
        assert_eq!(told(HYDRA.marked(7), &[line]), [wrote(0, "x[3@w] y\n")]);
    }

    #[test]
    fn what_looks_like_the_beginning_of_a_tag_at_the_very_end_is_kept() {
        assert_eq!(told(TagForm::OpenMpi4, &["[1,0]<stdout>:a[1,"]), [wrote(0, "a[1,")]);
        assert_eq!(told(TagForm::OpenMpi4, &["[1,"]), [(None, "[1,".to_owned())]);
    }

    #[test]
    fn a_line_that_is_drawn_again_is_handed_on_as_far_as_it_is_drawn() {
        let pieces = |at_once, chunks: &[&str]| {
            let mut untagger = Untagger::new(Reading { tags: None, at_once });
            let mut told: Vec<String> = Vec::new();
            for chunk in chunks {
                let pieces = untagger.take(chunk.as_bytes()).into_iter();
                told.extend(pieces.map(|it| String::from_utf8_lossy(&it.bytes).into_owned()));
            }
            told
        };
        let drawn = ["10%\r", "20%\r", "done\n", "a", "b\n", "\r 1", "2", "\n"];
        let at_once = ["10%\r", "20%\r", "done\n", "ab\n", "\r 1", "2", "\n"];
        assert_eq!(pieces(true, &drawn), at_once);
        assert_eq!(pieces(false, &drawn), ["10%\r20%\rdone\n", "ab\n", "\r 12\n"]);
        assert_eq!(pieces(true, &["a\r\n"]), ["a\r\n"]);
    }

    #[test]
    fn what_the_launcher_says_itself_and_the_last_line_without_an_end_are_kept() {
        let told = told(TagForm::OpenMpi4, &["mpirun: [1,0]<stdout>:\n", "[1,0]<stdout>:end"]);
        assert_eq!(told, [(None, "mpirun: [1,0]<stdout>:\n".to_owned()), wrote(0, "end")]);
    }
}
