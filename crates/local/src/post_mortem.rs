//! How a command came to its bad end: its exit code, its last lines and the launch proof enter; the rank that failed first leaves.

use unisono_agent::proof::{self, Event};
use unisono_plan::FailedRank;

use crate::RunDirectory;
use crate::complaints::unrunnable_by_launcher;
use crate::tails::Tails;

/// What is to be told about a bad end.
pub(crate) struct PostMortem {
    /// The exit code; where a launcher could not start a program at all, that of shells for it.
    pub(crate) code: i32,
    /// The rank that failed first.
    pub(crate) rank: Option<FailedRank>,
    /// The last lines worth reading.
    pub(crate) last_lines: Vec<String>,
}

/// Where a rank ran.
struct Seat {
    rank: u32,
    process: i32,
    host: String,
}

/// Finds out what can be known about a command that ended with this code.
pub(crate) fn examine(code: i32, tails: &Tails, run: &RunDirectory) -> PostMortem {
    let plain = |code| PostMortem { code, rank: None, last_lines: tails.last() };
    if code == 0 {
        return plain(code);
    }
    if let Some(program) = unrunnable_by_launcher(&tails.all()) {
        // Open MPI names the program on one line and the host on the next.
        let told = tails.all().into_iter().skip_while(|line| !line.contains(&program.program));
        let last_lines = told.take(2).map(str::to_owned).collect();
        return PostMortem { code: program.code(), rank: None, last_lines };
    }
    let Some(blame) = tails.blamed() else {
        return plain(code);
    };
    let seats = seats(run);
    let is_it = |seat: &&Seat| {
        blame.process == Some(seat.process) && blame.host.as_ref() == Some(&seat.host)
    };
    let rank = blame.rank.or_else(|| seats.iter().rfind(is_it).map(|seat| seat.rank));
    let Some(rank) = rank else {
        return plain(code);
    };
    let seat = || seats.iter().rfind(|seat| seat.rank == rank);
    let host = blame.host.or_else(|| seat().map(|seat| seat.host.clone()));
    let own = tails.of_rank(rank);
    let last_lines = if own.is_empty() { tails.last() } else { own };
    PostMortem { code, rank: Some(FailedRank { rank, host, code: blame.code }), last_lines }
}

/// Where ranks were seen, in the order in which they were.
fn seats(run: &RunDirectory) -> Vec<Seat> {
    let folders = std::fs::read_dir(run.path().join("hosts")).into_iter().flatten().flatten();
    let records =
        folders.flat_map(|it| proof::read(&it.path().join("proof"), 0).unwrap_or_default());
    let mut seats: Vec<(u64, Seat)> = records
        .filter_map(|record| match record.event {
            Event::Rank(rank) => {
                let seat = Seat { rank: rank.rank, process: rank.pid, host: record.host };
                Some((record.at, seat))
            }
            _ => None,
        })
        .collect();
    seats.sort_by_key(|(at, _)| *at);
    seats.into_iter().map(|(_, seat)| seat).collect()
}
