//! What a container's last words tell: a termination message enters; exit code, the rank that failed first, the last lines and where
//! ranks ran leave.

use std::collections::BTreeMap;
use std::net::IpAddr;

use unisono_agent::last_words::LastWords;
use unisono_plan::bind::Addresses;
use unisono_plan::complaints::{Blame, blamed, unrunnable_by_launcher};
use unisono_plan::{FailedRank, Host, Plan, spread};

use crate::render::answers;

/// How many of its last lines a container is remembered by.
const LAST_LINES: usize = 10;

/// What is told about an end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The exit code; where a launcher could not start a program at all, that of shells for it.
    pub(crate) code: i32,
    /// The rank that failed first.
    pub(crate) rank: Option<FailedRank>,
    /// The last lines worth reading.
    pub(crate) last_lines: Vec<String>,
    /// What is odd about where ranks ran.
    pub(crate) odd_spread: Option<String>,
}

/// Reads the last words of a container that ended with this code. They may be the agent's, the command's own, or the end of its log.
pub(crate) fn told(
    plan: &Plan,
    addresses: &dyn Fn() -> Addresses,
    code: i32,
    message: &str,
) -> Told {
    let words = LastWords::read(message);
    let odd_spread = words.as_ref().and_then(|words| odd_spread(plan, words));
    let plain = || message.lines().map(str::to_owned).collect();
    let words = words.unwrap_or_else(|| LastWords::default().with_lines(plain()));
    let last_lines = last(&words.lines);
    if code == 0 {
        return Told { odd_spread, last_lines, ..Told::default() };
    }
    let lines: Vec<&str> = words.lines.iter().map(String::as_str).collect();
    if let Some(program) = unrunnable_by_launcher(&lines) {
        let last_lines = program.told_in(&lines);
        return Told { code: program.code(), rank: None, last_lines, odd_spread };
    }
    let rank = blamed(&lines).and_then(|blame| failed_rank(plan, &addresses(), &words, blame));
    Told { code, rank, last_lines, odd_spread }
}

/// Who is to blame: launchers know hosts by address, and some know ranks only by their processes.
fn failed_rank(
    plan: &Plan,
    addresses: &Addresses,
    words: &LastWords,
    blame: Blame,
) -> Option<FailedRank> {
    let table: Vec<&Host> = hosts_of_table(plan).collect();
    let name_at = |at: u32| table.get(at as usize).map(|host| host.name.clone());
    let host = blame.host.as_deref().map(|called| name_of(plan, addresses, called));
    let of_process = || {
        let of_host = |at: u32| name_at(at).as_ref() == host.as_ref();
        let mut seats = words.seats.iter();
        seats
            .find(|(_, at, process)| blame.process == Some(*process) && of_host(*at))
            .map(|it| it.0)
    };
    let rank = blame.rank.or_else(of_process)?;
    let seat = words.seats.iter().find(|(seated, _, _)| *seated == rank);
    let host = host.clone().or_else(|| seat.and_then(|(_, at, _)| name_at(*at)));
    Some(FailedRank { rank, host, code: blame.code })
}

/// The name of a host that a launcher calls by its address, or by a longer name.
fn name_of(plan: &Plan, addresses: &Addresses, called: &str) -> String {
    let by_address = called.parse::<IpAddr>().ok().and_then(|address| {
        let (member, _) = addresses.iter().find(|(_, it)| **it == address)?;
        plan.host(*member).map(|host| host.name.clone())
    });
    let longer = || {
        let is_it = |host: &&Host| {
            called.strip_prefix(&host.name).is_some_and(|rest| rest.starts_with('.'))
        };
        plan.hosts.iter().find(is_it).map(|host| host.name.clone())
    };
    by_address.or_else(longer).unwrap_or_else(|| called.to_owned())
}

fn odd_spread(plan: &Plan, words: &LastWords) -> Option<String> {
    let counts =
        words.ran.iter().flat_map(|(ranks, hosts)| std::iter::repeat_n(*ranks, *hosts as usize));
    let mut ran: BTreeMap<&str, u32> =
        hosts_of_table(plan).map(|host| host.name.as_str()).zip(counts).collect();
    if let Some(launcher) = plan.launch_host() {
        *ran.entry(&launcher.name).or_default() += words.here;
    }
    ran.retain(|_, count| *count > 0);
    spread::odd(plan, &ran)
}

/// The hosts of the host table, in its order.
fn hosts_of_table(plan: &Plan) -> impl Iterator<Item = &Host> {
    plan.hosts.iter().filter(|host| answers(plan, host))
}

fn last(lines: &[String]) -> Vec<String> {
    lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures::{JOBS, plan};

    /// What is told of a job of two workers whose launcher left this message.
    fn of(code: i32, message: &str) -> Told {
        let plan = plan(JOBS[3].1);
        let workers = plan.hosts.iter().filter(|host| !host.runs.launches());
        let addresses: Addresses =
            workers.zip(1..).map(|(host, at)| (host.member, [10, 0, 0, at].into())).collect();
        told(&plan, &|| addresses.clone(), code, message)
    }

    #[test]
    fn words_that_are_not_the_agents_are_its_last_lines() {
        let told = of(3, "one\ntwo\n");
        assert_eq!((told.code, told.rank, told.last_lines.len()), (3, None, 2));
    }

    #[test]
    fn the_rank_that_failed_first_is_found_by_what_its_launcher_says() {
        let by_number = "{\"unisono\":\"last-words/1\",\"seats\":[[1,1,40]]}\n\
            MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 42.";
        let host = Some("pi-worker-1".to_owned());
        let rank = FailedRank { rank: 1, host: host.clone(), code: Some(42) };
        assert_eq!(of(42, by_number).rank, Some(rank));
        // MPICH knows its host and process only.
        let by_process = "{\"unisono\":\"last-words/1\",\"seats\":[[0,0,40],[1,1,40]]}\n\
            =   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 40 RUNNING AT 10.0.0.2\n=   EXIT CODE: 9";
        let rank = FailedRank { rank: 1, host, code: Some(9) };
        assert_eq!(of(9, by_process).rank, Some(rank));
    }

    #[test]
    fn a_program_that_no_rank_could_run_is_told_as_shells_do() {
        let message =
            "Executable: ./nope\nNode: pi-worker-0\nwhile attempting to start process rank 0.";
        let told = of(1, message);
        assert_eq!((told.code, told.last_lines.len()), (127, 2));
    }

    #[test]
    fn ranks_that_stayed_on_the_launcher_are_told_even_after_success() {
        let ranks = plan(JOBS[3].1).ranks.unwrap();
        let message = format!("{{\"unisono\":\"last-words/1\",\"here\":{ranks},\"ran\":[[0,2]]}}");
        let told = of(0, &message);
        let odd = told.odd_spread.unwrap();
        assert!(
            odd.starts_with("pi-launcher ran") && odd.ends_with("pi-worker-0 and 1 other ran none"),
            "{odd}"
        );
        assert_eq!(of(0, "{\"unisono\":\"last-words/1\",\"ran\":[[1,2]]}").odd_spread, None);
    }
}
