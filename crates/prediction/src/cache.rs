//! Forecasts of work that has been asked about before.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use scheduler::Seconds;
use scheduler::domain::{Forecast, Forecasts};

use super::work::{Hold, Work};

/// Steps of all forecasts that are kept, some sixty bytes each; they are forgotten together when there are more.
const STEPS_MAX: usize = 1_000_000;

/// Works that are kept: a day of an active domain, some hundred bytes each beside their steps.
const WORKS_MAX: usize = 10_000;

/// What is asked about: a piece of work with its slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    application: String,
    version: Option<String>,
    arguments: Option<Vec<String>>,
    party: Option<String>,
    nodes: Option<u32>,
    bytes: [Option<u64>; 3],
    hold: Hold,
    penalty: u128,
}

impl Key {
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

/// The ids by which a planner knows resources, by name. A planner makes a new one where its resources change.
pub type Ids = BTreeMap<String, u64>;

/// What is foreseen of work on each resource.
#[derive(Debug)]
pub struct ForeseenWork {
    by_name: Vec<(String, Arc<Forecast>)>,
    least_hold: Option<Seconds>,
    /// The same by the ids of the planner that has asked last.
    by_id: Mutex<Option<(Arc<Ids>, Forecasts)>>,
}

impl ForeseenWork {
    pub(super) fn new(by_name: Vec<(String, Arc<Forecast>)>) -> Self {
        let holds = by_name.iter().flat_map(|(_, each)| each.steps());
        Self {
            least_hold: holds.map(|(_, foreseen)| foreseen.hold).min(),
            by_name,
            by_id: Mutex::default(),
        }
    }

    /// The forecasts by the ids of a planner.
    pub fn forecasts(&self, ids: &Arc<Ids>) -> Forecasts {
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        match &*by_id {
            Some((kept_ids, forecasts)) if Arc::ptr_eq(kept_ids, ids) => forecasts.clone(),
            _ => {
                let known = self.by_name.iter();
                let known = known.filter_map(|(name, known)| Some((*ids.get(name)?, Arc::clone(known))));
                let forecasts = Forecasts::new(known);
                *by_id = Some((Arc::clone(ids), forecasts.clone()));
                forecasts
            }
        }
    }

    /// The shortest slot on any resource; none without resources.
    pub fn least_hold(&self) -> Option<Seconds> {
        self.least_hold
    }

    /// The longest slot on a resource.
    pub fn longest_hold(&self, resource: &str) -> Option<Seconds> {
        let (_, by_name) = self.by_name.iter().find(|(name, _)| name == resource)?;
        by_name.steps().map(|(_, foreseen)| foreseen.hold).max()
    }

    /// By the names of the resources.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Forecast)> {
        self.by_name.iter().map(|(name, each)| (name.as_str(), &**each))
    }
}

#[derive(Default)]
struct CachedForecasts {
    works: HashMap<Key, Option<Arc<ForeseenWork>>>,
    steps: usize,
}

/// The forecasts that were made from one knowledge. They follow from it, so that they are no part of what it is equal by.
#[derive(Default)]
pub(super) struct Cache(Mutex<CachedForecasts>);

impl Cache {
    /// The forecasts of something, made if they are not there. Two that ask at once may both make them.
    pub(super) fn get(
        &self,
        key: Key,
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
