//! The last lines that a host's command and each of its ranks wrote: lines enter, what is worth remembering of a failure leaves.
//! Memory is bounded however much is written.

use std::collections::{BTreeMap, VecDeque};

use crate::Written;
use crate::complaints::{Blame, HYDRA_PROXY, blamed};

/// How many of its last lines a rank or a command is remembered by.
const LINES: usize = 10;

/// Launchers tell what went wrong at length, and more of them at once.
const LAUNCHER_LINES: usize = 80;

/// Longer lines are cut.
const LONGEST_LINE: usize = 400;

/// Ranks beyond these are not remembered.
const MOST_RANKS: usize = 4096;

/// The last lines of one host's command and of the ranks it started.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    command: Tail,
    ranks: BTreeMap<u32, RankTail>,
}

#[derive(Debug, Default)]
struct RankTail {
    host: Option<String>,
    errors: Tail,
    output: Tail,
}

/// The last lines of one stream.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    /// Whether the last line may go on.
    open: bool,
}

impl Tail {
    /// Takes note of a line or a piece of one. Of a line that is drawn again and again only the last picture stays.
    fn push(&mut self, text: &str, most: usize) {
        let before = if self.open { self.lines.pop_back() } else { None }.unwrap_or_default();
        self.open = !text.ends_with('\n');
        let is_drawn_anew = self.open && text.ends_with('\r');
        let whole = format!("{before}{}", text.trim_end_matches(['\r', '\n']));
        let shown = whole.rsplit('\r').next().unwrap_or_default();
        let mut line: String = shown.chars().take(LONGEST_LINE).collect();
        line.extend(is_drawn_anew.then_some('\r'));
        if self.lines.len() == most {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.iter().map(|line| line.trim_end())
    }
}

impl Tails {
    /// Takes note of a line.
    pub(crate) fn note(&mut self, written: &Written) {
        let text = String::from_utf8_lossy(&written.bytes);
        let Some(rank) = written.rank else {
            return self.command.push(&text, LAUNCHER_LINES);
        };
        if self.ranks.len() >= MOST_RANKS && !self.ranks.contains_key(&rank) {
            return;
        }
        let tail = self.ranks.entry(rank).or_default();
        if tail.host.is_none() {
            tail.host.clone_from(&written.host);
        }
        let stream = if written.is_error { &mut tail.errors } else { &mut tail.output };
        stream.push(&text, LINES);
    }

    /// The rank that the launcher, or the rank itself, blames first.
    pub(crate) fn blamed(&self) -> Option<Blame> {
        let own = || {
            self.ranks.values().find_map(|tail| {
                let lines: Vec<&str> = tail.errors.lines().collect();
                blamed(&lines)
            })
        };
        let lines: Vec<&str> = self.command.lines().collect();
        let told = match (blamed(&lines), own()) {
            // The launcher knows host and signal, the rank its code.
            (Some(told), Some(own)) if told.rank == own.rank => {
                Some(Blame { code: told.code.or(own.code), ..told })
            }
            (Some(told), _) => Some(told),
            (None, own) => own,
        };
        told.map(|blame| Blame {
            host: blame.host.or_else(|| self.ranks.get(&blame.rank?)?.host.clone()),
            ..blame
        })
    }

    /// The last lines of a rank: what it wrote to its standard error, else to its standard output.
    pub(crate) fn of_rank(&self, rank: u32) -> Vec<String> {
        let Some(tail) = self.ranks.get(&rank) else {
            return Vec::new();
        };
        let stream = if tail.errors.lines.is_empty() { &tail.output } else { &tail.errors };
        stream.lines().filter(|line| says_something(line)).map(str::to_owned).collect()
    }

    /// What the command itself said, and launchers in the name of their ranks.
    pub(crate) fn of_launcher(&self) -> Vec<&str> {
        let streams = self.ranks.values().flat_map(|tail| [&tail.errors, &tail.output]);
        let tagged = streams.flat_map(Tail::lines).filter(|line| line.starts_with(HYDRA_PROXY));
        self.command.lines().chain(tagged).collect()
    }

