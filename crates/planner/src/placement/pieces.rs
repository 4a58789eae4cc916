//! Work that is let in in pieces.
//!
//! A request that may be cut is cut in two cases: where it then completes earlier than in one piece, on the plan as it stands;
//! or where it has no place in one piece, and others can make room for its pieces inside their windows. Its pieces are let in
//! all or none, each with a number of nodes of its own where the requester has it so and there are sizes to choose from
//! (`docs/design/planning.md`).

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::{Shape, Slot, Slots, Stretch};
use scheduler::domain::Objective;
use scheduler::moldable::{Law, Shapes, Sizes};
use scheduler::preemptive::Preemption;
use scheduler::{Fraction, Interval, Move, Reason, Request, Time};

use crate::context::{Search, View};
use crate::placement::places::Placement;
use crate::placement::{admit, choice, trial};
use crate::prices::placement_prices;
use crate::schedules::Schedules;
use crate::schedules::need::{Need, evenly_spread_needed_sizes};
use crate::schedules::needed_sizes::able_needed_sizes;

/// Resources on which pieces are looked for.
const RESOURCES_MAX: usize = 4;
/// Searches of one resource's plan for pieces up to which more than one size is tried, some at even distances where there are
/// more; all commands wait meanwhile. The work for one size is bounded when the offer is read.
const SEARCHES_OF_SIZES_MAX: u64 = 3_000;
/// Resources on which others are asked to make room for pieces, and how many of them at most are taken out in each attempt:
/// admission to a crowded resource may take milliseconds.
const CROWDED_MAX: usize = 2;
const LIFTED: [usize; 3] = [1, 4, 16];

/// Accepts a request: in pieces where that completes it earlier, else in one, and else in pieces for which others move.
///
/// # Errors
/// Why it has no place; everything is as it was then.
pub(crate) fn admit_in_pieces_or_whole(
    search: &mut Search<'_>,
    need: &Need<'_>,
    preemption: Option<&Preemption>,
) -> Result<Placement, Reason> {
    let Some(preemption) = preemption else {
        return admit::admit(search, need);
    };
    if let Some(admitted) = admit_in_pieces(search, need, preemption) {
        return Ok(admitted);
    }
    admit::admit(search, need).or_else(|reason| {
        let among = (reason == Reason::NoCapacityInWindow)
            .then(|| admit_pieces_among(search, need, preemption))
            .flatten();
        among.ok_or(reason)
    })
}

/// Accepts a request in pieces, on the resource where its last piece completes first; none where it would not
/// complete earlier than in one piece, or cannot pay.
fn admit_in_pieces(search: &mut Search<'_>, need: &Need<'_>, preemption: &Preemption) -> Option<Placement> {
    let window = need.window;
    let mut end = window.end + 1;
    if let Ok((_, _, slot)) = choice::best_placement_choice(search.view(), need) {
        // A request that is not to complete early stays in one piece.
        if search.settings.objective != Objective::EarliestCompletion {
            return None;
        }
        end = end.min(slot.end);
    }
    let mut best: Option<(usize, Slots)> = None;
    for at in resources_for_pieces(search.view(), need) {
        let rest = Interval::new(window.start, end - 1);
        if let Some(pieces) = pieces_on(search.view(), at, need, preemption, rest) {
            end = pieces.placement().end;
            best = Some((at, pieces));
        }
    }
    let (at, pieces) = best.filter(|(_, pieces)| pieces.is_split())?;
    let load = placement_prices::load_for_placement_price(search.view(), at, window);
    admit::put_admitted_slots(search, (at, load), need, pieces)
}

/// Accepts a request in pieces that has no place as the plan stands, where others move for it inside their windows. The
/// agreements in its way are taken out, first one of them and then more. Its pieces are put where they complete first.
/// Then the others are put where they were, or where there is room. Nothing has changed where one of them has no place.
fn admit_pieces_among(
    search: &mut Search<'_>,
    need: &Need<'_>,
    preemption: &Preemption,
) -> Option<Placement> {
    let least = *need.shapes.last()?;
    for at in resources_for_pieces(search.view(), need)
        .into_iter()
        .take(CROWDED_MAX)
    {
        let request = choice::request_on(search.view(), at, need, least)?;
        let load = placement_prices::load_for_placement_price(search.view(), at, need.window);
        let mut movable = search
            .schedules
            .waiting_in_the_way(at, search.present_second(), &request);
        movable.retain(|number| may_slot_move_for_pieces(search.view(), at, *number));
        let counts = LIFTED.into_iter().take_while(|most| most / 4 < movable.len());
        for count in counts {
            let some = &movable[..count.min(movable.len())];
            let admitted = put_pieces_among(search, (at, load), need, preemption, some);
            if admitted.is_some() {
                return admitted;
            }
        }
    }
    None
}

/// Whether the waiting slot with this number may move on its resource.
fn may_slot_move_for_pieces(view: View<'_>, at: usize, number: u64) -> bool {
    let waiting = view.schedules.waiting_request(at, number);
    waiting.is_some_and(|(request, _)| !request.is_rigid())
}

