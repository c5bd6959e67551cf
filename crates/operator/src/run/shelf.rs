//! What one watch has seen: its events enter, the jobs they are about leave. Synchronous, and never out of step with the
//! watch: after it had to list anew, what was not listed is gone.

use std::collections::{BTreeMap, HashMap, HashSet};

use kube::runtime::watcher::Event;

use super::key::Key;

/// Things by job and name.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    things: HashMap<Key, BTreeMap<String, T>>,
    /// What was listed since a list began; nothing between lists.
    listed: Option<HashSet<(Key, String)>>,
    is_complete: bool,
}

/// A thing, where it belongs, and what it is called.
pub(crate) type Placed<T> = (Key, String, T);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { things: HashMap::new(), listed: None, is_complete: false }
    }
}

impl<T> Shelf<T> {
    /// Takes an event in and tells which jobs may have changed.
    pub(crate) fn take<K>(
        &mut self,
        event: Event<K>,
        place: impl FnOnce(K) -> Option<Placed<T>>,
    ) -> Vec<Key> {
        match event {
            Event::Init => {
                self.listed = Some(HashSet::new());
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                place(object).map(|placed| self.put(placed)).into_iter().collect()
            }
            Event::Delete(object) => {
                place(object).map(|(key, name, _)| self.remove(key, &name)).into_iter().collect()
            }
            Event::InitDone => self.forget_unlisted(),
        }
    }

    /// The things of one job.
    pub(crate) fn of(&self, key: &Key) -> impl Iterator<Item = &T> {
        self.things.get(key).into_iter().flat_map(BTreeMap::values)
    }

    /// Whether the first list is through.
    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// How many jobs have things here.
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    fn put(&mut self, (key, name, thing): Placed<T>) -> Key {
        if let Some(listed) = &mut self.listed {
            listed.insert((key.clone(), name.clone()));
        }
        self.things.entry(key.clone()).or_default().insert(name, thing);
        key
    }

    fn remove(&mut self, key: Key, name: &str) -> Key {
        if let Some(things) = self.things.get_mut(&key) {
            things.remove(name);
            if things.is_empty() {
                self.things.remove(&key);
            }
        }
        key
    }

    fn forget_unlisted(&mut self) -> Vec<Key> {
        self.is_complete = true;
        let Some(listed) = self.listed.take() else {
            return Vec::new();
        };
        let known = self.things.iter();
        let gone: Vec<(Key, String)> = known
            .flat_map(|(key, things)| things.keys().map(|name| (key.clone(), name.clone())))
            .filter(|place| !listed.contains(place))
            .collect();
        gone.into_iter().map(|(key, name)| self.remove(key, &name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { kind: "MPIJob", namespace: "lab".into(), name: name.into() }
    }

    fn take(shelf: &mut Shelf<u8>, event: Event<(&'static str, &'static str)>) -> Vec<Key> {
        shelf.take(event, |(job, name)| Some((key(job), name.to_owned(), 0)))
    }

    #[test]
    fn what_a_new_list_does_not_have_is_gone() {
        let mut shelf = Shelf::default();
        take(&mut shelf, Event::Init);
        assert!(!shelf.is_complete());
        for name in ["0", "1"] {
            assert_eq!(take(&mut shelf, Event::InitApply(("a", name))), [key("a")]);
        }
        take(&mut shelf, Event::InitApply(("b", "0")));
        assert_eq!(take(&mut shelf, Event::InitDone), []);
        assert!(shelf.is_complete());

        take(&mut shelf, Event::Init);
        take(&mut shelf, Event::InitApply(("a", "1")));
        assert_eq!(shelf.of(&key("b")).count(), 1, "until the list is through, nothing is gone");
        let mut gone = take(&mut shelf, Event::InitDone);
        gone.sort();
        assert_eq!(gone, [key("a"), key("b")]);
        assert_eq!((shelf.of(&key("a")).count(), shelf.len()), (1, 1));
    }

    #[test]
    fn what_was_deleted_is_gone_at_once() {
        let mut shelf = Shelf::default();
        take(&mut shelf, Event::Apply(("a", "0")));
        assert_eq!(take(&mut shelf, Event::Delete(("a", "0"))), [key("a")]);
        assert_eq!(take(&mut shelf, Event::Delete(("a", "0"))), [key("a")]);
        assert_eq!(shelf.len(), 0);
    }
}
