//! The line of jobs that want to run on one machine: who is there and what it holds enter, whether a job has room leaves. Pure.
//!
//! A job gets all of its room or none, so no two jobs can each hold half of what both need. A job that is larger than the
//! machine takes the whole machine: it waits until it is alone, and then runs.

use serde::{Deserialize, Serialize};

use crate::{Plan, Room, Time};

/// What one job wants, fixed when it begins to wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Slots that must be free before anything of the job starts.
    pub needs: u32,
    /// Slots that the job takes while it runs.
    pub takes: u32,
    /// The queue it waits in. Jobs of one queue never overtake each other; jobs of another may pass them.
    pub queue: String,
    /// Larger goes first.
    pub priority: i32,
}

/// A job in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Its name, as people know it.
    pub id: String,
    /// When it came.
    pub since: Time,
    /// What it wants.
    pub ticket: Ticket,
    /// Whether it was let in already.
    pub is_in: bool,
}

/// Priorities that Kubernetes itself defines, and words that nearly every cluster's own classes hold.
const PRIORITIES: [(&str, i32); 4] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
    ("high", 1000),
    ("low", -1000),
];

impl Ticket {
    /// What a plan wants.
    pub fn of(plan: &Plan) -> Self {
        let gang = &plan.job.policies.gang;
        let takes = plan.ranks.map_or_else(|| plan.slot_count(), u64::from).max(1);
        let members = gang.min_members.map_or(plan.hosts.len(), |least| least as usize);
        let least: u64 = plan.hosts.iter().take(members).map(|host| u64::from(host.slots)).sum();
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            needs: number(takes.min(least.max(1))),
            takes: number(takes),
            queue: gang.queue.clone().unwrap_or_else(|| "default".to_owned()),
            priority: gang.priority_class.as_deref().map_or(0, priority),
        }
    }
}

/// The priority that a class's name means where no cluster defines it: a number is itself, and `high` and `low` are what they say.
pub fn priority(class: &str) -> i32 {
    let known = || PRIORITIES.iter().find(|(word, _)| class.contains(word)).map(|(_, it)| *it);
    class.parse().ok().or_else(known).unwrap_or(0)
}

/// Whether the job of that name has room among the others on a machine with so many slots.
///
/// Everybody in the line comes to the same answer from the same line, so nobody has to be asked.
pub fn room(slots: u32, line: &[Waiter], id: &str) -> Room {
    let mut free = slots;
    let mut holders: Vec<(&str, u32)> = Vec::new();
    for waiter in line.iter().filter(|it| it.is_in) {
        let takes = waiter.ticket.takes.min(slots);
        free = free.saturating_sub(takes);
        holders.push((&waiter.id, takes));
    }
    let mut waiting: Vec<&Waiter> = line.iter().filter(|it| !it.is_in).collect();
    waiting.sort_by_key(|it| (-i64::from(it.ticket.priority), it.since, it.id.as_str()));
    let mut stuck: Vec<&Waiter> = Vec::new();
    for waiter in waiting {
        let Ticket { needs, takes, queue, .. } = &waiter.ticket;
        let needs = (*needs).min(slots);
        let behind = stuck.iter().rfind(|it| it.ticket.queue == *queue);
        if behind.is_none() && needs <= free {
            if waiter.id == id {
                return Room::Given;
            }
            free = free.saturating_sub((*takes).min(slots));
            holders.push((&waiter.id, (*takes).min(slots)));
            continue;
        }
        if waiter.id == id {
            return Room::Waiting(match behind {
                Some(before) => format!("{} is before it", before.id),
                None => no_room(needs, slots, free, &holders),
            });
        }
        stuck.push(waiter);
    }
    // Who is not in the line, or is in already, waits for nobody.
    Room::Given
}

