//! Waiting agreements take larger sizes where time became free beside them, and end earlier (paper 002, section 3: use of free fragments).
//!
//! An agreement grows where it lies: its start stays, so nothing that its party was told comes later. Moves to earlier starts have
//! been made before (`life/move_up.rs`), and the moves of one agreement in an hour are bounded for both together.

use domain::agreement::{Agreement, Shape, ShapeChanges, Slots};
use domain::clock::second_of;
use scheduler::{Interval, Seconds};

use crate::context::{Search, View};
use crate::placement::places::NewShape;
use crate::placement::{choice, reshape, shape, trial};

/// Gives some waiting agreements on a resource larger sizes in free time.
pub(crate) fn grow_in_free_time(search: &mut Search<'_>, at: usize) -> Vec<NewShape> {
    let now = search.present_second();
    let ahead = Interval::new(now, now + search.settings.horizon);
    let may_grow = |agreement: &Agreement, changes: ShapeChanges| {
        let sizes = agreement.constraints.shapes.iter();
        let has_larger = || sizes.map(|size| size.nodes).max() > Some(agreement.nodes());
        changes.sizes && !agreement.slots.is_split() && has_larger() && may_move_now(search.view(), agreement)
    };
    let some = reshape::reshapable_in(search.view(), at, ahead, may_grow);
    let grown = some.into_iter().filter_map(|(agreement, changes)| {
        let slots = grown_slots(search.view(), at, &agreement, changes)?;
        trial::run_trial(search, |search| {
            reshape::lift_agreements(search, at, &[(agreement.clone(), changes)])?;
            reshape::put_in_shape(search, at, &agreement, slots, 0)
        })
    });
    grown.collect()
}

/// The slot of the larger size that is free from the start of an agreement on and ends first; none where that does not gain enough.
fn grown_slots(view: View<'_>, at: usize, agreement: &Agreement, changes: ShapeChanges) -> Option<Slots> {
    let plan = view.schedules.get(at)?;
    let (slot, nodes) = agreement.slots.first()?.stretch();
    let latest = slot.end - least_gain(view, agreement);
    let need = shape::need_of_shapes(agreement, changes, shape::window_of_shape(view, at, agreement));
    let fits = |size: Shape| {
        let request = choice::request_on(view, at, &need, size)?;
        let grown = request.slot(slot.start);
        let is_free = grown.end <= latest && plan.schedule.tree().min_free(grown) >= request.nodes - nodes;
        let slots = Slots::one((grown, request.nodes));
        (is_free && shape::may_take_node_seconds(view, agreement, &slots)).then_some(slots)
    };
    let larger = shape::sizes_to_try(&plan.resource, &need, |each| each > nodes).into_iter();
    larger.filter_map(fits).min_by_key(|slots| slots.placement().end)
}

/// Whether an agreement has not moved too often in the last hour.
fn may_move_now(view: View<'_>, agreement: &Agreement) -> bool {
    let (most, numbers) = (
        view.settings.improving.moves_per_hour,
        view.placement.numbers_of(agreement.id),
    );
    let from = numbers
        .first()
        .and_then(|number| view.placement.movable_from(view.agreements, None, most, *number));
    from.is_some_and(|from| from <= view.present_second())
}

/// By how many seconds an agreement has to end earlier, for the change to be worth a line in its timeline.
fn least_gain(view: View<'_>, agreement: &Agreement) -> Seconds {
    let least = view.settings.improving.least_gain;
    let wait = agreement.placement().start - second_of(agreement.created);
    least.seconds.max(least.of_wait.rounded_up(wait.max(0))).max(1)
}

#[cfg(test)]
mod tests;
