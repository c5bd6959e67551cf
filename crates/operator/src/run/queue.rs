//! The work queue: which jobs are to be looked at, and when. A job is in it once, however often it was asked for, and is
//! handed out to one worker at a time. Time enters as a parameter.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// Events of one job within this time are looked at together. Short enough not to be felt, long enough for the burst of
/// events that follows the creation of many pods.
pub(crate) const DEBOUNCE: Duration = Duration::from_millis(20);

/// Jobs and when they are due.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    due: BTreeSet<(Instant, K)>,
    states: HashMap<K, State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Waits until then.
    Waits(Instant),
    /// Is being worked on; is due again then, if at all.
    Works(Option<Instant>),
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self { due: BTreeSet::new(), states: HashMap::new() }
    }
}

impl<K: Clone + Ord + Hash> Queue<K> {
    /// Asks for a look at a job, no later than then.
    pub(crate) fn add(&mut self, key: &K, at: Instant) {
        match self.states.get_mut(key) {
            None => {
                self.states.insert(key.clone(), State::Waits(at));
                self.due.insert((at, key.clone()));
            }
            Some(State::Waits(known)) if at < *known => {
                self.due.remove(&(*known, key.clone()));
                *known = at;
                self.due.insert((at, key.clone()));
            }
            Some(State::Waits(_)) => {}
            Some(State::Works(again)) => *again = Some(again.map_or(at, |known| known.min(at))),
        }
    }

    /// The next job that is due, which counts as being worked on from now on.
    pub(crate) fn next(&mut self, now: Instant) -> Option<K> {
        let (at, _) = self.due.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.due.pop_first()?;
        self.states.insert(key.clone(), State::Works(None));
        Some(key)
    }

    /// Says that a job is not being worked on any more. It waits again if it was asked for meanwhile.
    pub(crate) fn done(&mut self, key: &K) {
        if let Some(State::Works(Some(at))) = self.states.remove(key) {
            self.add(key, at);
        }
    }

    /// When something will be due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many jobs are due by then and not being worked on.
    pub(crate) fn depth(&self, now: Instant) -> usize {
        self.due.iter().take_while(|(at, _)| *at <= now).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_handed_out_once_however_often_it_was_asked_for() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.add(&"a", start + DEBOUNCE);
        queue.add(&"a", start + DEBOUNCE * 2);
        queue.add(&"b", start + DEBOUNCE * 3);
        queue.add(&"b", start);
        assert_eq!(queue.depth(start), 1);
        assert_eq!((queue.next(start), queue.next(start)), (Some("b"), None));
        assert_eq!(queue.next_due(), Some(start + DEBOUNCE));
        assert_eq!(queue.next(start + DEBOUNCE), Some("a"));
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn a_job_that_is_worked_on_is_handed_out_again_only_when_that_is_done() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.add(&"a", start);
        assert_eq!(queue.next(start), Some("a"));
        queue.add(&"a", start + DEBOUNCE);
        queue.add(&"a", start);
        assert_eq!(queue.next(start + DEBOUNCE), None);
        queue.done(&"a");
        assert_eq!(queue.next(start), Some("a"));
        queue.done(&"a");
        assert_eq!(queue.next(start + DEBOUNCE), None);
    }
}
