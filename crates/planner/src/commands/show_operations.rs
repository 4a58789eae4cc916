//! It is told how the resources are used, and what waits for them.

use std::collections::BTreeMap;

use domain::agreement::{Agreement, ServiceState};
use scheduler::Interval;

use super::{Command, Decision};
use crate::census::AHEAD;
use crate::decider::{Decider, DecisionStep};

/// How the resources are used, and what waits for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Operations {
    /// In the provider's order, without the retired ones that have nothing any more.
    pub resources: Vec<ResourceOperations>,
    /// How many agreements wait for their slots.
    pub waiting: usize,
    /// The first of them to begin.
    pub next: Vec<Agreement>,
}

/// How a resource is used.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceOperations {
    /// Its name.
    pub name: String,
    /// How many of its nodes agreements have now.
    pub booked: u32,
    /// On how many of these something runs.
    pub used: u32,
    /// Node-seconds that are planned for something in each time [`AHEAD`].
    pub ahead: [u64; AHEAD.len()],
}

/// The answer is how the resources are used, and what waits for them: O(b + r log n) for b agreements in their slots and r resources.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct ShowOperations {
    /// The most agreements that are told of those that wait.
    pub waiting_max: usize,
}

impl Command for ShowOperations {
    type Answer = Operations;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let now = decider.present_second();
        let agreements = &decider.state.agreements;
        let mut nodes: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for agreement in agreements.begun() {
            let (booked, used) = nodes.entry(&agreement.resource).or_default();
            *booked += agreement.slot_nodes();
            if agreement.service == ServiceState::Processing {
                *used += agreement.slot_nodes();
            }
        }
        let plans = decider.state.schedules.plans();
        let resources = plans.map(|plan| {
            let name = plan.resource.name.clone();
            let (booked, used) = nodes.get(name.as_str()).copied().unwrap_or_default();
            ResourceOperations {
                name,
                booked,
                used,
                ahead: AHEAD.map(|(_, seconds)| plan.booked_within(Interval::of(now, seconds))),
            }
        });
        Ok(DecisionStep::Done(Operations {
            resources: resources.collect(),
            waiting: agreements.waiting_count(),
            next: agreements.waiting().take(self.waiting_max).cloned().collect(),
        }))
    }
}
