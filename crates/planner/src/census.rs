//! How the plan stands, in numbers.

use std::collections::BTreeMap;

use domain::agreement::{Agreement, AgreementState};
use scheduler::{Interval, Seconds};

use crate::context::View;
use crate::limits::quotas;

/// The times ahead of which it is counted how much is taken: a word for each, and its seconds.
pub const AHEAD: [(&str, Seconds); 2] = [("day", 86_400), ("week", 7 * 86_400)];

/// How the plan stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Census {
    /// Agreements that are not over, by state.
    pub agreements: BTreeMap<&'static str, u64>,
    /// The agreements whose moves are recorded and not settled.
    pub unsettled: usize,
    /// The ones among them with a job that runs or is about to.
    pub jobs: u64,
    /// Negotiations that go on.
    pub negotiations: u64,
    /// Offers in them by which something can be had or held, that were not accepted.
    pub offers: u64,
    /// The offers for which nodes are kept.
    pub held: u64,
    /// Parties that are near one of their bounds, or beyond it.
    pub near_quota: usize,
    /// The resources that are in service.
    pub resources: Vec<ResourceCensus>,
}

/// How a resource stands.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceCensus {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: u32,
    /// The ones that are up.
    pub up: u32,
    /// The ones that are in a slot now.
    pub busy: u64,
    /// Node-seconds that are taken, and all there are, for each time ahead.
    pub taken: [(u64, u64); AHEAD.len()],
}

/// Counts the contents of the plan. O(p + r log n) for p agreements in their slots and r resources.
pub(crate) fn census(view: View<'_>) -> Census {
    let live = view.agreements;
    let states = AgreementState::ALL.into_iter().filter(|state| !state.is_final());
    let runs = |agreement: &&Agreement| agreement.job.is_some();
    let (standing, held) = view.table.standing();
    let mut census = Census {
        agreements: states.map(|state| (state.word(), live.count(state))).collect(),
        unsettled: view.life.unsettled_moves().len(),
        jobs: live.processing().filter(runs).count() as u64,
        negotiations: view.table.len() as u64,
        offers: standing as u64,
        held: held as u64,
        near_quota: quotas::parties_near_quota(view),
        resources: Vec::new(),
    };
    let mut busy: BTreeMap<&str, u64> = BTreeMap::new();
    let begun = view.life.nodes();
    for (agreement, nodes) in begun.filter_map(|(id, nodes)| Some((live.get(id)?, nodes))) {
        if agreement.has_nodes() {
            *busy.entry(&agreement.resource).or_default() += nodes.len() as u64;
        }
    }
    let now = view.present_second();
    for resource_plan in view.schedules.in_service() {
        let (name, nodes) = (
            resource_plan.resource.name.clone(),
            resource_plan.resource.capacity,
        );
        let taken = AHEAD.map(|(_, seconds)| {
            let all = u64::from(nodes) * seconds.unsigned_abs();
            (
                resource_plan
                    .schedule
                    .tree()
                    .busy_area(Interval::of(now, seconds)),
                all,
            )
        });
        census.resources.push(ResourceCensus {
            nodes,
            up: resource_plan.nodes.up(nodes),
            busy: busy.get(name.as_str()).copied().unwrap_or_default(),
            taken,
            name,
        });
    }
    census
}
