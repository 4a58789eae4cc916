//! The times when nodes are free, for a class of resources together. The holders of the other nodes are never shown.

use std::collections::BTreeSet;

use scheduler::{Interval, Seconds};

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::free_time::{free_time_in_whole_steps, join_free_time};
use crate::limits::{allowance, quotas};

/// Gaps of one resource, and intervals of an answer, at most. The ones beyond are left out at the end.
const GAPS_MAX: usize = 1_000;
/// For how long the caller's quotas leave it the nodes around a time that is told; for less where less time is asked about.
const LEAST: Seconds = 3_600;

/// The times are to be told in which a number of nodes is free on some resource of a class and the quotas of the caller leave them to it,
/// in order and apart from each other, in the provider's steps; none where the provider does not show it. O(g log g) for g gaps of all its resources.
///
/// # Errors
/// [`Error::Refused`](crate::Error::Refused) where its party asks more often than it may,
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShowAvailability {
    /// The caller.
    pub party: String,
    /// The least number of nodes, on one resource.
    pub nodes: u32,
    /// In this time.
    pub within: Interval,
    /// On resources of this kind; any where none is named.
    pub kind: Option<String>,
}

impl Command for ShowAvailability {
    type Answer = Option<Vec<Interval>>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        if !decider.settings.refusals.availability {
            return Ok(DecisionStep::Done(None));
        }
        quotas::count_quota_question(&mut decider.search(), &self.party)?;
        let now = decider.present_second();
        let within = Interval::new(
            self.within.start.max(now),
            self.within
                .end
                .min(quotas::quota_horizon_of(decider.view(), &self.party)),
        );
        if within.is_empty() {
            return Ok(DecisionStep::Done(Some(Vec::new())));
        }
        let allowance = allowance::allowance(decider.view(), &self.party, None);
        let size = (self.nodes, within.duration().min(LEAST));
        let closed: BTreeSet<&str> = decider.state.schedules.closed().collect();
        let of_kind = |kind: &str| self.kind.as_deref().is_none_or(|wanted| wanted == kind);
        let mut gaps: Vec<Interval> = decider
            .state
            .schedules
            .in_service()
            .filter(|each| each.resource.takes_new() && !closed.contains(each.resource.name.as_str()))
            .filter(|each| of_kind(&each.resource.kind) && each.resource.capacity >= self.nodes)
            .flat_map(|resource_plan| {
                let on = (
                    resource_plan.resource.name.as_str(),
                    resource_plan.resource.capacity,
                );
                let tree = resource_plan.schedule.tree();
                let allowed = allowance.times(on, size, within).into_iter();
                let nodes = self.nodes;
                allowed.flat_map(move |allowed| tree.search_gaps(allowed, nodes).take(GAPS_MAX))
            })
            .collect();
        gaps.sort_unstable_by_key(|gap| (gap.start, gap.end));
        let step = decider.settings.refusals.coarsen;
        let mut free = join_free_time(&gaps);
        free.retain_mut(|gap| {
            *gap = free_time_in_whole_steps(*gap, step);
            !gap.is_empty()
        });
        free.truncate(GAPS_MAX);
        Ok(DecisionStep::Done(Some(free)))
    }
}
