//! By the published rule a request is placed together with all that wait, where there are sizes or cuts to choose from (paper 002, section 3.3:
//! missing deadline first, with rescheduling). All leave the plan. Then each in turn, the nearest to missing its deadline first, gets the
//! size and the pieces in which it completes first (algorithm 1). Where one of them has no place, the old plan stands, and the newcomer is tried
//! in what that leaves free; first in, first out (the paper's other policy) tries that alone. What has begun stays, with all its pieces.
//!
//! This is done on local resources alone, for the earliest completion, and where the work of a decision is enough. A budget, energy and the
//! orders of other papers weigh more than this rule. Where it does not decide, `reshape` does.

use std::collections::BTreeSet;

use domain::agreement::{Agreement, ShapeChanges, Slot, Slots, Stretch};
use scheduler::domain::Objective;
use scheduler::preemptive::Preemption;
use scheduler::schedule::DecisionRule;
use scheduler::{Fraction, Interval, Move, Order, Reason, Time};
use uuid::Uuid;

use crate::context::{Search, View};
use crate::placement::places::{ChangesOfOthers, Placement};
use crate::placement::reshape::LiftedAgreement;
use crate::placement::{admit, choice, pieces, reshape, shape, trial};
use crate::prices::placement_prices;
use crate::schedules::need::Need;

/// How many wait where a search passes twice as many gaps that are too short as where few wait.
const MANY: usize = 128;

/// An agreement that may be placed anew, with the changes of its shape that may be made.
type Waiting = (Agreement, ShapeChanges);

/// Accepts a request, which may be cut so, by the decision rule of the settings: in the window of its need, or by the standing rule in the
/// first of some windows.
///
/// # Errors
/// Why it has no place; everything is as it was then.
pub(crate) fn admit_by_rule(
    search: &mut Search<'_>,
    need: &mut Need<'_>,
    windows: &[Interval],
    preemption: Option<&Preemption>,
) -> Result<Placement, Reason> {
    let anew = admit_with_all_anew(search, need, preemption);
    anew.unwrap_or_else(|| reshape::admit_in_any_shape(search, need, windows, preemption))
}

/// Whether a slot outside the window of a refused request can be had where this rule decides about it; elsewhere it was found by the rule that
/// decides.
pub(crate) fn may_be_had(search: &mut Search<'_>, need: &Need<'_>, (slot, nodes): Stretch) -> bool {
    let shapes = need.shapes.iter().filter(|shape| shape.nodes == nodes);
    let exact = Need {
        window: slot,
        shapes: shapes.copied().collect(),
        ..need.clone()
    };
    let decided = trial::suppose_in_trial(search, |search| admit_with_all_anew(search, &exact, None));
    decided.is_none_or(|decided| decided.is_ok())
}

/// Decides about a request where all that wait are placed anew; none where that is not to decide.
fn admit_with_all_anew(
    search: &mut Search<'_>,
    need: &Need<'_>,
    preemption: Option<&Preemption>,
) -> Option<Result<Placement, Reason>> {
    let settings = search.settings;
    let decides = settings.decision == DecisionRule::Published
        && settings.objective == Objective::EarliestCompletion
        && matches!(settings.order, Order::Mdf | Order::Fifo);
    if !decides || search.schedules.weighs_energy() || choice::is_budgeted(search.view(), need) {
        return None;
    }
    let newcomer = Newcomer {
        need,
        cuts: preemption.copied().unwrap_or(Preemption::NONE),
    };
    let mut work = settings.decision_work;
    let places = pieces::resources_for_pieces(search.view(), need);
    let places = places.into_iter().map(|at| {
        let waiting = waiting_on(search.view(), at, work)?;
        let searches = newcomer.searches_max() + waiting.iter().map(searches_max).sum::<u64>();
        reshape::spend(&mut work, searches * searches_among(waiting.len()))?;
        Some((at, waiting))
    });
    let places: Vec<(usize, Vec<Waiting>)> = places.collect::<Option<_>>()?;
    let waiting = || places.iter().flat_map(|(_, waiting)| waiting);
    let has_shapes = preemption.is_some() || need.shapes.len() > 1;
    if places.is_empty() || !has_shapes && waiting().all(|(_, changes)| *changes == ShapeChanges::NONE) {
        return None;
    }
    let best = if let [place] = &places[..] {
        Some(place)
    } else {
        places.iter().min_by_key(|place| {
            let found = trial::suppose_in_trial(search, |search| newcomer.admit(search, place));
            found.map_or(Time::MAX, |found| found.slots.placement().end)
        })
    };
    let admitted = newcomer.admit(search, best?);
    let why = || choice::choose_best_placement(search.view(), need).err();
    Some(admitted.ok_or_else(|| why().unwrap_or(Reason::NoCapacityInWindow)))
}