fn no_room(needs: u32, slots: u32, free: u32, holders: &[(&str, u32)]) -> String {
    let who: Vec<String> = holders.iter().map(|(id, takes)| format!("{id} ({takes})")).collect();
    format!(
        "it needs {needs} of this machine's {slots} slots, {free} are free; the others are taken by {}",
        who.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(id: &str, takes: u32, is_in: bool) -> Waiter {
        let ticket = Ticket { needs: takes, takes, queue: "default".to_owned(), priority: 0 };
        let since = Time(id.bytes().map(u64::from).sum());
        Waiter { id: id.to_owned(), since, ticket, is_in }
    }

    fn admitted(slots: u32, line: &[Waiter]) -> Vec<&str> {
        let fits = |it: &&Waiter| !it.is_in && room(slots, line, &it.id) == Room::Given;
        line.iter().filter(fits).map(|it| it.id.as_str()).collect()
    }

    #[test]
    fn jobs_that_fit_side_by_side_do_not_wait() {
        let line = [waiter("a", 4, true), waiter("b", 4, false), waiter("c", 8, false)];
        assert_eq!(admitted(16, &line), ["b", "c"]);
    }

    #[test]
    fn a_job_waits_for_all_of_its_room_and_says_who_has_it() {
        let line = [waiter("a", 12, true), waiter("b", 8, false)];
        let Room::Waiting(why) = room(16, &line, "b") else { panic!("there is no room") };
        assert_eq!(
            why,
            "it needs 8 of this machine's 16 slots, 4 are free; the others are taken by a (12)"
        );
    }

    #[test]
    fn a_job_larger_than_the_machine_runs_alone_and_nobody_waits_for_ever() {
        let big = waiter("b", 640, false);
        assert_eq!(room(16, std::slice::from_ref(&big), "b"), Room::Given);
        assert!(matches!(room(16, &[waiter("a", 1, true), big.clone()], "b"), Room::Waiting(_)));
        let in_already = Waiter { is_in: true, ..big };
        assert_eq!(admitted(16, &[in_already, waiter("c", 1, false)]), [""; 0]);
    }

    #[test]
    fn nobody_overtakes_in_the_own_queue_and_another_queue_may_pass() {
        let mut line = vec![waiter("a", 12, true), waiter("b", 8, false), waiter("c", 2, false)];
        assert_eq!(room(16, &line, "c"), Room::Waiting("b is before it".to_owned()));
        line[2].ticket.queue = "quick".to_owned();
        assert_eq!(admitted(16, &line), ["c"]);
    }

    #[test]
    fn priority_goes_before_age() {
        let mut line = vec![waiter("a", 16, true), waiter("b", 16, false), waiter("c", 16, false)];
        line[2].ticket.priority = priority("high-priority");
        line[0].is_in = false;
        assert_eq!(admitted(16, &line), ["c"]);
    }

    #[test]
    fn a_gang_may_start_with_fewer_members_than_it_has() {
        let mut least = waiter("b", 12, false);
        least.ticket.needs = 4;
        let line = [waiter("a", 12, true), least];
        assert_eq!(admitted(16, &line), ["b"]);
        let both_in = [waiter("a", 12, true), Waiter { is_in: true, ..line[1].clone() }];
        assert_eq!(room(16, &[&both_in[..], &[waiter("c", 1, false)]].concat(), "a"), Room::Given);
    }

    #[test]
    fn classes_are_read_as_numbers_or_by_what_they_say() {
        assert_eq!(["7", "-3", "high", "low-prio", "gold"].map(priority), [7, -3, 1000, -1000, 0]);
    }

    #[test]
    fn what_is_let_in_together_always_fits() {
        let sizes = [1, 5, 9, 16, 40, 3, 7];
        for seed in 0..500_u32 {
            let mut line: Vec<Waiter> = Vec::new();
            for at in 0..6_u32 {
                let size = sizes[((seed / 7_u32.pow(at % 4) + at * 3) % 7) as usize];
                let mut next = waiter(&format!("j{at}"), size, false);
                next.ticket.queue = format!("q{}", (seed + at) % 2);
                next.ticket.priority = i32::try_from((seed + at * at) % 3).unwrap();
                line.push(next);
            }
            // Everybody decides for themselves, one after the other, in any order; whoever is in ends some time.
            let mut ended = 0;
            while !line.is_empty() {
                for at in 0..line.len() {
                    let id = line[at].id.clone();
                    line[at].is_in |= room(16, &line, &id) == Room::Given;
                }
                let taken: u32 =
                    line.iter().filter(|it| it.is_in).map(|it| it.ticket.takes.min(16)).sum();
                assert!(taken <= 16, "seed {seed}: {line:?}");
                let first = line.iter().position(|it| it.is_in);
                line.remove(first.expect("somebody can always run"));
                ended += 1;
            }
            assert_eq!(ended, 6);
        }
    }
}
