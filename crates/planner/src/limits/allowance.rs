//! What its quotas leave a party: the times that it is shown as free, and the sizes that a refusal names.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::{Agreement, Shape};
use domain::resources::Scaling;
use scheduler::refusal::Relaxation;
use scheduler::{Interval, Reason, Seconds, Time, counted};

use crate::context::View;
use crate::free_time::join_free_time;
use crate::limits::share::{bound_of_share, share_of, sizes_within_share_on};
use crate::limits::usage::Usage;
use crate::limits::{quotas, share, usage, window};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::schedules::resource_plan::ResourcePlan;

/// Resources that are looked at for the sizes that a refusal names.
const RESOURCES_MAX: usize = 16;
const HOUR: u128 = 3_600;

/// What its quotas leave a party.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance<'a> {
    /// The node-seconds that it may have beside what it has; none without a bound.
    node_seconds: Option<u128>,
    /// Until when it may plan; none where the provider's own horizon alone binds it.
    until: Option<Time>,
    /// The part of a resource that it may have, in percent; none without a bound.
    share_percent: Option<u32>,
    /// What it has on each resource.
    on: BTreeMap<String, Cow<'a, Usage>>,
}

impl Allowance<'_> {
    /// Whether it leaves every time and every size.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.node_seconds.is_none() && self.until.is_none() && self.share_percent.is_none()
    }

    /// The starts that it leaves in an interval to nodes for a duration on a resource, as intervals with their ends included.
    fn starts(&self, (resource, capacity): (&str, u32), size: Shape, within: Interval) -> Vec<Interval> {
        let end = self.until.map_or(within.end, |until| until.min(within.end));
        let last = end - size.duration;
        let more = u128::from(size.nodes) * u128::from(size.duration.max(0).unsigned_abs());
        if last < within.start || self.node_seconds.is_some_and(|left| more > left) {
            return Vec::new();
        }
        let all = vec![Interval::new(within.start, last)];
        let Some(percent) = self.share_percent else {
            return all;
        };
        let bound = bound_of_share(capacity, percent);
        let none = Usage::default();
        let usage = self.on.get(resource).map_or(&none, |usage| &**usage);
        if usage.leaves(bound.most, more) {
            return all;
        }
        let window = Interval::new(within.start, end);
        usage.starts(bound, (size.nodes, size.duration), window)
    }

    /// The times in an interval that nodes may be used in for a duration on a resource with a capacity, in order and apart from each
    /// other.
    pub(crate) fn times(
        &self,
        on: (&str, u32),
        (nodes, duration): (u32, Seconds),
        within: Interval,
    ) -> Vec<Interval> {
        let starts = self.starts(on, Shape { nodes, duration }, within);
        let slots = starts
            .iter()
            .map(|starts| Interval::new(starts.start, starts.end + duration));
        join_free_time(&slots.collect::<Vec<_>>())
    }

    /// How many nodes may be used for a duration from each of some instants on, known to the next power of two below: 0 before the first.
    pub(crate) fn steps(
        &self,
        on: (&str, u32),
        (nodes, duration): (u32, Seconds),
        within: Interval,
    ) -> Vec<(Time, u32)> {
        let (_, capacity) = on;
        let powers = (0..u32::BITS).map(|power| 1_u32 << power);
        let levels: BTreeSet<u32> = powers
            .chain([nodes, capacity])
            .filter(|level| (1..=capacity).contains(level))
            .collect();
        let times: Vec<(u32, Vec<Interval>)> = levels
            .into_iter()
            .map(|level| (level, self.times(on, (level, duration), within)))
            .collect();
        let ends = times.iter().flat_map(|(_, times)| times);
        let instants: BTreeSet<Time> = ends.flat_map(|time| [time.start, time.end]).collect();
        let step = |at: Time| {
            let holds = |times: &[Interval]| {
                let after = times.partition_point(|time| time.start <= at);
                after.checked_sub(1).is_some_and(|before| at < times[before].end)
            };
            let may = times.iter().rev().find(|(_, times)| holds(times));
            (at, may.map_or(0, |(level, _)| *level))
        };
        instants.into_iter().map(step).collect()
    }
}

/// Holds a proposal within its party's quotas: a window that it leaves open ends where they do, and of the sizes that
/// it may have those are left that they allow. `replaced` would be given up for it.
pub(crate) fn allow_within_quotas(
    view: View<'_>,
    request: &mut Request,
    replaced: Option<&Agreement>,
) -> Result<(), Refusal> {
    quotas::limit_to_quota_horizon(view, request)?;
    let limited = quotas::limit_to_node_hour_quota(view, request, replaced);
    limited.map_err(|why| name_allowed_sizes(view, why, request, replaced))
}

/// Holds a proposal within its party's share: its window gets as small as that asks, and the resources where it would be
/// too much in this window are barred. `replaced` would be given up for it.
pub(crate) fn allow_within_share(
    view: View<'_>,
    proposal: &mut Cow<'_, Request>,
    replaced: Option<&Agreement>,
) -> Result<(), Refusal> {
    let limited = share::narrow_to_share(view, proposal, replaced);
    limited.map_err(|why| match why.reason {
        Reason::QuotaExceeded => name_allowed_sizes(view, why, proposal, replaced),
        _ => why,
    })
}

