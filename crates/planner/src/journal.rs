//! Parts of the state of which changes can be taken back: a decision of which nothing is kept is made on the state itself, and costs what it
//! changes, however much waits.
//!
//! An owner takes back its own changes. What is large notes them, in a [`Journal`], a [`JournaledMap`] or a
//! [`Timetable`](crate::timetable::Timetable); small parts are copied before.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Deref;

/// A part of the state of which changes can be taken back.
pub(crate) trait TakeBack {
    /// The copy of the small parts.
    type Before;

    /// Begins to note changes. Tries may be nested.
    fn begin_try(&mut self) -> Self::Before;

    /// Takes back all changes since the innermost try began, and ends it.
    fn take_back(&mut self, before: Self::Before);
}

/// The changes since each try began that goes on, the innermost try last.
#[derive(Debug, Clone)]
pub(crate) struct Journal<C> {
    tries: Vec<Vec<C>>,
}

impl<C> Default for Journal<C> {
    fn default() -> Self {
        Self { tries: Vec::new() }
    }
}

impl<C> Journal<C> {
    /// Begins a try.
    pub(crate) fn begin(&mut self) {
        self.tries.push(Vec::new());
    }

    /// Notes a change, where it may have to be taken back.
    pub(crate) fn note(&mut self, change: impl FnOnce() -> C) {
        if let Some(changes) = self.tries.last_mut() {
            changes.push(change());
        }
    }

    /// Ends the innermost try; its changes, the last one first.
    pub(crate) fn end(&mut self) -> impl Iterator<Item = C> + use<C> {
        self.tries.pop().unwrap_or_default().into_iter().rev()
    }
}

/// A map whose changes can be noted.
pub(crate) trait KeyedValues {
    type Key: Clone;
    type Value: Clone;

    fn put(&mut self, key: Self::Key, value: Self::Value) -> Option<Self::Value>;
    fn take(&mut self, key: &Self::Key) -> Option<Self::Value>;
    fn change(&mut self, key: &Self::Key) -> Option<&mut Self::Value>;
}

impl<K: Clone + Eq + Hash, V: Clone> KeyedValues for HashMap<K, V> {
    type Key = K;
    type Value = V;

    fn put(&mut self, key: K, value: V) -> Option<V> {
        self.insert(key, value)
    }

    fn take(&mut self, key: &K) -> Option<V> {
        self.remove(key)
    }

    fn change(&mut self, key: &K) -> Option<&mut V> {
        self.get_mut(key)
    }
}

impl<K: Clone + Ord, V: Clone> KeyedValues for BTreeMap<K, V> {
    type Key = K;
    type Value = V;

    fn put(&mut self, key: K, value: V) -> Option<V> {
        self.insert(key, value)
    }

    fn take(&mut self, key: &K) -> Option<V> {
        self.remove(key)
    }

    fn change(&mut self, key: &K) -> Option<&mut V> {
        self.get_mut(key)
    }
}

/// A map that notes what each key had before.
#[derive(Debug, Clone)]
pub(crate) struct JournaledMap<M: KeyedValues> {
    map: M,
    journal: Journal<(M::Key, Option<M::Value>)>,
}

impl<M: KeyedValues + Default> Default for JournaledMap<M> {
    fn default() -> Self {
        M::default().into()
    }
}

impl<M: KeyedValues> From<M> for JournaledMap<M> {
    fn from(map: M) -> Self {
        let journal = Journal::default();
        Self { map, journal }
    }
}

impl<M: KeyedValues> Deref for JournaledMap<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.map
    }
}

impl<M: KeyedValues> JournaledMap<M> {
    /// Gives a key a value.
    pub(crate) fn insert(&mut self, key: M::Key, value: M::Value) {
        let noted = key.clone();
        let before = self.map.put(key, value);
        self.journal.note(|| (noted, before));
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, key: &M::Key) -> Option<M::Value> {
        let gone = self.map.take(key)?;
        self.journal.note(|| (key.clone(), Some(gone.clone())));
        Some(gone)
    }

    /// The value of a key, to be changed.
    pub(crate) fn get_mut(&mut self, key: &M::Key) -> Option<&mut M::Value> {
        let value = self.map.change(key)?;
        self.journal.note(|| (key.clone(), Some(value.clone())));
        Some(value)
    }
}

impl<M: KeyedValues> TakeBack for JournaledMap<M> {
    type Before = ();

    fn begin_try(&mut self) {
        self.journal.begin();
    }

    fn take_back(&mut self, (): ()) {
        for (key, before) in self.journal.end() {
            match before {
                Some(value) => self.map.put(key, value),
                None => self.map.take(&key),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_tries_are_taken_back_one_by_one() {
        let mut map: JournaledMap<BTreeMap<u8, u8>> = BTreeMap::from([(1, 1), (2, 2)]).into();
        map.begin_try();
        map.insert(3, 3);
        map.remove(&1);
        let outer = map.map.clone();
        map.begin_try();
        *map.get_mut(&2).unwrap() = 20;
        map.insert(1, 10);
        map.take_back(());
        assert_eq!(map.map, outer);
        map.take_back(());
        assert_eq!(map.map, BTreeMap::from([(1, 1), (2, 2)]));
        map.insert(4, 4);
        assert_eq!(map.len(), 3, "without a try nothing is noted");
    }
}
