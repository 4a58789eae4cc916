//! Many resources: which of them takes a request, and when.
//!
//! Each resource has a plan of its own. A decision must find the best placement of all matching resources without asking
//! every plan, since ten thousand of them stay interactive only if most are never looked at. Three things keep it short:
//! * *matching* is an intersection of bit sets, one for each value of an attribute;
//! * *bounds before searches*: resources of the same rate and price form a kind, kinds are tried in the order of the best that
//!   they could offer, and it ends as soon as none can beat the place found;
//! * an *index* over time (`index`) knows in which stretches of time a resource could start a request of about that size and
//!   duration, so that the others are passed over 64 at a time.
//!
//! A task may have a forecast for each resource: a slot and a completion that differ from one resource to the next and with the
//! start. Resources with forecasts are asked in the order of the best that each could offer (`by_forecast`).
//!
//! The answer is the one that a scan of all resources and starts would give; ties go to the earlier end, then to the lower id, then to
//! the later start (a shorter slot).

mod attributes;
mod bits;
mod by_forecast;
mod forecast;
mod index;
mod least_lost;
mod members;
mod search;
#[cfg(test)]
mod tests;

pub use attributes::{Attribute, Requirement};
pub use forecast::{Forecast, Forecasts, ForeseenTimes};

use crate::rate::Rate;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};
use attributes::Catalogue;
use index::Index;
use std::collections::BTreeMap;
use std::ops::Range;

/// The domain's data about a resource, apart from its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Distinct in its domain; the lower one wins a tie.
    pub id: u64,
    /// How fast its nodes work.
    pub rate: Rate,
    /// The price of a node for a second, in any unit that all resources share.
    pub price: u32,
    /// Its attributes.
    pub attributes: BTreeMap<String, Attribute>,
}

/// Something with a plan: the bare tree, or one with its queue.
pub trait HasPlan {
    /// The free nodes over time.
    fn plan(&self) -> &SlotTree;
}

impl HasPlan for SlotTree {
    fn plan(&self) -> &SlotTree {
        self
    }
}

/// A request to a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Nodes, at least 1.
    pub nodes: u32,
    /// Seconds of work of each node at the reference rate, at least 1.
    pub work: Seconds,
    /// From the ready time to the deadline.
    pub window: Interval,
    /// All of them must hold.
    pub requires: Vec<Requirement>,
    /// Resources that are out of the question, such as the one that it was displaced from.
    pub except: Vec<u64>,
    /// What is foreseen of it on resources, in place of their rate: the length of its slot there, its completion and its loss.
    pub forecasts: Option<Forecasts>,
}

/// The order of placements from better to worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// The earliest completion: that which is foreseen, else the end of the slot.
    #[default]
    EarliestCompletion,
    /// The lowest cost: price · nodes · seconds, and the loss that is foreseen.
    Cheapest,
    /// The latest start.
    LatestStart,
    /// The least work lost, for resources that differ in speed: of the slowest rate that is in time, and there with the fewest
    /// node-seconds of idle leads and of waiting. An idle lead is idle time before the slot on its nodes, whose nominal capacity, c = μ · (et − st)
    /// in section II of paper 003, later tasks may not be able to use; counted up to the length of the slot. It generalises
    /// the laboratory's search among single servers to resources of many nodes.
    LeastWorkLost,
}

/// The order of candidates under one objective: the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Completion in seconds, cost, start in seconds negated, or the rate and then the node-seconds lost, by the objective.
    pub objective: i128,
    /// Then the earlier end of the slot.
    pub completion: Time,
    /// Then the lower id of the resource.
    pub resource: u64,
}

/// A placement that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The resource's id.
    pub resource: u64,
    /// When it would hold its nodes.
    pub slot: Interval,
    /// What is foreseen of it; by the rate where nothing is.
    pub foreseen: ForeseenTimes,
    /// Price · nodes · seconds.
    pub cost: u128,
    /// How good it is.
    pub rank: Rank,
}

