//! Where agreements lie in the plan, before a change of nodes or resources and after it.

use scheduler::Interval;

use crate::agreement::{Agreement, Money};

/// Where an agreement lies in the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPlace {
    /// Name of the resource.
    pub resource: String,
    /// From the start of its first slot to the end of its last.
    pub slot: Interval,
    /// The nodes of the largest.
    pub nodes: u32,
}

impl PlannedPlace {
    pub(super) fn of(agreement: &Agreement) -> Self {
        Self {
            resource: agreement.resource.clone(),
            slot: agreement.placement(),
            nodes: agreement.nodes(),
        }
    }
}

/// What became of the place of an agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceChange {
    /// Its party.
    pub party: String,
    /// The name in its offer.
    pub name: Option<String>,
    /// The application that it runs, where it runs one.
    pub application: Option<String>,
    /// Where it was.
    pub from: PlannedPlace,
    /// Where it is; none where there is no place for it any more.
    pub to: Option<PlannedPlace>,
    /// What the provider pays for that because its guarantees are violated: a sum for each currency.
    pub penalties: Vec<Money>,
}

impl PlaceChange {
    /// Whether it lies elsewhere now.
    pub fn has_moved(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to != self.from)
    }
}
