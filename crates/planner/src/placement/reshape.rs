//! Accepted agreements that wait get other sizes and other cuts to let another one in, as their terms allow (paper 002, section 3.1 and
//! figure 1). This is tried for a newcomer that has no place where others move, and before it is refused, with the work of one decision.
//!
//! Of the agreements in its way each leaves alone, then a few together. The newcomer is placed, and those that left go back with the least
//! change: where they were, or in their old shape at another time, or in another shape. Where one of them has no place, all is as it was.

use std::collections::BTreeSet;

use domain::agreement::{Agreement, Shape, ShapeChanges, Slots};
use scheduler::preemptive::Preemption;
use scheduler::{Fraction, Interval, Move, Reason, Request, Time};

use crate::context::{Search, View};
use crate::limits::share;
use crate::placement::places::{ChangesOfOthers, NewShape, Placement};
use crate::placement::{admit, choice, pieces, shape, trial};
use crate::prices::placement_prices;
use crate::schedules::IN_THE_WAY_MAX;
use crate::schedules::need::{Need, request_of_slot};

/// Resources and sizes of a newcomer for which others change their shapes: each takes many trials.
const PLACES_MAX: usize = 4;

/// How many agreements leave together, after each has left alone.
const TOGETHER: [usize; 2] = [4, IN_THE_WAY_MAX];

/// Slots in the window of a newcomer that are looked at, to find the agreements in its way.
const LYING_MAX: usize = 256;

/// The work that a search of the plan counts as, in the unit of a decision's budget.
pub(super) const SEARCH_WORK: u64 = 8;

/// A waiting agreement that has left the plan for a trial.
pub(crate) struct LiftedAgreement {
    pub(super) agreement: Agreement,
    pub(super) changes: ShapeChanges,
    /// Its requests with their starts.
    pub(super) was: Vec<(Request, Time)>,
}

/// Accepts a request, which may be cut so, in the first of some windows that will do: where the accepted agreements keep their shapes,
/// and else where some of them get others. The window of the need is the last one that was tried.
///
/// # Errors
/// Why it has no place in the last window; everything is as it was then.
pub(crate) fn admit_in_any_shape(
    search: &mut Search<'_>,
    need: &mut Need<'_>,
    windows: &[Interval],
    preemption: Option<&Preemption>,
) -> Result<Placement, Reason> {
    let mut why = Reason::NoCapacityInWindow;
    for window in windows {
        need.window = *window;
        match pieces::admit_in_pieces_or_whole(search, need, preemption) {
            Err(reason) => why = reason,
            admitted => return admitted,
        }
    }
    if why != Reason::NoCapacityInWindow {
        return Err(why);
    }
    let reshaped = windows.iter().find_map(|window| {
        need.window = *window;
        admit_where_others_reshape(search, need, preemption)
    });
    reshaped.ok_or(why)
}

/// Accepts a request where accepted agreements change their shapes for it. Nothing has changed where it finds no place.
fn admit_where_others_reshape(
    search: &mut Search<'_>,
    need: &Need<'_>,
    preemption: Option<&Preemption>,
) -> Option<Placement> {
    let mut places = choice::crowded_placement_choices(search.view(), need);
    places.retain(|(at, _)| is_own(search.view(), *at));
    places.truncate(PLACES_MAX);
    let mut work = search.settings.decision_work;
    let was_cut_short = search.schedules.is_cut_short();
    search
        .schedules
        .share_work(places.len() * (IN_THE_WAY_MAX + TOGETHER.len() + 1));
    let found = places.into_iter().find_map(|(at, shape)| {
        let newcomer = Newcomer {
            need,
            preemption,
            at,
            shape,
            load: placement_prices::load_for_placement_price(search.view(), at, need.window),
        };
        newcomer.admit(search, &mut work)
    });
    search.schedules.share_work(1);
    if !was_cut_short && work > 0 {
        // Each trial had only a part of the work of a decision, for which the whole was enough.
        search.schedules.begin_search();
    }
    found
}

/// Whether a resource is this machine: no cluster and no peer holds its agreements.
pub(super) fn is_own(view: View<'_>, at: usize) -> bool {
    let plan = view.schedules.get(at);
    plan.is_some_and(|plan| view.schedules.is_local(&plan.resource.name))
}

/// A request without a place, in one of its sizes on a resource.
struct Newcomer<'a> {
    need: &'a Need<'a>,
    preemption: Option<&'a Preemption>,
    at: usize,
    shape: Shape,
    /// The load factor before others leave.
    load: Fraction,
}