    /// The last lines of the command itself; where it wrote nothing, of its first rank that did.
    pub(crate) fn last(&self) -> Vec<String> {
        let told: Vec<&str> = self.command.lines().filter(|line| says_something(line)).collect();
        if told.is_empty() {
            let own = self.ranks.keys().map(|rank| self.of_rank(*rank));
            return own.into_iter().find(|lines| !lines.is_empty()).unwrap_or_default();
        }
        told.into_iter().rev().take(LINES).rev().map(str::to_owned).collect()
    }
}

/// Whether a line is more than a rule across the page.
fn says_something(line: &str) -> bool {
    line.chars().any(|it| !"-=*_ \t".contains(it))
}

#[cfg(test)]
mod tests {
    use unisono_plan::{Incarnation, Member};

    use super::*;

    fn wrote(rank: Option<u32>, is_error: bool, text: &str) -> Written {
        let incarnation = Incarnation { member: Member { group: 0, index: 0 }, epoch: 0 };
        let host = rank.map(|rank| format!("w-{rank}"));
        Written { incarnation, rank, host, is_error, bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn a_rank_is_remembered_by_its_standard_error_and_else_by_its_output() {
        let mut tails = Tails::default();
        tails.note(&wrote(Some(1), false, "step 3\n"));
        assert_eq!(tails.of_rank(1), ["step 3"]);
        tails.note(&wrote(Some(1), true, "out of range\n"));
        assert_eq!(tails.of_rank(1), ["out of range"]);
        assert_eq!(tails.of_rank(7), [""; 0]);
    }

    #[test]
    fn rules_across_the_page_are_not_worth_a_line() {
        let mut tails = Tails::default();
        for line in ["-----\n", "the job was aborted\n", "\n", "=====\n"] {
            tails.note(&wrote(None, true, line));
        }
        assert_eq!(tails.last(), ["the job was aborted"]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut tails = Tails::default();
        for at in 0..1000 {
            tails.note(&wrote(Some(0), true, &format!("{at}{}\n", "x".repeat(1000))));
            tails.note(&wrote(None, true, "y\n"));
        }
        let kept = tails.of_rank(0);
        assert!(kept.len() == LINES && kept[9].starts_with("999") && kept[9].len() == LONGEST_LINE);
        assert_eq!((tails.of_launcher().len(), tails.last().len()), (LAUNCHER_LINES, LINES));
    }

    #[test]
    fn pieces_of_a_line_are_one_line_and_what_was_drawn_over_is_gone() {
        let mut tails = Tails::default();
        for piece in ["10%\r", "20%\r", "half ", "done\n", "end", "ed\n", "a\r\n"] {
            tails.note(&wrote(Some(1), true, piece));
        }
        assert_eq!(tails.of_rank(1), ["half done", "ended", "a"]);
        tails.note(&wrote(Some(1), true, "30%\r"));
        assert_eq!(tails.of_rank(1).last().map(String::as_str), Some("30%"));
    }

    #[test]
    fn what_ranks_say_is_not_the_launchers_word() {
        let mut tails = Tails::default();
        for line in ["Executable: x\n", "Node: w-1\n", "[proxy:0@w-1] execvp error\n"] {
            tails.note(&wrote(Some(0), true, line));
        }
        tails.note(&wrote(None, false, "mpirun\n"));
        assert_eq!(tails.of_launcher(), ["mpirun", "[proxy:0@w-1] execvp error"]);
    }

    #[test]
    fn the_launchers_word_is_completed_by_what_the_ranks_tags_told() {
        let mut tails = Tails::default();
        tails.note(&wrote(Some(2), false, "hello\n"));
        tails.note(&wrote(None, true, "The first process to do so was:\n"));
        tails.note(&wrote(None, true, "  Process name: [[5,1],2]\n"));
        tails.note(&wrote(None, true, "  Exit code:    3\n"));
        let blame = tails.blamed().expect("somebody is blamed");
        assert_eq!(
            (blame.rank, blame.host.as_deref(), blame.code),
            (Some(2), Some("w-2"), Some(3))
        );
    }
}
