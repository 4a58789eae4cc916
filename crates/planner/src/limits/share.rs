//! The part of a resource that one party may have while others have work: so that none of them can take all of its time.
//!
//! A share binds new promises. Moves inside windows and new places after failures are not refused for it.

use std::borrow::Cow;

use domain::agreement::{Agreement, BarredResource, Shape, Stretch};
use domain::clock::time_in_words;
use domain::resources::Scaling;
use scheduler::{Interval, Seconds, counted};
use uuid::Uuid;

use crate::context::View;
use crate::error::Result;
use crate::limits::usage::{
    Bound, OpenStretches, SHARE_SPAN, Usage, area, has_much_left, usage_beside, usage_on,
};
use crate::limits::window;
use crate::refusal::{Refusal, quota_exceeded};
use crate::request::Request;
use crate::schedules::needed_sizes::able_needed_sizes;
use crate::schedules::resource_plan::ResourcePlan;

/// Sizes of one request that are looked at on one resource.
const SIZES_MAX: usize = 16;
/// Resources that a refusal names.
const TOLD_MAX: usize = 3;
/// How many times as long as at the reference rate work is thought to take on the slowest resource.
const SLOWER_MAX: Seconds = 16;
const HOUR: u128 = 3_600;

/// A place where a party's share does not allow the whole window.
struct ShareOfPlace {
    resource: String,
    /// The size as it is asked for, and its duration there.
    size: Shape,
    duration: Seconds,
    /// The starts that are allowed; none where none is.
    starts: Option<Interval>,
}

impl ShareOfPlace {
    /// The part of the window in which it may lie.
    fn window(&self) -> Option<Interval> {
        let starts = self.starts?;
        Some(Interval::new(starts.start, starts.end + self.duration))
    }

    fn holds_in(&self, window: Interval) -> bool {
        self.window().is_some_and(|own| own.contains(window))
    }
}

/// The part of a resource that a party may have now, in percent; none where nothing bounds it.
pub(super) fn share_of(view: View<'_>, party: &str) -> Option<u32> {
    let share = view.settings.quotas_of(party).share_percent;
    share.filter(|_| view.limits.has_others(party))
}

/// Holds a proposal within its party's share: its window gets as small as that asks, and the resources where it would be
/// too much in this window are barred. `replaced` would be given up for it.
pub(super) fn narrow_to_share(
    view: View<'_>,
    proposal: &mut Cow<'_, Request>,
    replaced: Option<&Agreement>,
) -> Result<(), Refusal> {
    let Some(percent) = share_of(view, &proposal.party) else {
        return Ok(());
    };
    let window = window::window_within_limits(view, proposal)?;
    let beside = usage_beside(view, &proposal.party, replaced.map(|replaced| replaced.id));
    // On the other resources it has nothing, and what it asks for is not too much.
    let looked_at = |resource_plan: &&ResourcePlan| {
        let name = &resource_plan.resource.name;
        let agreed = view.limits.holdings_of(&proposal.party);
        is_long_for_share(proposal, percent)
            || beside.contains_key(name)
            || agreed.is_some_and(|agreed| agreed.on.contains_key(name))
    };
    let in_service = || view.schedules.in_service();
    let (mut limited, mut is_free) = (Vec::new(), false);
    for resource_plan in in_service().filter(looked_at) {
        let sizes = sizes_within_share_on(resource_plan, proposal);
        let (name, rate) = (&resource_plan.resource.name, resource_plan.resource.rate);
        let largest = sizes.iter().map(|size| {
            let duration = proposal.scaling.shape(*size, rate).duration;
            u128::from(size.nodes) * u128::from(duration.max(0).unsigned_abs())
        });
        let bound = bound_of_share(resource_plan.resource.capacity, percent);
        let more = largest.max().unwrap_or(0);
        if has_much_left(view, &proposal.party, name, &beside, (bound.most, more)) {
            is_free |= !sizes.is_empty();
            continue;
        }
        let usage = usage_on(
            view,
            &proposal.party,
            &resource_plan.resource.name,
            (&beside, replaced),
        );
        let count = sizes.len();
        let here = share_limits_on(resource_plan, &usage, percent, (proposal, sizes, window));
        is_free |= here.len() < count;
        limited.extend(here);
    }
    if limited.is_empty() {
        return Ok(());
    }
    is_free |=
        in_service().any(|each| !looked_at(&each) && !sizes_within_share_on(each, proposal).is_empty());
    let widest = limited
        .iter()
        .filter_map(ShareOfPlace::window)
        .max_by_key(|each| each.duration());
    let Some(widest) = Some(window).filter(|_| is_free).or(widest) else {
        return Err(beyond_share(
            view,
            percent,
            &proposal.party,
            (&beside, replaced),
            &limited,
        ));
    };
    let proposal = proposal.to_mut();
    if !is_free {
        (proposal.ready, proposal.deadline) = (Some(widest.start), Some(widest.end));
    }
    let beyond = limited.into_iter().filter(|place| !place.holds_in(widest));
    proposal.barred.extend(beyond.map(|place| BarredResource {
        resource: place.resource,
        sizes: vec![place.size],
        why: format!("a party may have {percent} % of 30 days there while others have work"),
    }));
    Ok(())
}