/// What the quotas of a party leave it; `replaced` would be given up.
pub(crate) fn allowance<'a>(view: View<'a>, party: &str, replaced: Option<&Agreement>) -> Allowance<'a> {
    let of_party = view.settings.quotas_of(party);
    let all = of_party.node_hours.map(|hours| u128::from(hours) * HOUR);
    let share_percent = share_of(view, party);
    Allowance {
        node_seconds: all.map(|all| all.saturating_sub(usage::used_node_seconds(view, party, replaced))),
        until: of_party.horizon.map(|_| quotas::quota_horizon_of(view, party)),
        share_percent,
        on: match share_percent {
            Some(_) => usage::usage_by_resource(view, party, replaced),
            None => BTreeMap::new(),
        },
    }
}

/// The refusal of a request that its party's quotas do not allow, with the sizes that they would allow in words: the most nodes for
/// its time, and the longest time on its nodes.
fn name_allowed_sizes(
    view: View<'_>,
    mut why: Refusal,
    request: &Request,
    replaced: Option<&Agreement>,
) -> Refusal {
    let Some(size) = only_size_of_request(request) else {
        return why;
    };
    let allowance = allowance(view, &request.party, replaced);
    let sizes = sizes_within_allowance(view, &allowance, request, size).into_iter();
    let sizes: Vec<String> = sizes
        .map(|(_, size)| {
            let nodes = counted(size.nodes, "node");
            format!("{nodes} for {}", counted(size.duration, "second"))
        })
        .collect();
    if !sizes.is_empty() {
        why.binding += &format!("; it may have {}", sizes.join(", or "));
    }
    why
}

/// The refusal of a request that its party's quotas do not allow, with those of the sizes that they would allow for which there is
/// room as the plan stands.
pub(crate) fn relax_to_allowance(
    view: View<'_>,
    mut why: Refusal,
    request: &Request,
    replaced: Option<&Agreement>,
) -> Refusal {
    if why.reason != Reason::QuotaExceeded || !view.settings.refusals.relaxations {
        return why;
    }
    let Some(size) = only_size_of_request(request) else {
        return why;
    };
    let allowance = allowance(view, &request.party, replaced);
    let mut sizes = sizes_within_allowance(view, &allowance, request, size);
    sizes.retain(|(_, size)| {
        let resized = Request {
            shapes: vec![*size],
            ..request.clone()
        };
        allowed_starts(view, &allowance, &resized, *size)
            .into_iter()
            .any(|(resource_plan, starts)| {
                let tree = resource_plan.schedule.tree();
                starts.iter().any(|starts| {
                    let window = Interval::new(starts.start, starts.end + size.duration);
                    tree.earliest_fit(size.nodes, size.duration, window).is_some()
                })
            })
    });
    why.relaxations = sizes.into_iter().map(|(relaxation, _)| relaxation).collect();
    why
}

/// The size of a request; none where it is open, or follows from its work.
fn only_size_of_request(request: &Request) -> Option<Shape> {
    match request.shapes[..] {
        [size] if request.scaling == Scaling::Contract => Some(size),
        _ => None,
    }
}

/// The largest sizes that an allowance leaves a request in place of its own: with fewer nodes, and with less time.
fn sizes_within_allowance(
    view: View<'_>,
    allowance: &Allowance<'_>,
    request: &Request,
    size: Shape,
) -> Vec<(Relaxation, Shape)> {
    // A window that ends beyond the party's horizon is refused whatever the size.
    let ends = allowance.until.zip(request.deadline);
    if ends.is_some_and(|(until, deadline)| deadline > until) {
        return Vec::new();
    }
    let mut resized = request.clone();
    let mut may = |size: Shape| {
        resized.shapes = vec![size];
        !allowed_starts(view, allowance, &resized, size).is_empty()
    };
    let of_nodes = |nodes: i64| Shape {
        nodes: u32::try_from(nodes).unwrap_or(size.nodes),
        ..size
    };
    let of_duration = |duration| Shape { duration, ..size };
    let fewer = greatest_allowance_below(size.nodes.into(), |nodes| may(of_nodes(nodes))).map(of_nodes);
    let shorter =
        greatest_allowance_below(size.duration, |duration| may(of_duration(duration))).map(of_duration);
    let fewer = fewer.map(|size| (Relaxation::Nodes(size.nodes), size));
    let shorter = shorter.map(|size| (Relaxation::Duration(size.duration), size));
    fewer.into_iter().chain(shorter).collect()
}

/// The resources that may take a request of one size, each with the starts that an allowance leaves it there.
fn allowed_starts<'a>(
    view: View<'a>,
    allowance: &Allowance<'_>,
    resized: &Request,
    size: Shape,
) -> Vec<(&'a ResourcePlan, Vec<Interval>)> {
    let Ok(window) = window::window_within_limits(view, resized) else {
        return Vec::new();
    };
    let closed: BTreeSet<&str> = view.schedules.closed().collect();
    let takes = |resource_plan: &&ResourcePlan| {
        let resource = &resource_plan.resource;
        resource.takes_new()
            && !closed.contains(resource.name.as_str())
            && !sizes_within_share_on(resource_plan, resized).is_empty()
    };
    let looked_at = view.schedules.in_service().filter(takes).take(RESOURCES_MAX);
    let starts = looked_at.map(|resource_plan| {
        let resource = &resource_plan.resource;
        let starts = allowance.starts((&resource.name, resource.capacity), size, window);
        (resource_plan, starts)
    });
    starts.filter(|(_, starts)| !starts.is_empty()).collect()
}

/// The greatest whole number above zero and below a bound that fits, where all smaller ones fit, too.
fn greatest_allowance_below(bound: i64, mut fits: impl FnMut(i64) -> bool) -> Option<i64> {
    let (mut fitting, mut beyond) = (0, bound);
    while beyond - fitting > 1 {
        let middle = fitting + (beyond - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    (fitting > 0).then_some(fitting)
}

#[cfg(test)]
mod tests;