/// Resources that are alike in rate and price, and lie side by side.
#[derive(Debug, Clone)]
struct Kind {
    rate: Rate,
    price: u32,
    members: Range<usize>,
}

/// Resources with their plans, and the data to choose among them.
///
/// ```
/// use scheduler::domain::{Domain, Objective, Resource, Task};
/// use scheduler::{Interval, Rate, SlotTree, Time};
/// let fast = Rate::from_millionths(2_000_000).ok_or("zero")?;
/// let resource = |id, rate, price| Resource { id, rate, price, attributes: Default::default() };
/// let planned = Interval::new(Time(0), Time(86_400));
/// let mut domain = Domain::new(
///     planned,
///     vec![(resource(1, Rate::REFERENCE, 1), SlotTree::new(8)), (resource(2, fast, 5), SlotTree::new(8))],
/// );
/// let task = Task { nodes: 4, work: 600, window: planned, requires: vec![], except: vec![], forecasts: None };
/// let best = domain.decide(&task, Objective::EarliestCompletion).map_err(|reason| reason.word())?;
/// assert_eq!((best.resource, best.slot.end, best.cost), (2, Time(300), 6_000));
/// let best = domain.decide(&task, Objective::Cheapest).map_err(|reason| reason.word())?;
/// assert_eq!((best.resource, best.slot.end, best.cost), (1, Time(600), 2_400));
/// domain.change(best.resource, |plan| (plan.reserve(best.slot, task.nodes), vec![best.slot]));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
pub struct Domain<P> {
    /// By rate (fastest first), price and id, so that kinds are contiguous.
    resources: Vec<Resource>,
    plans: Vec<P>,
    numbers: BTreeMap<u64, usize>,
    kinds: Vec<Kind>,
    /// Indices of kinds, by cost of work.
    cheapest: Vec<usize>,
    catalogue: Catalogue,
    index: Index,
}

impl<P: HasPlan> Domain<P> {
    /// A domain of `resources`. Their starts are indexed over `planned`; later starts are found too, only not as fast, and
    /// nothing starts before. O(r log n) for r resources of n reservations, some hundred searches of each plan.
    ///
    /// # Panics
    /// If two resources have the same id.
    pub fn new(planned: Interval, mut resources: Vec<(Resource, P)>) -> Self {
        resources.sort_by_key(|(resource, _)| members::order_among_members(resource));
        let (resources, plans): (Vec<_>, Vec<_>) = resources.into_iter().unzip();
        let mut domain = Self {
            catalogue: Catalogue::new(&[]),
            index: Index::new(planned, &plans),
            resources,
            plans,
            numbers: BTreeMap::new(),
            kinds: Vec::new(),
            cheapest: Vec::new(),
        };
        domain.arrange();
        domain
    }

    /// A resource and its plan.
    pub fn get(&self, resource: u64) -> Option<(&Resource, &P)> {
        let number = *self.numbers.get(&resource)?;
        Some((&self.resources[number], &self.plans[number]))
    }

    /// All resources and their plans, fastest first.
    pub fn iter(&self) -> impl Iterator<Item = (&Resource, &P)> {
        self.resources.iter().zip(&self.plans)
    }

    /// Changes one plan. `change` also returns the intervals in which the number of free nodes may have changed: where it leaves
    /// one out, later decisions may overlook the room that became free there. O((b + 1) log n) for b stretches of the index
    /// touched. `None` for an unknown resource.
    pub fn change<R>(
        &mut self,
        resource: u64,
        change: impl FnOnce(&mut P) -> (R, Vec<Interval>),
    ) -> Option<R> {
        let number = *self.numbers.get(&resource)?;
        let (result, touched) = change(&mut self.plans[number]);
        for interval in touched {
            self.index.refresh(number, self.plans[number].plan(), interval);
        }
        Some(result)
    }

    /// Moves the planned time on so that it begins about `now`: no decision starts before, and the index reaches as far beyond
    /// the old end. Costs nothing until a stretch of the index has passed, then some searches of each plan.
    pub fn advance(&mut self, now: Time) {
        self.index.advance(now, &self.plans);
    }
}
