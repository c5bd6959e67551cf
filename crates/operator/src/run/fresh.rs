//! Which jobs' objects are worth keeping as they were read: those that were looked at lately, and no more than so many. Looks at
//! a job come in bursts, and between them a read object is only in the way. Time enters as a parameter.

use std::collections::HashSet;
use std::hash::Hash;
use std::mem::take;
use std::time::Duration;

use tokio::time::Instant;

/// So many are kept. Parsed they take some 30 KB each, so no more than a burst of jobs makes use of.
const MOST: usize = 256;

/// What nobody looks at for so long is let go, at the latest after twice that time.
const TURN: Duration = Duration::from_secs(5);

/// Jobs that were looked at lately.
#[derive(Debug)]
pub(crate) struct Fresh<K> {
    /// Since the last turn.
    young: HashSet<K>,
    /// Before that, and not since.
    old: HashSet<K>,
    turn: Option<Instant>,
}

impl<K> Default for Fresh<K> {
    fn default() -> Self {
        Self { young: HashSet::new(), old: HashSet::new(), turn: None }
    }
}

impl<K: Eq + Hash> Fresh<K> {
    /// Notes a look at a job; what has to make room for it leaves.
    pub(crate) fn note(&mut self, key: K, now: Instant) -> HashSet<K> {
        self.turn.get_or_insert(now + TURN);
        self.old.remove(&key);
        let is_full = !self.young.contains(&key) && self.young.len() + self.old.len() >= MOST;
        let room = match (is_full, self.old.is_empty()) {
            (false, _) => HashSet::new(),
            (true, false) => take(&mut self.old),
            (true, true) => take(&mut self.young),
        };
        self.young.insert(key);
        room
    }

    /// When what is not fresh any more is to be let go.
    pub(crate) const fn next_turn(&self) -> Option<Instant> {
        self.turn
    }

    /// What has not been looked at for a while leaves, if it is time for that.
    pub(crate) fn stale(&mut self, now: Instant) -> HashSet<K> {
        if self.turn.is_none_or(|turn| now < turn) {
            return HashSet::new();
        }
        let stale = std::mem::replace(&mut self.old, take(&mut self.young));
        self.turn = (!self.old.is_empty()).then(|| now + TURN);
        stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_looks_at_any_more_is_let_go() {
        let start = Instant::now();
        let mut fresh = Fresh::default();
        assert_eq!(fresh.next_turn(), None, "nothing is kept");
        fresh.note("a", start);
        fresh.note("b", start);
        assert_eq!(fresh.next_turn(), Some(start + TURN));
        assert!(fresh.stale(start).is_empty() && fresh.stale(start + TURN).is_empty());
        fresh.note("a", start + TURN);
        assert_eq!(fresh.stale(start + TURN * 2), HashSet::from(["b"]));
        assert_eq!(fresh.stale(start + TURN * 3), HashSet::from(["a"]));
        assert_eq!(fresh.next_turn(), None, "nothing is kept any more");
    }

    #[test]
    fn what_was_not_looked_at_for_longest_makes_room_first() {
        let start = Instant::now();
        let mut fresh = Fresh::default();
        let half = MOST / 2;
        for key in 0..half {
            fresh.note(key, start);
        }
        fresh.stale(start + TURN);
        for key in half..MOST {
            assert!(fresh.note(key, start + TURN).is_empty(), "there is room");
        }
        assert!(fresh.note(half, start + TURN).is_empty(), "it is there already");
        assert_eq!(fresh.note(MOST, start + TURN), (0..half).collect());
        for key in MOST + 1..MOST + half {
            assert!(fresh.note(key, start + TURN).is_empty(), "there is room again");
        }
        assert_eq!(fresh.note(MOST + half, start + TURN).len(), MOST, "all are as young");
    }
}
