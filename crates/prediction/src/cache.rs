//! Forecasts of work that has been asked about before.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::foreseen_work::ForeseenWork;
use super::work::{Hold, Work};

/// Steps of all forecasts that are kept, some sixty bytes each; they are forgotten together when there are more.
const STEPS_MAX: usize = 1_000_000;

/// Works that are kept: a day of an active domain, some hundred bytes each beside their steps.
const WORKS_MAX: usize = 10_000;

/// What is asked about: a piece of work with its slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    application: String,
    version: Option<String>,
    arguments: Option<Vec<String>>,
    party: Option<String>,
    nodes: Option<u32>,
    bytes: [Option<u64>; 3],
    hold: Hold,
    penalty: u128,
}

impl CacheKey {
    pub(super) fn of(work: &Work<'_>, hold: Hold, penalty: u128) -> Self {
        Self {
            application: work.application.to_owned(),
            version: work.version.map(str::to_owned),
            arguments: work.arguments.map(<[String]>::to_vec),
            party: work.party.map(str::to_owned),
            nodes: work.nodes,
            bytes: [work.input_bytes, work.output_bytes, Some(work.uploaded_bytes)],
            hold,
            penalty,
        }
    }
}

#[derive(Default)]
struct CachedForecasts {
    works: HashMap<CacheKey, Option<Arc<ForeseenWork>>>,
    steps: usize,
}

/// The forecasts that were made from one knowledge. They follow from it, so that they are no part of what it is equal by.
#[derive(Default)]
pub(super) struct Cache(Mutex<CachedForecasts>);

impl Cache {
    /// The forecasts of something, made if they are not there. Two that ask at once may both make them.
    pub(super) fn get(
        &self,
        key: CacheKey,
        make: impl FnOnce() -> Option<ForeseenWork>,
    ) -> Option<Arc<ForeseenWork>> {
        if let Some(found) = self.kept().works.get(&key) {
            return found.clone();
        }
        let made = make().map(Arc::new);
        // One that nothing is foreseen of takes its room, too.
        let steps = made
            .as_ref()
            .map_or(1, |made| made.iter().map(|(_, made)| made.steps().count()).sum());
        let mut kept = self.kept();
        if kept.steps + steps > STEPS_MAX || kept.works.len() >= WORKS_MAX {
            *kept = CachedForecasts::default();
        }
        kept.steps += steps;
        kept.works.insert(key, made.clone());
        made
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, CachedForecasts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Cache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Cache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} works", self.kept().works.len())
    }
}