impl Newcomer<'_> {
    /// Accepts it where others change their shapes.
    fn admit(&self, search: &mut Search<'_>, work: &mut u64) -> Option<Placement> {
        let place = |search: &mut Search<'_>, work: &mut u64| {
            let admitted = self.place(search, work)?;
            let next = self.need.number + admitted.slots.len() as u64;
            Some((admitted, next))
        };
        let (admitted, others) = place_where_others_reshape(search, self.at, self.need.window, work, place)?;
        let moved = admitted.moved.iter().copied().chain(others.moved);
        Some(Placement {
            moved: moved.collect(),
            new_shapes: others.new_shapes,
            ..admitted
        })
    }

    /// Puts it into the plan, in one piece or else in pieces; others may move.
    fn place(&self, search: &mut Search<'_>, work: &mut u64) -> Option<Placement> {
        let (at, load) = (self.at, self.load);
        let whole = admit::admit_on_resource(search, (at, load), self.need, self.shape);
        whole.or_else(|| {
            let preemption = self.preemption?;
            let sizes = self.need.shapes.len();
            spend(work, pieces::searches_of_pieces_max(preemption, sizes))?;
            let pieces = pieces::pieces_on(search.view(), at, self.need, preemption, self.need.window)?;
            admit::put_admitted_slots(search, (at, load), self.need, pieces)
        })
    }
}

