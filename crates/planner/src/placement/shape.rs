//! The shapes that an agreement may still have while it waits: its sizes and its cuts, as its terms leave them open. Its work, its window and its
//! price stay, and it never takes more node-seconds where these are bounded.

use std::borrow::Cow;

use domain::agreement::{Agreement, Shape, ShapeChanges, Slots};
use domain::resources::{Resource, Scaling};
use scheduler::{Interval, Time};

use crate::context::View;
use crate::placement::{choice, pieces};
use crate::schedules::need::{ForeseeableNeed, Need, evenly_spread_needed_sizes};
use crate::schedules::needed_sizes::able_needed_sizes;

/// Sizes of one agreement that are tried.
const SIZES_MAX: usize = 16;

/// The changes of shape that an agreement leaves open and that may be made now; none where its slot or its shape stays.
pub(crate) fn shape_changes_now(view: View<'_>, agreement: &Agreement) -> Option<ShapeChanges> {
    let now = view.present_second();
    let open = agreement.shape_changes_at(now)?;
    let is_far = view
        .elsewhere
        .near_until(&agreement.resource, now)
        .is_none_or(|near| agreement.placement().start > near);
    let may_change = view.schedules.is_local(&agreement.resource) && is_far;
    (may_change && !view.table.is_counted_on(agreement.id)).then_some(open)
}

/// The first second on a resource from which on a slot has not begun when this is decided. After a loss its plan is a second ahead.
pub(crate) fn next_second(view: View<'_>, at: usize) -> Time {
    let plan = view.schedules.get(at);
    let now = plan.map_or(Time::MIN, |plan| plan.schedule.now());
    now.max(view.present_second()) + 1
}

/// The part of its window in which another shape of an agreement may lie on a resource.
pub(crate) fn window_of_shape(view: View<'_>, at: usize, agreement: &Agreement) -> Interval {
    let room = agreement.room();
    Interval::new(room.start.max(next_second(view, at)), room.end)
}

/// The need of an agreement for its work, with all sizes that it may have.
pub(crate) fn need_of_shapes(agreement: &Agreement, changes: ShapeChanges, window: Interval) -> Need<'_> {
    let need = Need::of_agreement(agreement, window);
    let constraints = &agreement.constraints;
    if constraints.shapes.is_empty() {
        return need;
    }
    let own = |shape: &&Shape| changes.sizes || shape.nodes == agreement.nodes();
    let shapes: Vec<Shape> = constraints.shapes.iter().filter(own).copied().collect();
    let predicted = constraints.predicted_ppm.map(Scaling::Predicted);
    Need {
        work: ForeseeableNeed {
            scaling: predicted.unwrap_or(Scaling::ReferenceRate),
            sizes: constraints.shapes.len(),
            ..need.work
        },
        shapes: Cow::Owned(shapes),
        ..need
    }
}

/// How many searches of the plan it takes at most to find an agreement another shape.
pub(crate) fn shape_searches_max(agreement: &Agreement, changes: ShapeChanges) -> u64 {
    let sizes = if changes.sizes {
        agreement.constraints.shapes.len().max(1)
    } else {
        1
    };
    let cuts = agreement.constraints.cuts.filter(|_| changes.cuts);
    let cuts = cuts.and_then(|cuts| cuts.preemption(sizes));
    let pieces = cuts.map_or(0, |cuts| pieces::searches_of_pieces_max(&cuts, sizes));
    sizes.min(SIZES_MAX) as u64 + pieces
}

