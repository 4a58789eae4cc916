//! Another place for an agreement of which a slot has left the plan: one ladder, from cheapest to dearest, for any number of
//! slots.
//!
//! The search looks first where the slot lay, and then where its resource is free between the slot's neighbours. Next it
//! places all slots to come where they are free one after another, here or on another resource. Then others move inside their
//! windows. At last it tries another of the agreement's sizes. Before it is given up, the holds of offers give way: an
//! agreement counts more.

use std::borrow::Cow;

use domain::agreement::{Agreement, Shape, Slot, Stretch};
use domain::resources::Resource;
use scheduler::{Interval, Move, Request, Seconds, Time};

use crate::context::Search;
use crate::placement::places::ChangesOfOthers;
use crate::placement::{choice, eligible_resources, trial};
use crate::schedules::need::{Need, request_of_agreement, request_of_slot, request_of_stretch};
use crate::schedules::needed_sizes::may_take_needed_shape;
use crate::schedules::resource_choice;

/// Resources on which all slots of an agreement are tried, others are asked to move, or offers give way.
pub(crate) const CROWDED_MAX: usize = 4;

/// The steps that are allowed to find a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// Its place so far and its resource come before others; otherwise the best resource does.
    stays: bool,
    /// Why others move, in words for their parties.
    pub(crate) others: &'static str,
}

/// For a waiting slot that has lost its nodes.
pub(crate) const REPAIR: Policy = Policy {
    stays: true,
    others: "to let one in whose nodes are out of use",
};

/// For work that waits again after its slot.
pub(crate) const RESTART: Policy = Policy {
    stays: false,
    others: "to let one in whose slot was lost",
};

/// A place that was found for an agreement.
pub(crate) struct FoundPlace {
    /// The agreement in that place.
    pub(crate) placed: Agreement,
    /// How others have made room.
    pub(crate) others: ChangesOfOthers,
}

/// Finds a place for an agreement after its slot of this index has left the plan. None where there is none, and nothing
/// has changed then.
pub(crate) fn find_place(
    search: &mut Search<'_>,
    agreement: &Agreement,
    index: usize,
    policy: Policy,
    now: Time,
) -> Option<FoundPlace> {
    let moving = |(placed, moved)| FoundPlace {
        placed,
        others: ChangesOfOthers {
            moved,
            ..ChangesOfOthers::default()
        },
    };
    let alone = |placed: Agreement| moving((placed, Vec::new()));
    let free = find_free_place(search, agreement, index, policy, now).map(alone);
    let mut found = free
        .or_else(|| find_crowded_place(search, agreement, index, now).map(moving))
        .or_else(|| find_place_of_another_size(search, agreement, now).map(alone))?;
    if !policy.stays {
        // It waits as it did before its slot began; a rest that was added stays where it lies.
        found.placed.fixed &= agreement.slots.is_split();
    }
    Some(found)
}

/// A place that is free as the plan stands.
fn find_free_place(
    search: &mut Search<'_>,
    agreement: &Agreement,
    index: usize,
    policy: Policy,
    now: Time,
) -> Option<Agreement> {
    let (at, number) = search
        .placement
        .planned_slot(search.schedules, agreement, index)?;
    let may_stay = eligible_resources::may_go_to_resource(search.view(), at, agreement);
    if policy.stays && may_stay {
        let request = request_of_slot(agreement, number, index);
        let start = agreement.slots.get(index)?.placement.start;
        if search.schedules.put(at, now, &request, start) {
            return Some(agreement.clone());
        }
    }
    // The slots that are lost or wait: a running slot stays.
    let first = index.min(agreement.slots_begun());
    // One that was to move no more keeps its time on another resource rather than its resource.
    if policy.stays && agreement.fixed {
        let found = trial::run_trial(search, |search| {
            take_slots_out(search, agreement, first, now);
            find_place_elsewhere(
                search,
                agreement,
                first,
                (agreement.placement(), Some(at)),
                false,
                now,
            )
        });
        if found.is_some() {
            return found;
        }
    }
    // Where there are more slots, those stay that can.
    let has_stays = may_stay && (policy.stays || agreement.slots.is_split());
    let window = rest_of_window(agreement, now);
    let beside = has_stays.then(|| find_place_beside_others(search, at, agreement, index, now));
    beside.flatten().or_else(|| {
        trial::run_trial(search, |search| {
            take_slots_out(search, agreement, first, now);
            let here = has_stays.then(|| find_places_in_turn(search, at, agreement, first, window, now));
            let except = has_stays.then_some(at);
            here.flatten()
                .or_else(|| find_place_elsewhere(search, agreement, first, (window, except), false, now))
        })
    })
}