/// Places something on a resource where agreements in a window change their shapes. `place` puts it into the plan, and says from which
/// number on slots may be numbered then. Nothing has changed where there is no place.
pub(crate) fn place_where_others_reshape<P>(
    search: &mut Search<'_>,
    at: usize,
    window: Interval,
    work: &mut u64,
    place: impl Fn(&mut Search<'_>, &mut u64) -> Option<(P, u64)>,
) -> Option<(P, ChangesOfOthers)> {
    let all = reshapable_in(search.view(), at, window, |_, _| true);
    // Mostly they are not what keeps it out.
    let has_place = !all.is_empty()
        && trial::suppose_in_trial(search, |search| {
            lift_agreements(search, at, &all).is_some() && place(search, work).is_some()
        });
    if !has_place {
        return None;
    }
    let alone = all.chunks(1);
    let together = TOGETHER
        .into_iter()
        .take_while(|most| (most / 4).max(1) < all.len())
        .map(|most| &all[..most.min(all.len())]);
    for some in alone.chain(together) {
        let found = place_among(search, at, some, work, &place);
        if found.is_some() || *work == 0 {
            return found;
        }
    }
    None
}

/// Places something where some agreements leave, and all of them have a place afterwards.
fn place_among<P>(
    search: &mut Search<'_>,
    at: usize,
    some: &[(Agreement, ShapeChanges)],
    work: &mut u64,
    place: impl Fn(&mut Search<'_>, &mut u64) -> Option<(P, u64)>,
) -> Option<(P, ChangesOfOthers)> {
    trial::run_trial(search, |search| {
        let mut lifted = lift_agreements(search, at, some)?;
        let (placed, mut next) = place(search, work)?;
        let now = search.present_second();
        lifted.retain(|lifted| !search.schedules.put_all(at, now, &lifted.was));
        // As in the order of deadlines: the agreement with the least time goes first.
        lifted.sort_by_key(|lifted| (lifted.agreement.deadline, lifted.agreement.id));
        let (mut moved, mut new_shapes) = (Vec::new(), Vec::new());
        for lifted in &lifted {
            if let Some(one_move) = move_lifted(search, at, lifted) {
                moved.push(one_move);
            } else {
                let found = reshape_lifted(search, at, lifted, next, work)?;
                next = found.numbers.last().map_or(next, |last| next.max(last + 1));
                new_shapes.push(found);
            }
        }
        Some((placed, ChangesOfOthers { moved, new_shapes }))
    })
}

/// Takes the work of some searches of the plan from what is left; none where it is not enough.
pub(super) fn spend(work: &mut u64, searches: u64) -> Option<()> {
    let left = work.checked_sub(searches.saturating_mul(SEARCH_WORK));
    *work = left.unwrap_or(0);
    left.map(|_| ())
}

/// The agreements with slots in a window on a resource whose shapes may change, by start: some of those that are wanted.
pub(crate) fn reshapable_in(
    view: View<'_>,
    at: usize,
    window: Interval,
    is_wanted: impl Fn(&Agreement, ShapeChanges) -> bool,
) -> Vec<(Agreement, ShapeChanges)> {
    let Some(plan) = view.schedules.get(at) else {
        return Vec::new();
    };
    let lying = plan.schedule.waiting_in(window).take(LYING_MAX);
    let agreements = lying.filter_map(|request| {
        let (agreement, _) = view.placement.slot_by_number(view.agreements, request.id)?;
        Some((agreement.placement().start, agreement.id))
    });
    // Work in pieces has several slots.
    let by_start: BTreeSet<_> = agreements.collect();
    let waits = |number: &u64| plan.schedule.waiting_at(*number).is_some();
    let reshapable = by_start.into_iter().filter_map(|(_, id)| {
        let agreement = view.agreements.get(id)?;
        // One that has lost some of its slots is to get others first.
        let is_here = view.placement.numbers_of(id).iter().all(waits);
        let agreement = is_here.then_some(agreement)?;
        let changes = shape::shape_changes_now(view, agreement)?;
        is_wanted(agreement, changes).then(|| (agreement.clone(), changes))
    });
    reshapable.take(IN_THE_WAY_MAX).collect()
}

/// Takes agreements out of the plan; none where one of them does not wait with all its slots.
pub(crate) fn lift_agreements(
    search: &mut Search<'_>,
    at: usize,
    some: &[(Agreement, ShapeChanges)],
) -> Option<Vec<LiftedAgreement>> {
    let lift = |(agreement, changes): &(Agreement, ShapeChanges)| {
        let numbers = search.basis.placement.numbers_of(agreement.id);
        let was = numbers
            .iter()
            .map(|number| search.schedules.withdraw(at, *number));
        Some(LiftedAgreement {
            agreement: agreement.clone(),
            changes: *changes,
            was: was.collect::<Option<Vec<_>>>()?,
        })
    };
    some.iter().map(lift).collect()
}

/// Puts an agreement in one piece back into the plan at another time.
fn move_lifted(search: &mut Search<'_>, at: usize, lifted: &LiftedAgreement) -> Option<Move> {
    let [(request, from)] = lifted.was[..] else {
        return None;
    };
    let now = search.present_second();
    let window = request.window_at(shape::next_second(search.view(), at));
    let tree = search.schedules.get(at)?.schedule.tree();
    let to = tree.earliest_fit(request.nodes, request.duration, window)?;
    search.schedules.put(at, now, &request, to).then_some(Move {
        id: request.id,
        from,
        to,
    })
}

/// Puts an agreement back into the plan in another shape; slots that it did not have get numbers from `next` on.
fn reshape_lifted(
    search: &mut Search<'_>,
    at: usize,
    lifted: &LiftedAgreement,
    next: u64,
    work: &mut u64,
) -> Option<NewShape> {
    let LiftedAgreement {
        agreement, changes, ..
    } = lifted;
    spend(work, shape::shape_searches_max(agreement, *changes))?;
    let window = shape::window_of_shape(search.view(), at, agreement);
    let slots = shape::free_shape(search.view(), at, agreement, *changes, window)?;
    put_in_shape(search, at, agreement, slots, next)
}

/// Puts an agreement that has left the plan into these slots.
pub(crate) fn put_in_shape(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    slots: Slots,
    next: u64,
) -> Option<NewShape> {
    let mut placed = agreement.clone();
    let constraints = &mut placed.constraints;
    constraints.pieces_differ = slots.is_split() && constraints.cuts.is_some_and(|cuts| cuts.independent);
    let priced = u64::try_from(agreement.node_seconds()).unwrap_or(u64::MAX);
    constraints.priced_node_seconds.get_or_insert(priced);
    placed.duration = slots.seconds();
    placed.slots = slots;
    choice::settle_room_of_choice(search.view(), &mut placed);
    if agreement.constraints.room.is_some() {
        share::keep_within_share(&mut placed, agreement.room());
    }
    search.schedules.note_estimate(&mut placed);
    let had = search.basis.placement.numbers_of(agreement.id).iter().copied();
    let numbers: Vec<u64> = had.chain(next..).take(placed.slots.len()).collect();
    let requests = numbers.iter().enumerate().map(|(index, number)| {
        let request = request_of_slot(&placed, *number, index);
        (request, placed.slots[index].placement.start)
    });
    let requests: Vec<_> = requests.collect();
    let now = search.present_second();
    let put = search.schedules.put_all(at, now, &requests);
    put.then_some(NewShape { placed, numbers })
}

#[cfg(test)]
mod tests;