/// A request that is to be placed.
struct Newcomer<'a> {
    need: &'a Need<'a>,
    cuts: Preemption,
}

impl Newcomer<'_> {
    /// The searches for it alone, with all and in what they leave free.
    fn searches_max(&self) -> u64 {
        2 * pieces::searches_of_pieces_max(&self.cuts, self.need.shapes.len())
    }

    /// Accepts it on a resource.
    fn admit(&self, search: &mut Search<'_>, (at, waiting): &(usize, Vec<Waiting>)) -> Option<Placement> {
        // Making room does not lower the price.
        let load = placement_prices::load_for_placement_price(search.view(), *at, self.need.window);
        let all = |search: &mut Search<'_>| self.admit_with_all(search, (*at, load), waiting);
        let is_first_in_first_out = search.settings.order == Order::Fifo;
        let anew = (!is_first_in_first_out).then(|| trial::run_trial(search, all));
        anew.flatten().or_else(|| self.place(search, (*at, load)))
    }

    /// Puts it into the plan where it completes first.
    fn place(&self, search: &mut Search<'_>, (at, load): (usize, Fraction)) -> Option<Placement> {
        let pieces = pieces::pieces_on(search.view(), at, self.need, &self.cuts, self.need.window)?;
        admit::put_admitted_slots(search, (at, load), self.need, pieces)
    }

    /// Places it and all that wait.
    fn admit_with_all(
        &self,
        search: &mut Search<'_>,
        (at, load): (usize, Fraction),
        waiting: &[Waiting],
    ) -> Option<Placement> {
        let lifted = reshape::lift_agreements(search, at, waiting)?;
        let latest = |lifted: &LiftedAgreement| (latest_start(search.view(), at, lifted), lifted.was[0].0.id);
        let mut queue: Vec<_> = lifted
            .iter()
            .map(|lifted| (latest(lifted), Some(lifted)))
            .collect();
        let own = (
            latest_start_of_need(search.view(), at, self.need),
            self.need.number,
        );
        queue.push((own, None));
        queue.sort_by_key(|(latest, _)| *latest);
        // Its pieces get the numbers before.
        let mut next = self.need.number + u64::from(self.cuts.pieces_max());
        let (mut admitted, mut others) = (None, ChangesOfOthers::default());
        for (_, lifted) in queue {
            match lifted {
                Some(lifted) => place_anew(search, at, lifted, &mut next, &mut others)?,
                None => admitted = Some(self.place(search, (at, load))?),
            }
        }
        Some(Placement {
            moved: others.moved,
            new_shapes: others.new_shapes,
            ..admitted?
        })
    }
}

/// The agreements that may be placed anew on a local resource; none on another one, and where there are too many for the work of a decision.
fn waiting_on(view: View<'_>, at: usize, work: u64) -> Option<Vec<Waiting>> {
    let plan = view.schedules.get(at)?;
    let count = plan.schedule.waiting_count();
    let least = (count as u64).saturating_mul(searches_among(count));
    if !reshape::is_own(view, at) || least.saturating_mul(reshape::SEARCH_WORK) > work {
        return None;
    }
    let agreement = |number| Some(view.placement.slot_by_number(view.agreements, number)?.0.id);
    let ids = plan
        .schedule
        .waiting()
        .filter_map(|request| agreement(request.id));
    let waits = |number: &u64| plan.schedule.waiting_at(*number).is_some();
    let may_be_placed = |id: Uuid| {
        let agreement = view.agreements.get(id)?;
        // One that has begun, or lost some of its slots, stays.
        let is_whole = agreement.is_waiting() && view.placement.numbers_of(id).iter().all(waits);
        if !is_whole || agreement.slots_over() > 0 || agreement.fixed || view.table.is_counted_on(id) {
            return None;
        }
        // Pieces move in all of its window.
        let changes = shape::shape_changes_now(view, agreement).map(|open| ShapeChanges {
            cuts: open.cuts && agreement.room() == agreement.window(),
            until: None,
            ..open
        });
        let changes = changes.unwrap_or(ShapeChanges::NONE);
        let slots = &agreement.slots;
        let may = (changes.cuts || !slots.is_split()) && (changes.sizes || !slots.differ());
        may.then(|| (agreement.clone(), changes))
    };
    let ids: BTreeSet<Uuid> = ids.collect();
    Some(ids.into_iter().filter_map(may_be_placed).collect())
}