/// One slot alone between its neighbours on its resource.
fn find_place_beside_others(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    index: usize,
    now: Time,
) -> Option<Agreement> {
    let inside = find_window_between_neighbours(agreement, index, now);
    // Time that the provider adds is not late.
    let adds = agreement.adds_to_contract(index);
    let latest = agreement.latest_end(now + search.settings.horizon);
    let beyond = adds.then(|| Interval::new(inside.start, latest.max(inside.start)));
    let mut windows = [inside].into_iter().chain(beyond);
    let stretch =
        windows.find_map(|window| find_place_for_slot(search, at, agreement, index, window, now))?;
    Some(agreement_with_found_place(search, at, agreement, index, stretch))
}

/// Gives a slot the first place on a resource in a window; on fewer nodes for longer only where it has none on as many,
/// and may have another size than the others. None where there is none.
fn find_place_for_slot(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    index: usize,
    window: Interval,
    now: Time,
) -> Option<Stretch> {
    let (from, number) = search
        .placement
        .planned_slot(search.schedules, agreement, index)?;
    let slot = agreement.slots.get(index)?;
    let (resource_plan, from) = (search.schedules.get(at)?, search.schedules.get(from)?);
    let tree = resource_plan.schedule.tree();
    let fit = |shape: Shape| {
        let fits = window.duration() >= shape.duration && shape.nodes <= tree.capacity();
        let start = tree.earliest_fit(shape.nodes, shape.duration, window);
        Some((Interval::of(start.filter(|_| fits)?, shape.duration), shape.nodes))
    };
    let own = size_to_find_on_resource(agreement, slot, &from.resource, &resource_plan.resource)?;
    let smaller = || {
        let smaller = smaller_sizes_to_find(agreement, own, &resource_plan.resource);
        smaller.filter_map(fit).min_by_key(|(slot, _)| slot.end)
    };
    // The addition to its contract is already the most that it may have.
    let agreed = !agreement.adds_to_contract(index);
    let stretch = fit(own).or_else(|| smaller().filter(|_| agreed))?;
    let mut request = request_of_stretch(agreement, number, stretch);
    if !agreement.slots.is_split() {
        let room = choice::room_of_placement_choice(search.view(), at, agreement, stretch);
        (request.ready, request.deadline) = (room.start, room.end);
    }
    search
        .schedules
        .put(at, now, &request, stretch.0.start)
        .then_some(stretch)
}

/// Takes the slots of an agreement, from the first of these on, out of the plan. A slot that has lost its nodes is not on
/// it. Returns the slots.
pub(crate) fn take_slots_out(
    search: &mut Search<'_>,
    agreement: &Agreement,
    first: usize,
    now: Time,
) -> Vec<(Request, Time)> {
    let mut taken = Vec::new();
    for (index, slot) in agreement.slots.iter().enumerate().skip(first) {
        if let Some((at, number)) = search.placement.planned_slot(search.schedules, agreement, index)
            && search.schedules.has_request(at, number)
        {
            search.schedules.vacate(at, now, number);
            let request = request_of_slot(agreement, number, index);
            taken.push((request, slot.placement.start));
        }
    }
    taken
}

/// An agreement with new places for its slots, from the first of these on, which have left the plan. They lie one after
/// another at the first free places of a resource inside a window; none where one of them has no place.
pub(crate) fn find_places_in_turn(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    first: usize,
    mut window: Interval,
    now: Time,
) -> Option<Agreement> {
    let before = first
        .checked_sub(1)
        .and_then(|before| agreement.slots.get(before));
    if let Some(before) = before {
        window.start = window.start.max(before.occupied().end);
    }
    trial::run_trial(search, |search| {
        let mut placed = agreement.clone();
        for index in first..agreement.slots.len() {
            let stretch = find_place_for_slot(search, at, agreement, index, window, now)?;
            placed = agreement_with_found_place(search, at, &placed, index, stretch);
            window.start = stretch.0.end;
        }
        Some(placed)
    })
}

