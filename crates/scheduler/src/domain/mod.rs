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
//! start. Resources with forecasts are asked in the order of the best that each could offer (`search_by_forecast`).
//!
//! The answer is the one that a scan of all resources and starts would give; ties go to the earlier end, then to the lower id, then to
//! the later start (a shorter slot).

mod attribute_catalogue;
mod bits;
mod candidate;
mod forecast;
mod index;
mod least_lost;
mod search;
mod search_by_forecast;
#[cfg(test)]
mod tests;

pub use attribute_catalogue::{Attribute, Requirement};
pub use candidate::{Candidate, Objective, Rank};
pub use forecast::{Forecast, Forecasts, ForeseenTimes};

use crate::rate::Rate;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};
use attribute_catalogue::AttributeCatalogue;
use index::Index;
use std::cmp::Reverse;
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

/// Resources that are alike in rate and price, and lie side by side.
#[derive(Debug, Clone)]
struct Kind {
    rate: Rate,
    price: u32,
    members: Range<usize>,
}

/// From this number of changes on, a new index is made of all plans: a walk of each plan is cheaper then than to make room for
/// each change.
const RENEWED_FROM: usize = 64;

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
    catalogue: AttributeCatalogue,
    index: Index,
}

impl<P: HasPlan> Domain<P> {
    /// A domain of `resources`. Their starts are indexed over `planned`; later starts are found too, only not as fast, and
    /// nothing starts before. O(r log n) for r resources of n reservations, some hundred searches of each plan.
    ///
    /// # Panics
    /// If two resources have the same id.
    pub fn new(planned: Interval, mut resources: Vec<(Resource, P)>) -> Self {
        resources.sort_by_key(|(resource, _)| order_among_members(resource));
        let (resources, plans): (Vec<_>, Vec<_>) = resources.into_iter().unzip();
        let mut domain = Self {
            catalogue: AttributeCatalogue::new(&[]),
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

    /// Takes in resources with their plans. For few of them O(r + b + s log n): r resources, b bits of the index (some
    /// megabytes for ten thousand resources) and s steps of their plans; for many the time of [`Domain::new`].
    ///
    /// # Panics
    /// If a resource has the id of another.
    pub fn insert(&mut self, more: Vec<(Resource, P)>) {
        if more.len() >= RENEWED_FROM {
            return self.renew(|all| all.extend(more));
        }
        for (resource, plan) in more {
            let key = order_among_members(&resource);
            let number = self
                .resources
                .partition_point(|resource| order_among_members(resource) < key);
            self.index.insert(number, plan.plan());
            self.resources.insert(number, resource);
            self.plans.insert(number, plan);
        }
        self.arrange();
    }

    /// Gives a resource and its plan back, which is no longer part of the domain; `None` for an unknown one. O(r + b) as
    /// [`Domain::insert`] has it.
    pub(crate) fn remove(&mut self, resource: u64) -> Option<(Resource, P)> {
        let number = *self.numbers.get(&resource)?;
        self.index.remove(number);
        let gone = (self.resources.remove(number), self.plans.remove(number));
        self.arrange();
        Some(gone)
    }

    /// Gives resources another rate, price or attributes, or takes note of another capacity of their plans. Unknown ones are left
    /// out. The time of as many calls of [`Domain::insert`] and [`Domain::remove`], or of [`Domain::new`].
    pub fn revise(&mut self, changed: Vec<Resource>) {
        if changed.len() < RENEWED_FROM {
            for resource in changed {
                if let Some((_, plan)) = self.remove(resource.id) {
                    self.insert(vec![(resource, plan)]);
                }
            }
            return;
        }
        let mut changed: BTreeMap<u64, Resource> =
            changed.into_iter().map(|changed| (changed.id, changed)).collect();
        self.renew(|all| {
            for (resource, _) in all {
                if let Some(next) = changed.remove(&resource.id) {
                    *resource = next;
                }
            }
        });
    }

    /// Changes all resources, and makes a new index of their plans.
    fn renew(&mut self, change: impl FnOnce(&mut Vec<(Resource, P)>)) {
        let resources = std::mem::take(&mut self.resources);
        let mut all: Vec<_> = resources
            .into_iter()
            .zip(std::mem::take(&mut self.plans))
            .collect();
        change(&mut all);
        all.sort_by_key(|(resource, _)| order_among_members(resource));
        (self.resources, self.plans) = all.into_iter().unzip();
        self.index.renew(&self.plans);
        self.arrange();
    }

    /// Finds the kinds of the resources, which are in order, and all that is known of each by its number, except the index.
    fn arrange(&mut self) {
        let resources = &self.resources;
        self.numbers = resources.iter().enumerate().map(|(n, r)| (r.id, n)).collect();
        assert_eq!(
            self.numbers.len(),
            resources.len(),
            "resources of a domain have distinct ids"
        );
        self.kinds.clear();
        let mut first = 0;
        for alike in resources.chunk_by(|a, b| (a.rate, a.price) == (b.rate, b.price)) {
            self.kinds.push(Kind {
                rate: alike[0].rate,
                price: alike[0].price,
                members: first..first + alike.len(),
            });
            first += alike.len();
        }
        self.cheapest = (0..self.kinds.len()).collect();
        self.cheapest.sort_by(|a, b| {
            let (a, b) = (&self.kinds[*a], &self.kinds[*b]);
            // Price over rate, compared across without division.
            let cost = |k: &Kind, other: &Kind| u64::from(k.price) * u64::from(other.rate.millionths());
            cost(a, b).cmp(&cost(b, a))
        });
        self.catalogue = AttributeCatalogue::new(resources);
    }

    /// Moves the planned time on so that it begins about `now`: no decision starts before, and the index reaches as far beyond
    /// the old end. Costs nothing until a stretch of the index has passed, then some searches of each plan.
    pub fn advance(&mut self, now: Time) {
        self.index.advance(now, &self.plans);
    }
}

/// Where a resource lies among the others: side by side with those that are alike in rate and price.
fn order_among_members(resource: &Resource) -> (Reverse<Rate>, u32, u64) {
    (Reverse(resource.rate), resource.price, resource.id)
}
