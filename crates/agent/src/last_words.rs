//! What a launching host says at its end: where ranks ran and the last lines of its command enter, a short message leaves, which
//! whoever watches the host's container reads back. Kubernetes keeps 4096 bytes of such a message, however many ranks there were.
//!
//! The first line is JSON, the others are the command's own.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::proof::{Event, Record};
use crate::table::HostTable;

/// What Kubernetes keeps of a message.
const LONGEST: usize = 4096;

/// How much of it may be about ranks; the rest is for lines.
const LONGEST_ABOUT_RANKS: usize = 1536;

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWords {
    /// Says what this is, and in which form.
    unisono: Form,
    /// Ranks on the launching host, where the host table does not have it.
    #[serde(default)]
    pub here: u32,
    /// Ranks of each host, in the order of the host table: so many ranks on each of so many hosts. Empty when nothing is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<(u32, u32)>,
    /// Ranks, each with its host's place in the table and its process there; only as many as fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seats: Vec<(u32, u32, i32)>,
    /// The last lines of the command.
    #[serde(skip)]
    pub lines: Vec<String>,
}

/// The only form there is so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    #[default]
    #[serde(rename = "last-words/1")]
    First,
}

impl LastWords {
    /// Sums up what the proof tells about ranks.
    pub(crate) fn of(records: &[Record], table: &HostTable, own_name: &str) -> Self {
        let place: BTreeMap<&str, usize> =
            table.hosts.iter().enumerate().map(|(at, host)| (host.name.as_str(), at)).collect();
        // A launch that was tried again has its ranks twice: the later seat counts.
        let mut seats = BTreeMap::new();
        for record in records {
            if let Event::Rank(rank) = &record.event {
                seats.insert(rank.rank, (record.host.as_str(), rank.pid));
            }
        }
        let mut counts = vec![0_u32; table.hosts.len()];
        let mut words = Self::default();
        for (rank, (host, pid)) in seats {
            match place.get(host).and_then(|at| counts.get_mut(*at).map(|count| (*at, count))) {
                Some((at, count)) => {
                    *count += 1;
                    words.seats.push((rank, u32::try_from(at).unwrap_or(u32::MAX), pid));
                }
                None if host == own_name => words.here += 1,
                None => {}
            }
        }
        if words.here > 0 || !words.seats.is_empty() {
            words.ran = run_lengths(&counts);
        }
        words
    }

    /// The same with these last lines.
    #[must_use]
    pub fn with_lines(self, lines: Vec<String>) -> Self {
        Self { lines, ..self }
    }

    /// Reads a message; none when it is somebody else's.
    pub fn read(text: &str) -> Option<Self> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut words: Self = serde_json::from_str(first).ok()?;
        words.lines = rest.lines().map(str::to_owned).collect();
        Some(words)
    }

    /// Writes the message, unless the command left one of its own there.
    pub(crate) fn leave(&self, file: &Path) -> io::Result<()> {
        if fs::metadata(file).is_ok_and(|it| it.len() > 0) {
            return Ok(());
        }
        fs::write(file, self.text())
    }

    fn text(&self) -> String {
        let mut shown = Self { lines: Vec::new(), ..self.clone() };
        let mut text = shown.first_line();
        while text.len() > LONGEST_ABOUT_RANKS && !shown.seats.is_empty() {
            shown.seats.truncate(shown.seats.len() / 2);
            text = shown.first_line();
        }
        if text.len() > LONGEST_ABOUT_RANKS {
            text = Self::default().first_line();
        }
        let mut room = LONGEST.saturating_sub(text.len());
        let fits = |line: &&String| {
            let needed = line.len() + 1;
            let fits = needed <= room;
            room = room.saturating_sub(needed);
            fits
        };
        let mut last: Vec<&str> =
            self.lines.iter().rev().take_while(fits).map(String::as_str).collect();
        if let (true, Some(line)) = (last.is_empty(), self.lines.last()) {
            // Part of the last line tells more than no line.
            last.push(beginning(line, LONGEST.saturating_sub(text.len() + 1)));
        }
        last.reverse();
        for line in last {
            text.push('\n');
            text.push_str(line);
        }
        text
    }

    fn first_line(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// As much of a text as has room.
fn beginning(text: &str, room: usize) -> &str {
    let mut end = room.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Equal numbers in a row, each with how many there are.
fn run_lengths(counts: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for count in counts {
        match runs.last_mut() {
            Some((same, times)) if same == count => *times += 1,
            _ => runs.push((*count, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::Rank;
    use crate::table::{Host, HostKey};

    fn table(hosts: u8) -> HostTable {
        let host = |at: u8| Host {
            name: format!("w-{at}"),
            address: [10, 0, 0, at].into(),
            slots: 2,
            key: HostKey::Named("worker".to_owned()),
            port: None,
            aliases: Vec::new(),
        };
        HostTable::new("pod".to_owned(), 0, 0, (0..hosts).map(host).collect()).unwrap()
    }

    fn seat(host: &str, rank: u32) -> Record {
        let pid = i32::try_from(rank).unwrap() + 100;
        let event = Event::Rank(Rank { rank, pid, local_size: None, world_size: None });
        Record { at: 1, host: host.to_owned(), launch: 7, event }
    }

    #[test]
    fn of_a_last_line_that_is_too_long_the_beginning_is_left() {
        let lines = vec!["before".to_owned(), format!("Traceback {}", "é".repeat(LONGEST))];
        let text = LastWords::default().with_lines(lines).text();
        assert!(text.len() <= LONGEST, "{}", text.len());
        let read = LastWords::read(&text).unwrap();
        assert_eq!(read.lines.len(), 1);
        assert!(read.lines[0].starts_with("Traceback é"), "{}", read.lines[0]);
    }

    #[test]
    fn equal_hosts_take_no_room() {
        let records: Vec<Record> =
            (0..200).map(|rank| seat(&format!("w-{}", rank / 2), rank)).collect();
        let mut words = LastWords::of(&records, &table(100), "l");
        assert_eq!((words.here, words.ran.as_slice()), (0, &[(2, 100)][..]));
        words.lines = (0..500).map(|at| format!("line {at}")).collect();
        let text = words.text();
        assert!(text.len() <= LONGEST, "{}", text.len());
        let read = LastWords::read(&text).unwrap();
        assert_eq!(read.ran, words.ran);
        assert!(read.seats.len() > 20 && read.lines.len() > 50);
        assert_eq!(read.lines.last().map(String::as_str), Some("line 499"));
    }

    #[test]
    fn ranks_that_never_left_the_launcher_are_told() {
        let records = [seat("l", 0), seat("l", 1), seat("w-1", 2)];
        let words = LastWords::of(&records, &table(3), "l");
        assert_eq!((words.here, words.ran.as_slice()), (2, &[(0, 1), (1, 1), (0, 1)][..]));
        assert_eq!(words.seats, [(2, 1, 102)]);
    }

    #[test]
    fn words_of_others_are_not_ours() {
        assert_eq!(LastWords::read("all is lost"), None);
        assert_eq!(LastWords::read("{\"unisono\":\"last-words/2\"}"), None);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("message");
        fs::write(&file, "mine").unwrap();
        LastWords::default().leave(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }
}