/// Places the slots of an agreement on another resource, where its filters and sizes allow that: one slot on the best, and several where there is
/// room for them one after another. Saved work stays where it is: only work that begins at its start goes to another
/// resource.
pub(crate) fn find_place_elsewhere(
    search: &mut Search<'_>,
    agreement: &Agreement,
    first: usize,
    (window, except): (Interval, Option<usize>),
    is_new: bool,
    now: Time,
) -> Option<Agreement> {
    if first > 0 {
        return None;
    }
    let need = Need {
        except,
        is_new,
        ..Need::of_agreement(agreement, window)
    };
    if agreement.slots.is_split() {
        let mut others =
            resource_choice::hopeful_resource_choices(search.schedules, &need, need.shapes[0], CROWDED_MAX);
        others.retain(|to| eligible_resources::may_go_to_resource(search.view(), *to, agreement));
        return others
            .into_iter()
            .find_map(|to| find_places_in_turn(search, to, agreement, first, window, now));
    }
    put_in_best_place_found(search, agreement, &need, now)
}

/// An agreement in one slot with that in the best place that is free for one of the sizes of its need.
fn put_in_best_place_found(
    search: &mut Search<'_>,
    agreement: &Agreement,
    need: &Need<'_>,
    now: Time,
) -> Option<Agreement> {
    let (to, shape, slot) = choice::best_placement_choice(search.view(), need).ok()?;
    let (_, number) = search.placement.planned_slot(search.schedules, agreement, 0)?;
    let room = choice::room_of_placement_choice(search.view(), to, agreement, (slot, shape.nodes));
    let request = Request {
        nodes: shape.nodes,
        duration: slot.duration(),
        ready: room.start,
        deadline: room.end,
        ..request_of_agreement(agreement, number)
    };
    let put = search.schedules.put(to, now, &request, slot.start);
    put.then(|| agreement_with_found_place(search, to, agreement, 0, (slot, shape.nodes)))
}

/// A place where others make room inside their windows: for one slot alone on its resource, or on a few others.
fn find_crowded_place(
    search: &mut Search<'_>,
    agreement: &Agreement,
    index: usize,
    now: Time,
) -> Option<(Agreement, Vec<Move>)> {
    // No agreement moves for an addition to a contract.
    if agreement.adds_to_contract(index) {
        return None;
    }
    let (at, number) = search
        .placement
        .planned_slot(search.schedules, agreement, index)?;
    let need = Need {
        except: Some(at),
        ..Need::of_agreement(agreement, rest_of_window(agreement, now))
    };
    let slot = agreement.slots.get(index).filter(|_| agreement.slots.is_split());
    let others = match slot {
        Some(_) => Vec::new(),
        None => {
            resource_choice::hopeful_resource_choices(search.schedules, &need, need.shapes[0], CROWDED_MAX)
        }
    };
    for to in [at].into_iter().chain(others) {
        if !eligible_resources::may_go_to_resource(search.view(), to, agreement) {
            continue;
        }
        let request = if let Some(slot) = slot {
            let window = find_window_between_neighbours(agreement, index, now);
            Request {
                ready: window.start,
                deadline: window.end,
                ..request_of_stretch(agreement, number, slot.stretch())
            }
        } else {
            Request {
                duration: choice::request_on(search.view(), to, &need, need.shapes[0])?.duration,
                ..request_of_agreement(agreement, number)
            }
        };
        if let Some((placement, moves)) = search.schedules.submit(to, now, &request) {
            let placed =
                agreement_with_found_place(search, to, agreement, index, (placement.slot, request.nodes));
            return Some((placed, moves));
        }
    }
    None
}