/// Accepts a request in pieces where some of the waiting agreements may move. Nothing has changed where it finds no
/// place.
fn put_pieces_among(
    search: &mut Search<'_>,
    (at, load): (usize, Fraction),
    need: &Need<'_>,
    preemption: &Preemption,
    movable: &[u64],
) -> Option<Placement> {
    trial::run_trial(search, |search| {
        let resources = &mut *search.schedules;
        let lifted = movable
            .iter()
            .filter_map(|number| resources.withdraw(at, *number));
        let mut lifted: Vec<(Request, Time)> = lifted.collect();
        // As in the order of deadlines: the agreement with the least time goes first.
        lifted.sort_by_key(|(request, _)| (request.deadline, request.id));
        let pieces = pieces_on(search.view(), at, need, preemption, need.window);
        let pieces = pieces.filter(Slots::is_split)?;
        let admitted = admit::put_admitted_slots(search, (at, load), need, pieces)?;
        let moved = put_lifted_for_pieces_again(search, at, &lifted)?;
        Some(Placement { moved, ..admitted })
    })
}

/// Puts the removed agreements where they were, or where there is room for them. Returns the moved ones, or none where one
/// has no place.
fn put_lifted_for_pieces_again(
    search: &mut Search<'_>,
    at: usize,
    lifted: &[(Request, Time)],
) -> Option<Vec<Move>> {
    let now = search.present_second();
    let mut moved = Vec::new();
    for (request, from) in lifted {
        let tree = search.schedules.get(at)?.schedule.tree();
        let to = if tree.min_free(request.slot(*from)) >= request.nodes {
            *from
        } else {
            tree.earliest_fit(request.nodes, request.duration, request.window_at(now))?
        };
        if !search.schedules.put(at, now, request, to) {
            return None;
        }
        moved.extend((to != *from).then_some(Move {
            id: request.id,
            from: *from,
            to,
        }));
    }
    Some(moved)
}

/// The resources on which the pieces of a request are looked for, the most hopeful first.
pub(super) fn resources_for_pieces(view: View<'_>, need: &Need<'_>) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let candidates = choice::crowded_placement_choices(view, need)
        .into_iter()
        .map(|(at, _)| at);
    candidates
        .filter(|at| seen.insert(*at))
        .take(RESOURCES_MAX)
        .collect()
}

/// Sizes that are tried at most of work that may be cut so.
fn sizes_of_pieces_max(preemption: &Preemption) -> usize {
    let most = SEARCHES_OF_SIZES_MAX / preemption.searches_max(1).max(1);
    usize::try_from(most).unwrap_or(usize::MAX).max(1)
}

/// How many searches of the plan [`pieces_on`] takes at most for work of so many sizes.
pub(crate) fn searches_of_pieces_max(preemption: &Preemption, sizes: usize) -> u64 {
    preemption.searches_max(sizes.min(sizes_of_pieces_max(preemption)))
}

/// The pieces in which work completes first on a resource inside a window, as its plan stands.
pub(crate) fn pieces_on(
    view: View<'_>,
    at: usize,
    need: &Need<'_>,
    preemption: &Preemption,
    window: Interval,
) -> Option<Slots> {
    let resource = view.schedules.get(at)?;
    if window.duration() <= 0 {
        return None;
    }
    let shapes = piece_shapes_on_resource(view.schedules, at, need, preemption)?;
    let found = preemption.place(resource.schedule.tree(), &shapes, &[], window)?;
    join_placed_pieces(found.iter().map(|piece| (piece.interval, piece.nodes)))
}

/// The pieces in which work completes first inside a window, as the plans stand, and their resource; none where that would be
/// in one.
pub(crate) fn best_in_pieces(
    view: View<'_>,
    need: &Need<'_>,
    preemption: &Preemption,
    window: Interval,
) -> Option<(usize, Slots)> {
    let found = resources_for_pieces(view, need).into_iter().filter_map(|at| {
        let pieces = pieces_on(view, at, need, preemption, window)?;
        pieces.is_split().then_some((at, pieces))
    });
    found.min_by_key(|(_, pieces)| pieces.placement().end)
}

/// The sizes that a request may have on a resource, as many as may be tried, with the durations there; none where it may
/// have none.
fn piece_shapes_on_resource(
    resources: &Schedules,
    at: usize,
    need: &Need<'_>,
    preemption: &Preemption,
) -> Option<Shapes> {
    let resource = &resources.get(at)?.resource;
    let able: Vec<Shape> = able_needed_sizes(resource, &need.shapes, need.filters, need.barred).collect();
    let some = evenly_spread_needed_sizes(&able, sizes_of_pieces_max(preemption));
    let there = some
        .iter()
        .filter_map(|shape| resources.foreseen_longest(at, need, *shape));
    let table: BTreeMap<u32, _> = there.map(|shape| (shape.nodes, shape.duration)).collect();
    let listed = Sizes::List(table.keys().copied().collect());
    Shapes::new(&Law::Table(table), 1..=resource.capacity, &listed).ok()
}

/// The pieces of stretches in order of time. Stretches without a break between them on the same number of nodes are one
/// piece: no work has to be saved between them. None where there is none.
fn join_placed_pieces(stretches: impl Iterator<Item = Stretch>) -> Option<Slots> {
    let mut joined: Vec<Slot> = Vec::new();
    for (slot, nodes) in stretches {
        match joined.last_mut() {
            Some(last) if last.placement.end == slot.start && last.nodes == nodes => {
                last.placement.end = slot.end;
            }
            _ => joined.push(Slot::planned((slot, nodes))),
        }
    }
    Slots::of(joined)
}
