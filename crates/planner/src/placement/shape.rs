//! The shapes that a waiting agreement may still have: its sizes and its cuts, as its terms leave them open. Its work, its window and its
//! price stay, and it never takes more node-seconds where these are bounded.

use std::borrow::Cow;

use domain::agreement::{Agreement, Shape, ShapeChanges, Slots};
use domain::resources::Scaling;
use scheduler::{Interval, Time};

use crate::context::View;
use crate::placement::{choice, pieces};
use crate::schedules::need::{ForeseeableNeed, Need, evenly_spread_needed_sizes};
use crate::schedules::needed_sizes::may_take_needed_shape;

/// Sizes of one agreement that are tried.
const SIZES_MAX: usize = 16;

/// What may change now of the shape of an agreement that waits; none where its slot or its shape stays.
pub(crate) fn shape_changes_now(view: View<'_>, agreement: &Agreement) -> Option<ShapeChanges> {
    let now = view.present_second();
    let open = agreement
        .constraints
        .open_shape_changes()
        .filter(|changes| changes.is_open_at(now))?;
    let moves = agreement.is_waiting()
        && !agreement.fixed
        && agreement.placement().start > now
        && view.schedules.is_local(&agreement.resource)
        && view
            .elsewhere
            .near_until(&agreement.resource, now)
            .is_none_or(|near| agreement.placement().start > near);
    // A run before may still go on, or its files lie there.
    let is_first = agreement.restarts() == 0 && agreement.slots_over() == 0;
    (moves && is_first && !view.table.is_counted_on(agreement.id)).then_some(open)
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
    let sizes = agreement.constraints.shapes.len().clamp(1, SIZES_MAX);
    let cuts = agreement.constraints.cuts.filter(|_| changes.cuts);
    let cuts = cuts.and_then(|cuts| cuts.preemption(sizes));
    let pieces = cuts.map_or(0, |cuts| cuts.searches_max(sizes));
    sizes as u64 + pieces.min(pieces::SEARCHES_OF_SIZES_MAX)
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
    if window.is_empty() || agreement.slots.differ() && !changes.sizes {
        return None;
    }
    let need = need_of_shapes(agreement, changes, window);
    let may = |slots: &Slots| may_take_node_seconds(view, agreement, slots);
    let sized = || free_size(view, at, agreement, &need).filter(may);
    let cut = || free_pieces(view, at, agreement, &need).filter(may);
    let sized = changes.sizes.then(sized).flatten();
    sized.or_else(|| changes.cuts.then(cut).flatten())
}

/// The size in one piece that completes first; of equal ones the larger.
fn free_size(view: View<'_>, at: usize, agreement: &Agreement, need: &Need<'_>) -> Option<Slots> {
    let plan = view.schedules.get(at)?;
    let (tree, resource) = (plan.schedule.tree(), &plan.resource);
    let in_one = !agreement.slots.is_split();
    let fits = |shape: Shape| {
        let is_own = in_one && shape.nodes == agreement.nodes();
        let may = may_take_needed_shape(resource, shape, need.filters, need.barred);
        let request = choice::request_on(view, at, need, shape).filter(|_| may && !is_own)?;
        let may = request.nodes <= resource.capacity && request.duration <= need.window.duration();
        let start = may.then(|| tree.earliest_fit(request.nodes, request.duration, need.window))?;
        Some((request.slot(start?), request.nodes))
    };
    let some = evenly_spread_needed_sizes(&need.shapes, SIZES_MAX);
    let found = some.into_iter().filter_map(fits);
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
