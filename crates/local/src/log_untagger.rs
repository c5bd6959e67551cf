//! Logs of launchers that others started: lines enter, lines with their ranks leave, if whoever started the launcher had it tag
//! them. How it tags is told from the first line that has a tag.

use std::collections::BTreeMap;

use unisono_agent::tags::TagForm;

use crate::tagged::{Begins, begins};
use crate::untagger::{Piece, Reading, Untagger};

/// Takes tags off the logs of several hosts.
#[derive(Debug, Default)]
pub struct LogUntagger {
    hosts: BTreeMap<String, Untagger>,
}

impl LogUntagger {
    /// Takes a line of a host's log; gives what is complete.
    pub fn take(&mut self, host: &str, line: &[u8]) -> Vec<Piece> {
        if let Some(known) = self.hosts.get_mut(host) {
            return known.take(line);
        }
        let Some(form) = form(line) else {
            return vec![Piece { bytes: line.to_vec(), ..Piece::default() }];
        };
        let mut untagger = Untagger::new(Reading { tags: Some(form), at_once: false });
        let pieces = untagger.take(line);
        self.hosts.insert(host.to_owned(), untagger);
        pieces
    }

    /// What is left when all logs have ended.
    pub fn rest(&mut self) -> Vec<(String, Piece)> {
        let hosts = std::mem::take(&mut self.hosts);
        let rest = |(host, untagger): (String, Untagger)| {
            untagger.rest().map(move |piece| (host.clone(), piece))
        };
        hosts.into_iter().flat_map(rest).collect()
    }
}

/// How a line is tagged, if it is. A program that writes such a tag itself is taken at its word.
fn form(line: &[u8]) -> Option<TagForm> {
    let is_tagged = |form: &TagForm| match begins(line, *form) {
        // The earlier form of Open MPI reads both; only the later one tells hosts.
        Begins::Tag(found) => *form != TagForm::OpenMpi4 || found.host.is_none(),
        Begins::Text | Begins::Unfinished => false,
    };
    [TagForm::OpenMpi4, TagForm::Prrte, TagForm::Hydra(None)].into_iter().find(is_tagged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(lines: &[&str]) -> Vec<(Option<u32>, String)> {
        let mut untagger = LogUntagger::default();
        let mut pieces: Vec<Piece> =
            lines.iter().flat_map(|line| untagger.take("l", line.as_bytes())).collect();
        pieces.extend(untagger.rest().into_iter().map(|(_, piece)| piece));
        let text = |piece: &Piece| String::from_utf8_lossy(&piece.bytes).into_owned();
        pieces.iter().map(|piece| (piece.rank, text(piece))).collect()
    }

    #[test]
    fn every_launchers_tags_are_known_by_the_first_of_them() {
        for tagged in ["[1,2]<stdout>:hi\n", "[1,2][w-1:7]<stdout>: hi\n", "[2@w-1] hi\n"] {
            let told = ranks(&["begin\n", tagged]);
            assert_eq!(told, [(None, "begin\n".to_owned()), (Some(2), "hi\n".to_owned())]);
        }
    }

    #[test]
    fn lines_without_tags_are_nobodys() {
        assert_eq!(ranks(&["[INFO] x\n"]), [(None, "[INFO] x\n".to_owned())]);
    }
}