/// A free place for another of its sizes, the one that completes first.
fn find_place_of_another_size(
    search: &mut Search<'_>,
    agreement: &Agreement,
    now: Time,
) -> Option<Agreement> {
    if agreement.slots.is_split() {
        return None;
    }
    let need = Need {
        shapes: Cow::Borrowed(&agreement.constraints.shapes),
        ..Need::of_agreement(agreement, rest_of_window(agreement, now))
    };
    put_in_best_place_found(search, agreement, &need, now)
}

/// An agreement with another place for one of its slots.
fn agreement_with_found_place(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    index: usize,
    stretch: Stretch,
) -> Agreement {
    let mut placed = agreement.clone();
    placed.place_slot(index, stretch);
    placed.resource = search.schedules.name(at);
    if placed.resource != agreement.resource {
        search.schedules.note_estimate(&mut placed);
    }
    choice::settle_room_of_choice(search.view(), &mut placed);
    choice::keep_shape_elsewhere(search.view(), &mut placed);
    placed
}

/// The rest of its window.
pub(crate) fn rest_of_window(agreement: &Agreement, now: Time) -> Interval {
    Interval::new(agreement.ready.max(now), agreement.deadline)
}

/// From the end of the piece before, and from `now`, to the start of the next.
fn find_window_between_neighbours(agreement: &Agreement, index: usize, now: Time) -> Interval {
    let slots = &agreement.slots;
    let before = index.checked_sub(1).and_then(|before| slots.get(before));
    let ready = before.map_or(agreement.ready, |slot| slot.occupied().end);
    let next = slots.get(index + 1);
    let deadline = next.map_or(agreement.deadline, |next| next.placement.start);
    Interval::new(ready.max(agreement.ready).max(now), deadline)
}

/// A slot's size on a resource that its agreement has not been on until now; none where that cannot have it.
fn size_to_find_on_resource(
    agreement: &Agreement,
    slot: &Slot,
    from: &Resource,
    to: &Resource,
) -> Option<Shape> {
    let (nodes, duration) = (slot.nodes, slot.placement.duration());
    let own = Shape { nodes, duration };
    if from.name == to.name {
        return Some(own);
    }
    let listed = agreement
        .constraints
        .shapes
        .iter()
        .find(|shape| shape.nodes == nodes);
    let size = match listed {
        // Its part of the work takes as much longer there as the whole would.
        Some(shape) => Shape {
            duration: find_part_on_other_resource(
                duration,
                shape.at(to.rate).duration,
                shape.at(from.rate).duration,
            )?,
            ..own
        },
        None => own,
    };
    may_be_found_in_size(agreement, listed.copied().unwrap_or(own), to).then_some(size)
}

/// Whether a resource may take a size of an agreement.
fn may_be_found_in_size(agreement: &Agreement, shape: Shape, on: &Resource) -> bool {
    may_take_needed_shape(
        on,
        shape,
        &agreement.constraints.filters,
        &agreement.constraints.barred,
    )
}

/// A part of a whole in seconds, converted to another length of the whole, rounded up.
pub(crate) fn find_part_on_other_resource(
    seconds: Seconds,
    there: Seconds,
    whole: Seconds,
) -> Option<Seconds> {
    let [seconds, there, whole] = [seconds, there, whole].map(|each| u128::try_from(each).ok());
    Seconds::try_from((seconds? * there?).div_ceil(whole?.max(1))).ok()
}

/// The sizes with fewer nodes that a piece may have on a resource, each for as long as its part of the work takes on it; none
/// where all pieces have one size.
fn smaller_sizes_to_find<'a>(
    agreement: &'a Agreement,
    own: Shape,
    resource: &'a Resource,
) -> impl Iterator<Item = Shape> + 'a {
    let constraints = &agreement.constraints;
    let whole = |shape: &&Shape| shape.nodes == own.nodes;
    let whole = constraints
        .shapes
        .iter()
        .find(whole)
        .filter(|_| constraints.pieces_differ);
    let smaller = constraints
        .shapes
        .iter()
        .filter(move |shape| shape.nodes < own.nodes);
    smaller.filter_map(move |shape| {
        // As its own size has it: how fast the resource is shows in that.
        let duration = find_part_on_other_resource(own.duration, shape.duration, whole?.duration)?;
        may_be_found_in_size(agreement, *shape, resource).then_some(Shape { duration, ..*shape })
    })
}
