//! The times when nodes are free, for a class of resources together. The holders of the other nodes are never shown.

use scheduler::{Interval, Seconds};

use crate::decider::Decider;
use crate::error::Result;
use crate::free_time::{join_free_intervals, whole_steps_of_gap};

/// Gaps of one resource, and intervals of an answer, at most. The ones beyond are left out at the end.
const GAPS_MAX: usize = 1_000;
/// For how long the caller's quotas leave it the nodes around a time that is told; for less where less time is asked about.
const LEAST: Seconds = 3_600;

/// A question about free nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    /// The caller.
    pub party: String,
    /// The least number of nodes, on one resource.
    pub nodes: u32,
    /// In this time.
    pub within: Interval,
    /// On resources of this kind; any where none is named.
    pub kind: Option<String>,
}

impl Decider<'_> {
    /// The times in which a number of nodes is free on some resource of a class and the quotas of the caller leave them to it, in order
    /// and apart from each other, in the provider's steps; none where the provider does not show it.
    pub fn availability(&mut self, asked: &Availability) -> Result<Option<Vec<Interval>>> {
        if !self.settings.refusals.availability {
            return Ok(None);
        }
        self.count_quota_question(&asked.party)?;
        let now = self.present_second();
        let within = Interval::new(
            asked.within.start.max(now),
            asked.within.end.min(now + self.settings.horizon),
        );
        if within.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let allowance = self.allowance(&asked.party, None);
        let size = (asked.nodes, within.duration().min(LEAST));
        let of_kind = |kind: &str| asked.kind.as_deref().is_none_or(|wanted| wanted == kind);
        let mut gaps: Vec<Interval> = self
            .plan
            .resources
            .in_service()
            .filter(|each| each.resource.takes_new())
            .filter(|each| of_kind(&each.resource.kind) && each.resource.capacity >= asked.nodes)
            .flat_map(|resource_plan| {
                let on = (
                    resource_plan.resource.name.as_str(),
                    resource_plan.resource.capacity,
                );
                let tree = resource_plan.schedule.tree();
                let allowed = allowance.times(on, size, within).into_iter();
                allowed.flat_map(move |allowed| tree.gaps(allowed, asked.nodes).take(GAPS_MAX))
            })
            .collect();
        gaps.sort_unstable_by_key(|gap| (gap.start, gap.end));
        let step = self.settings.refusals.coarsen;
        let mut free = join_free_intervals(&gaps);
        free.retain_mut(|gap| {
            *gap = whole_steps_of_gap(*gap, step);
            !gap.is_empty()
        });
        free.truncate(GAPS_MAX);
        Ok(Some(free))
    }
}