/// Another shape of an agreement that is free on a resource in a window as the plan stands, and completes first: of another size in one
/// piece, or else in other pieces. The agreement has left the plan.
pub(crate) fn free_shape(
    view: View<'_>,
    at: usize,
    agreement: &Agreement,
    changes: ShapeChanges,
    window: Interval,
) -> Option<Slots> {
    let slots = &agreement.slots;
    if window.is_empty() || slots.differ() && !changes.sizes || slots.is_split() && !changes.cuts {
        return None;
    }
    let need = need_of_shapes(agreement, changes, window);
    let may = |slots: &Slots| may_take_node_seconds(view, agreement, slots);
    let in_one = || free_size(view, at, agreement, &need).filter(may);
    let cut = || free_pieces(view, at, agreement, &need).filter(may);
    let in_one = changes.sizes.then(in_one).flatten();
    in_one.or_else(|| changes.cuts.then(cut).flatten())
}

/// The sizes of a need that a resource may take, and that are wanted by their nodes: at most so many that all can be tried.
pub(crate) fn sizes_to_try(on: &Resource, need: &Need<'_>, is_wanted: impl Fn(u32) -> bool) -> Vec<Shape> {
    let able = able_needed_sizes(on, &need.shapes, need.filters, need.barred);
    let wanted: Vec<Shape> = able.filter(|size| is_wanted(size.nodes)).collect();
    evenly_spread_needed_sizes(&wanted, SIZES_MAX)
}

/// The size in one piece that completes first; of equal ones the larger.
fn free_size(view: View<'_>, at: usize, agreement: &Agreement, need: &Need<'_>) -> Option<Slots> {
    let plan = view.schedules.get(at)?;
    let (tree, resource) = (plan.schedule.tree(), &plan.resource);
    let in_one = !agreement.slots.is_split();
    let fits = |shape: Shape| {
        let request = choice::request_on(view, at, need, shape)?;
        let has_time = request.duration <= need.window.duration();
        let start = has_time.then(|| tree.earliest_fit(request.nodes, request.duration, need.window))?;
        Some((request.slot(start?), request.nodes))
    };
    let others = sizes_to_try(resource, need, |nodes| !in_one || nodes != agreement.nodes());
    let found = others.into_iter().filter_map(fits);
    found.min_by_key(|(slot, _)| slot.end).map(Slots::one)
}

/// The pieces that complete first; they move in all of its window afterwards, so none where it may not.
fn free_pieces(view: View<'_>, at: usize, agreement: &Agreement, need: &Need<'_>) -> Option<Slots> {
    let constraints = &agreement.constraints;
    let preemption = constraints.cuts?.preemption(need.shapes.len())?;
    let may = agreement.room() == agreement.window();
    may.then(|| pieces::pieces_on(view, at, need, &preemption, need.window))?
}

/// Whether an agreement may have slots by the node-seconds that they take: where these are bounded for its party, no more than now.
pub(crate) fn may_take_node_seconds(view: View<'_>, agreement: &Agreement, slots: &Slots) -> bool {
    let quotas = view.settings.quotas_of(&agreement.party);
    let is_bounded = quotas.node_hours.is_some() || quotas.share_percent.is_some();
    !is_bounded || slots.node_seconds() <= agreement.slots.node_seconds()
}

#[cfg(test)]
mod tests {
    use domain::agreement::Cuts;

    use super::*;
    use crate::tests::harness::{Domain, proposal};

    #[test]
    fn the_search_for_pieces_is_counted_for_the_sizes_that_it_takes() {
        let mut domain = Domain::new(vec![Resource::new("local", "local", 8)]);
        let mut agreement = domain.place(proposal(1, 60, (10, 100))).unwrap().agreement;
        let mut searches = |sizes: u32, interval_ppm| {
            let size = |nodes| Shape { nodes, duration: 60 };
            agreement.constraints.shapes = (1..=sizes).rev().map(size).collect();
            agreement.constraints.cuts = Some(Cuts {
                pieces: 2,
                interval_ppm,
                independent: false,
            });
            let all = ShapeChanges {
                sizes: true,
                cuts: true,
                until: None,
            };
            shape_searches_max(&agreement, all)
        };
        assert_eq!(searches(1, 10_000), 1 + 10_100);
        assert_eq!(searches(100, 100_000), 16 + 27 * 110);
    }
}
