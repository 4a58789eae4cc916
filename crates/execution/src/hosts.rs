//! The replicas that local resources belong to, as this one knows them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use task::lock::{read, write};

/// The replicas that local resources belong to. Clones share what they know.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    own: Arc<str>,
    by_resource: Arc<RwLock<BTreeMap<String, String>>>,
    /// Counts their changes.
    changes: Arc<AtomicU64>,
}

impl Hosts {
    /// As the replica of this name sees them; none are known yet.
    pub fn seen_by(own: &str) -> Self {
        Self {
            own: own.into(),
            by_resource: Arc::default(),
            changes: Arc::default(),
        }
    }

    /// Whether this process may be one of several.
    pub(super) fn is_one_of_several(&self) -> bool {
        !self.own.is_empty()
    }

    /// Takes note of the replica of each local resource.
    pub fn replace(&self, by_resource: BTreeMap<String, String>) {
        let mut known = write(&self.by_resource);
        if *known != by_resource {
            *known = by_resource;
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often that has changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The replica that a resource belongs to, where that is another one than this process.
    pub fn elsewhere(&self, resource: &str) -> Option<String> {
        let known = read(&self.by_resource);
        known.get(resource).filter(|host| ***host != *self.own).cloned()
    }

    /// The local resources of a replica.
    pub fn of(&self, replica: &str) -> Vec<String> {
        let known = read(&self.by_resource);
        let own = known.iter().filter(|(_, host)| *host == replica);
        own.map(|(resource, _)| resource.clone()).collect()
    }

    /// Whether a local resource belongs to this process. Alone, it has all of them.
    pub fn is_own(&self, resource: &str) -> bool {
        let known = read(&self.by_resource);
        !self.is_one_of_several() || known.get(resource).is_some_and(|host| **host == *self.own)
    }

    /// The local resources, each with its replica.
    pub fn all(&self) -> Vec<(String, String)> {
        let known = read(&self.by_resource);
        let each = known.iter().map(|(known, host)| (known.clone(), host.clone()));
        each.collect()
    }
}