/// Whether a party's share allows a stretch on a resource, beside what is held for other choices than one.
pub(crate) fn is_within_share(
    view: View<'_>,
    party: &str,
    (resource, stretch): (&str, Stretch),
    (replaced, but): (Option<&Agreement>, Option<Uuid>),
) -> bool {
    let Some((percent, resource_plan)) = share_of(view, party).zip(view.schedules.named(resource)) else {
        return true;
    };
    let beside = usage_beside(view, party, replaced.map(|replaced| replaced.id).or(but));
    let bound = bound_of_share(resource_plan.resource.capacity, percent);
    if has_much_left(view, party, resource, &beside, (bound.most, area(stretch))) {
        return true;
    }
    let usage = usage_on(view, party, resource, (&beside, replaced));
    let (slot, nodes) = stretch;
    starts_within_share(&usage, bound, (nodes, slot.duration()), slot).is_some()
}

/// Whether a party's share allows a stretch on the resource at a place; `replaced` would be given up for it.
pub(crate) fn may_have_share(
    view: View<'_>,
    party: &str,
    at: usize,
    stretch: Stretch,
    replaced: Option<&Agreement>,
) -> bool {
    let resource = view.schedules.get(at);
    resource.is_none_or(|each| is_within_share(view, party, (&each.resource.name, stretch), (replaced, None)))
}

fn beyond_share(
    view: View<'_>,
    percent: u32,
    party: &str,
    has: (&OpenStretches, Option<&Agreement>),
    limited: &[ShareOfPlace],
) -> Refusal {
    let on = |place: &ShareOfPlace| {
        let hours = usage_on(view, party, &place.resource, has)
            .most_in_span()
            .div_ceil(HOUR);
        let capacity = view
            .schedules
            .named(&place.resource)
            .map_or(0, |resource| resource.resource.capacity);
        let most = bound_of_share(capacity, percent).most / HOUR;
        format!(
            "on {} it may have {} and has {hours}",
            place.resource,
            counted(most, "node-hour")
        )
    };
    let mut each: Vec<String> = limited.iter().map(on).collect();
    each.dedup();
    each.truncate(TOLD_MAX);
    quota_exceeded(format!(
        "while other parties have work, a party may have {percent} % of the node-hours of a resource in any 30 days, offers \
         that are held included; {}",
        each.join(", ")
    ))
}

/// The refusal of a request that its share leaves a part of its window.
pub(crate) fn refusal_within_share(mut why: Refusal, room: Interval, window: Interval) -> Refusal {
    if room != window {
        let (start, end) = (time_in_words(room.start), time_in_words(room.end));
        why.binding += &format!("; its party's share leaves the time from {start} to {end} of it");
        // They are found from that part on.
        why.relaxations.clear();
    }
    why
}

/// Has an agreement move only in a part of its window as long as nothing fails.
pub(crate) fn keep_within_share(agreement: &mut Agreement, part: Interval) {
    let room = agreement.room();
    let (start, end) = (room.start.max(part.start), room.end.min(part.end));
    agreement.constraints.room = Some((start.seconds(), end.seconds()));
}

/// The sizes of a proposal that a resource may take.
pub(super) fn sizes_within_share_on(resource_plan: &ResourcePlan, request: &Request) -> Vec<Shape> {
    let on = &resource_plan.resource;
    let able = able_needed_sizes(on, &request.shapes, &request.filters, &request.barred);
    able.take(SIZES_MAX).collect()
}

/// The sizes that may not lie anywhere in a window on a resource.
fn share_limits_on(
    resource_plan: &ResourcePlan,
    usage: &Usage,
    percent: u32,
    (proposal, sizes, window): (&Request, Vec<Shape>, Interval),
) -> Vec<ShareOfPlace> {
    let bound = bound_of_share(resource_plan.resource.capacity, percent);
    let on = sizes.into_iter().filter_map(|size| {
        let duration = proposal.scaling.shape(size, resource_plan.resource.rate).duration;
        let whole = Interval::new(window.start, window.end - duration);
        let starts = starts_within_share(usage, bound, (size.nodes, duration), window);
        let limited = || ShareOfPlace {
            resource: resource_plan.resource.name.clone(),
            size,
            duration,
            starts,
        };
        (duration <= window.duration() && starts != Some(whole)).then(limited)
    });
    on.collect()
}

/// Whether a proposal may be too much for a resource on which its party has nothing: no size has more nodes than there are.
fn is_long_for_share(request: &Request, percent: u32) -> bool {
    let slower = match request.scaling {
        Scaling::Contract => 1,
        Scaling::ReferenceRate | Scaling::Predicted(_) => SLOWER_MAX,
    };
    let longest = request.shapes.iter().map(|shape| shape.duration).max();
    let most = SHARE_SPAN * i64::from(percent) / 100;
    longest.is_some_and(|longest| longest.saturating_mul(slower) > most)
}

/// The bound that a share of a number of nodes is.
pub(super) fn bound_of_share(capacity: u32, percent: u32) -> Bound {
    let all = u128::from(capacity) * u128::from(SHARE_SPAN.unsigned_abs());
    Bound {
        span: SHARE_SPAN,
        most: all * u128::from(percent) / 100,
    }
}

/// The allowed starts in a window; without a search where it is too much nowhere.
fn starts_within_share(
    usage: &Usage,
    bound: Bound,
    (nodes, duration): (u32, Seconds),
    window: Interval,
) -> Option<Interval> {
    let more = u128::from(nodes) * u128::from(duration.max(0).unsigned_abs());
    if usage.leaves(bound.most, more) {
        return Some(Interval::new(window.start, window.end - duration));
    }
    usage.starts_within(bound, (nodes, duration), window)
}
