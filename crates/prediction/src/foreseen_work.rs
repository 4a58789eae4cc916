//! What is foreseen of work on each resource.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use scheduler::Seconds;
use scheduler::domain::{Forecast, Forecasts};

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
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Forecast)> {
        self.by_name.iter().map(|(name, each)| (name.as_str(), &**each))
    }
}
