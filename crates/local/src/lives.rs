//! When ranks began and how they ended: a launch proof enters, the lives of those that were launched last leave.
//!
//! A command may launch more than once (`mpirun a || mpirun b`), and bad ends of a launch that it went on after are not its own end.

use unisono_agent::proof::{Event, Record};

use crate::first_end::End;

/// One rank's life, as its witness saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Life {
    rank: u32,
    host: String,
    pid: i32,
    /// When it began, in milliseconds since 1970.
    began: u64,
    /// When and with which code it ended.
    end: Option<(u64, i32)>,
}

/// The ranks of one launch.
#[derive(Debug, Default)]
pub(crate) struct Launched {
    lives: Vec<Life>,
}

impl Launched {
    /// Those of the last launch that these records, in order, tell of. Launches at the same time are taken for one.
    pub(crate) fn last(records: &[Record]) -> Self {
        let mut lives: Vec<Life> = Vec::new();
        for life in all(records) {
            // Who begins again after its end belongs to a later launch, and so does whoever began since that end.
            let earlier = lives.iter().filter(|it| it.rank == life.rank);
            let ended = earlier.filter_map(|it| it.end.map(|(at, _)| at));
            if let Some(over) = ended.filter(|at| *at <= life.began).max() {
                lives.retain(|it| it.began >= over);
            }
            lives.push(life);
        }
        Self { lives }
    }

    /// Whether every witness has told the end that it waited for.
    pub(crate) fn have_all_ended(&self) -> bool {
        self.lives.iter().all(|life| life.end.is_some())
    }

    /// How those ended that have.
    pub(crate) fn ends(&self) -> Vec<End> {
        let end = |life: &Life| {
            let (at, code) = life.end?;
            Some(End { at, rank: life.rank, host: life.host.clone(), code })
        };
        self.lives.iter().filter_map(end).collect()
    }
}

/// Every life, by its beginning.
fn all(records: &[Record]) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    for Record { at, host, event, .. } in records {
        match event {
            Event::Witnessed(rank) => {
                let (rank, pid) = (rank.rank, rank.pid);
                lives.push(Life { rank, host: host.clone(), pid, began: *at, end: None });
            }
            Event::RankEnded { rank, pid, code } => {
                let is_it = |it: &&mut Life| {
                    (it.rank, it.pid, &it.host) == (*rank, *pid, host) && it.end.is_none()
                };
                let end = Some((*at, *code));
                match lives.iter_mut().rfind(is_it) {
                    Some(life) => life.end = end,
                    // It was killed before it could tell that it began.
                    None => {
                        let (rank, pid, host) = (*rank, *pid, host.clone());
                        lives.push(Life { rank, host, pid, began: *at, end });
                    }
                }
            }
            _ => {}
        }
    }
    lives
}

#[cfg(test)]
mod tests {
    use unisono_agent::ranks::Rank;

    use super::*;

    fn record(at: u64, event: Event) -> Record {
        Record { at, host: "w-0".to_owned(), launch: 1, event }
    }

    fn begins(at: u64, rank: u32, pid: i32) -> Record {
        record(at, Event::Witnessed(Rank { rank, pid, local_size: None, world_size: None }))
    }

    fn ends(at: u64, rank: u32, pid: i32, code: i32) -> Record {
        record(at, Event::RankEnded { rank, pid, code })
    }

    fn last(records: &[Record]) -> Vec<(u32, i32)> {
        Launched::last(records).ends().iter().map(|end| (end.rank, end.code)).collect()
    }

    #[test]
    fn an_end_belongs_to_the_process_that_began() {
        let records = [begins(1, 0, 10), begins(1, 1, 11), ends(5, 1, 11, 3)];
        assert_eq!(last(&records), [(1, 3)]);
        assert!(!Launched::last(&records).have_all_ended());
        let records = [&records[..], &[ends(6, 0, 10, 137)]].concat();
        assert!(Launched::last(&records).have_all_ended());
        assert!(Launched::last(&[]).have_all_ended());
    }

    #[test]
    fn a_rank_that_was_killed_as_it_began_has_ended() {
        assert_eq!(last(&[ends(5, 1, 11, 137)]), [(1, 137)]);
    }

    #[test]
    fn ends_of_an_earlier_launch_are_not_of_the_last_one() {
        let first = [begins(1, 0, 10), begins(1, 1, 11), ends(5, 1, 11, 3), ends(6, 0, 10, 143)];
        // The second launch is smaller, then larger, with a number that is new before one that is known.
        let smaller = [&first[..], &[begins(9, 0, 20), ends(10, 0, 20, 7)]].concat();
        assert_eq!(last(&smaller), [(0, 7)]);
        let new_first = [begins(9, 2, 22), ends(10, 2, 22, 9), begins(11, 0, 20)];
        let larger = [&first[..], &new_first].concat();
        assert_eq!(last(&larger), [(2, 9)]);
        assert!(!Launched::last(&larger).have_all_ended());
    }

    #[test]
    fn stragglers_of_an_earlier_launch_do_not_keep_the_last_one_open() {
        let records = [
            begins(1, 0, 10),
            begins(1, 1, 11),
            ends(5, 0, 10, 3),
            begins(9, 0, 20),
            ends(10, 1, 11, 137),
            ends(12, 0, 20, 0),
        ];
        assert_eq!(last(&records), [(0, 0)]);
    }
}