/// What a search costs where so many wait, in searches where few do.
fn searches_among(waiting: usize) -> u64 {
    1 + (waiting / MANY) as u64
}

/// The cuts that an agreement with so many sizes may get.
fn cuts_of(agreement: &Agreement, changes: ShapeChanges, sizes: usize) -> Preemption {
    let cuts = agreement.constraints.cuts.filter(|_| changes.cuts);
    let cuts = cuts.and_then(|cuts| cuts.preemption(sizes));
    cuts.unwrap_or(Preemption::NONE)
}

/// The searches of the plan at most that place an agreement anew.
fn searches_max((agreement, changes): &Waiting) -> u64 {
    let sizes = agreement.constraints.shapes.len();
    let sizes = if changes.sizes { sizes } else { 1 };
    pieces::searches_of_pieces_max(&cuts_of(agreement, *changes, sizes), sizes)
}

/// When something has to start at the latest on its most nodes.
fn latest_start_of_need(view: View<'_>, at: usize, need: &Need<'_>) -> Time {
    let request = need
        .shapes
        .first()
        .and_then(|largest| choice::request_on(view, at, need, *largest));
    request.map_or(Time::MAX, |request| request.deadline - request.duration)
}

fn latest_start(view: View<'_>, at: usize, lifted: &LiftedAgreement) -> Time {
    if lifted.changes == ShapeChanges::NONE {
        let (request, _) = lifted.was[0];
        return request.deadline - request.duration;
    }
    let need = shape::need_of_shapes(&lifted.agreement, lifted.changes, lifted.agreement.room());
    latest_start_of_need(view, at, &need)
}

/// Puts an agreement that has left the plan where it completes first; slots that it did not have get numbers from `next` on.
fn place_anew(
    search: &mut Search<'_>,
    at: usize,
    lifted: &LiftedAgreement,
    next: &mut u64,
    others: &mut ChangesOfOthers,
) -> Option<()> {
    let now = search.present_second();
    let slots = slots_anew(search.view(), at, lifted)?;
    let was = lifted
        .was
        .iter()
        .map(|(request, start)| (request.slot(*start), request.nodes));
    if was.eq(slots.iter().map(Slot::stretch)) {
        return search.schedules.put_all(at, now, &lifted.was).then_some(());
    }
    let to = slots[0].placement.start;
    if let [(request, from)] = lifted.was[..]
        && slots == Slots::one((request.slot(to), request.nodes))
    {
        let id = request.id;
        others.moved.push(Move { id, from, to });
        return search.schedules.put(at, now, &request, to).then_some(());
    }
    let found = reshape::put_in_shape(search, at, &lifted.agreement, slots, *next)?;
    *next = found.numbers.last().map_or(*next, |last| (last + 1).max(*next));
    others.new_shapes.push(found);
    Some(())
}

/// The slots in which an agreement that has left the plan completes first.
fn slots_anew(view: View<'_>, at: usize, lifted: &LiftedAgreement) -> Option<Slots> {
    let LiftedAgreement {
        agreement,
        changes,
        was,
    } = lifted;
    let schedule = &view.schedules.get(at)?.schedule;
    let now = schedule.now().max(view.present_second());
    if *changes == ShapeChanges::NONE {
        let (request, _) = was[0];
        let window = request.window_at(now);
        let start = schedule
            .tree()
            .earliest_fit(request.nodes, request.duration, window)?;
        return Some(Slots::one((request.slot(start), request.nodes)));
    }
    let room = agreement.room();
    let need = shape::need_of_shapes(agreement, *changes, Interval::new(room.start.max(now), room.end));
    let cuts = cuts_of(agreement, *changes, need.shapes.len());
    let slots = pieces::pieces_on(view, at, &need, &cuts, need.window)?;
    shape::may_take_node_seconds(view, agreement, &slots).then_some(slots)
}

#[cfg(test)]
mod tests;
