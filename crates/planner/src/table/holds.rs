//! The nodes that are kept for offers, by choice and by resource. Of a choice one offer can be taken: those of one answer, or all for a
//! change of one agreement.

use std::collections::BTreeMap;

use domain::agreement::Stretch;
use scheduler::{Request, Time};
use uuid::Uuid;

/// A stretch that is kept, and the number by which the schedule of its resource knows it.
#[derive(Debug, Clone)]
pub(crate) struct HeldStretch {
    pub(crate) resource: String,
    pub(crate) number: u64,
    pub(crate) stretch: Stretch,
}

impl HeldStretch {
    /// As the schedule of its resource sees it.
    pub(crate) fn request(&self, submitted: Time) -> Request {
        let (interval, nodes) = self.stretch;
        Request {
            id: self.number,
            submitted,
            ready: interval.start,
            deadline: interval.end,
            duration: interval.duration(),
            nodes,
            revenue: 0,
        }
    }
}

/// Stretches of one resource by start and number, each with its end and the choice that it is kept for.
pub(crate) type ByStart = BTreeMap<(Time, u64), (Time, Uuid)>;

/// The nodes kept for the offers of one choice, by choice and by resource.
#[derive(Clone, Default)]
pub(crate) struct Holds {
    pub(crate) by_choice: BTreeMap<Uuid, Vec<HeldStretch>>,
    pub(crate) by_resource: BTreeMap<String, ByStart>,
}

impl Holds {
    pub(crate) fn insert(&mut self, choice: Uuid, held: HeldStretch) {
        let (slot, _) = held.stretch;
        let here = self.by_resource.entry(held.resource.clone()).or_default();
        here.insert((slot.start, held.number), (slot.end, choice));
        self.by_choice.entry(choice).or_default().push(held);
    }

    /// Lets go of the hold of a choice.
    pub(crate) fn remove(&mut self, choice: Uuid) -> Vec<HeldStretch> {
        let all = self.by_choice.remove(&choice).unwrap_or_default();
        for held in &all {
            if let Some(here) = self.by_resource.get_mut(&held.resource) {
                here.remove(&(held.stretch.0.start, held.number));
            }
        }
        all
    }

    /// The hold of a choice.
    pub(crate) fn of(&self, choice: Uuid) -> &[HeldStretch] {
        self.by_choice.get(&choice).map_or(&[], Vec::as_slice)
    }

    /// Starts and numbers of the stretches kept on a resource, with their ends and choices.
    pub(crate) fn on(&self, resource: &str) -> impl Iterator<Item = (&(Time, u64), &(Time, Uuid))> {
        self.by_resource.get(resource).into_iter().flatten()
    }
}
