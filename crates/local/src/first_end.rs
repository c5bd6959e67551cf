//! Which rank failed first: how and when ranks ended enters; one rank leaves, or those of which it was one.
//!
//! One rank's end brings others down within moments: the launcher kills them, or they notice that a peer is gone and crash. Nor is
//! the end that comes first the first failure: what a library does at its exit cuts connections before the process is gone, and a
//! peer may have crashed by then. Launchers cannot know better: they blame whose end they notice first. So what ended a good
//! while later is not it, but among those that ended differently at about the same time nobody is chosen.

use crate::complaints::Blame;

/// Ends closer than this, in milliseconds, may be in the wrong order.
const AT_ABOUT_THE_SAME_TIME: u64 = 1000;

/// 128 and SIGKILL, which is also what the kernel sends for want of memory.
pub(crate) const KILLED: i32 = 137;

/// What launchers end ranks with: SIGKILL, SIGTERM.
pub(crate) const ENDED_BY_LAUNCHER: [i32; 2] = [KILLED, 143];

/// How a rank ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// When, in milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) rank: u32,
    pub(crate) host: String,
    /// Its exit code, or 128 and its signal.
    pub(crate) code: i32,
}

/// Who failed first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// This rank.
    Rank(End),
    /// One of these.
    OneOf(Vec<End>),
    /// Nobody saw it.
    Unseen,
}

/// Finds the rank that failed first. `all_told`: whether these are the ends of all ranks. `blame`: whom the launcher names.
pub(crate) fn first(ends: &[End], all_told: bool, blame: Option<&Blame>) -> First {
    let bad = || ends.iter().filter(|end| end.code != 0);
    let Some(began) = bad().map(|end| end.at).min() else {
        return First::Unseen;
    };
    let near = || bad().filter(|end| end.at <= began + AT_ABOUT_THE_SAME_TIME);
    let own = || near().filter(|end| !ENDED_BY_LAUNCHER.contains(&end.code));
    let Some(first) = own().min_by_key(|end| end.at) else {
        // Somebody else may have ended one of them, and the launcher the others, told or not: they look alike, so only its
        // word counts.
        let mut ended = near().cloned();
        return match (ended.next(), ended.next(), blame) {
            (Some(only), None, None) if all_told => First::Rank(only),
            _ => First::Unseen,
        };
    };
    // Where all say the same, as of a file that none of them finds, it is true of each. Of a crash it is not: one that lost a peer
    // crashes with the same signal as that peer.
    let is_true_of_each = !is_of_signal(first.code) && own().all(|end| end.code == first.code);
    if is_true_of_each || own().count() == 1 {
        First::Rank(first.clone())
    } else {
        First::OneOf(own().cloned().collect())
    }
}

const fn is_of_signal(code: i32) -> bool {
    matches!(code, 129..=192)
}

/// The rank that the kernel killed for want of memory on one of these hosts, if it is certain which one that was.
pub(crate) fn starved(ends: &[End], hosts: &[String]) -> Option<End> {
    let killed = || ends.iter().filter(|end| end.code == KILLED && hosts.contains(&end.host));
    let first = killed().min_by_key(|end| end.at)?;
    // The launcher kills others with the same signal, moments later.
    let near = killed().filter(|end| end.at <= first.at + AT_ABOUT_THE_SAME_TIME);
    (near.count() == 1).then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(at: u64, rank: u32, code: i32) -> End {
        End { at, rank, host: format!("w-{}", rank / 2), code }
    }

    #[test]
    fn who_was_killed_on_a_host_without_memory_is_told_only_if_it_is_clear() {
        let hosts = ["w-1".to_owned()];
        let rank = |ends: &[End]| starved(ends, &hosts).map(|end| end.rank);
        assert_eq!(rank(&[end(4, 0, 137), end(5, 2, 137), end(9000, 3, 137)]), Some(2));
        assert_eq!(rank(&[end(5, 2, 137), end(6, 3, 137)]), None);
        assert_eq!(rank(&[end(5, 2, 1), end(6, 0, 137)]), None);
    }

    fn first_of(ends: &[(u64, u32, i32)], blamed: Option<u32>) -> Vec<u32> {
        let ends: Vec<End> = ends.iter().map(|(at, rank, code)| end(*at, *rank, *code)).collect();
        let blame = Blame { rank: blamed, ..Blame::default() };
        match first(&ends, true, blamed.is_some().then_some(&blame)) {
            First::Rank(end) => vec![end.rank],
            First::OneOf(ends) => ends.iter().map(|end| end.rank).collect(),
            First::Unseen => vec![],
        }
    }

    #[test]
    fn the_only_rank_that_ended_badly_is_it() {
        assert_eq!(first_of(&[(5, 0, 0), (6, 2, 3), (7, 1, 0)], None), [2]);
        assert_eq!(first_of(&[(5, 0, 0)], None), [0; 0]);
        assert_eq!(first_of(&[], None), [0; 0]);
    }

    #[test]
    fn whom_the_launcher_ended_is_not_it() {
        assert_eq!(first_of(&[(5, 0, 137), (6, 2, 3), (6, 1, 143)], None), [2]);
    }

    #[test]
    fn whoever_lost_a_peer_later_is_not_it_whatever_the_launcher_says() {
        assert_eq!(first_of(&[(5, 2, 3), (4000, 0, 1)], Some(0)), [2]);
    }

    #[test]
    fn where_all_fail_alike_the_earliest_is_named() {
        assert_eq!(first_of(&[(7, 0, 1), (5, 2, 1), (6, 1, 1)], None), [2]);
    }

    #[test]
    fn where_several_crash_alike_nobody_is_chosen() {
        assert_eq!(first_of(&[(5, 0, 139), (6, 1, 137), (12, 2, 139)], None), [0, 2]);
        assert_eq!(first_of(&[(5, 2, 139), (6, 1, 137), (4000, 0, 139)], None), [2]);
    }

    #[test]
    fn where_several_fail_differently_at_once_nobody_is_chosen() {
        assert_eq!(first_of(&[(5, 0, 139), (6, 1, 137), (12, 2, 3)], Some(0)), [0, 2]);
    }

    #[test]
    fn a_rank_that_was_killed_from_outside_is_the_first_of_those_killed() {
        assert_eq!(first_of(&[(5, 2, 137), (5000, 0, 143)], None), [2]);
        assert_eq!(first_of(&[(5, 0, 137), (6, 2, 143)], Some(2)), [0; 0]);
        assert_eq!(first_of(&[(5, 0, 137), (6, 2, 137)], None), [0; 0]);
    }

    #[test]
    fn a_rank_that_was_killed_is_not_it_as_long_as_others_may_have_ended_before() {
        let only = [end(5, 2, 137)];
        assert_eq!(first(&only, true, None), First::Rank(end(5, 2, 137)));
        assert_eq!(first(&only, false, None), First::Unseen);
        // A rank that failed by itself has done so, whoever else is still to be heard of.
        assert_eq!(first(&[end(5, 2, 3)], false, None), First::Rank(end(5, 2, 3)));
    }
}
