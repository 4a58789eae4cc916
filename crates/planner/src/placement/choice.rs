//! The resources and sizes that would take a request as the plans stand, and those that are worth a trial. Nothing moves.

use domain::agreement::{Agreement, Shape, Stretch};
use scheduler::domain::Objective;
use scheduler::{Interval, Reason, Time};

use crate::context::View;
use crate::placement::eligible_resources;
use crate::prices::{budgets, placement_prices};
use crate::refusal::nearer_refusal_reason;
use crate::schedules::need::Need;
use crate::schedules::resource_choice;

/// Resources on which others are asked to move for one request, and sizes of the request that are tried there: admission to a
/// crowded resource may take milliseconds, and all commands wait meanwhile.
pub(crate) const CROWDED_MAX: usize = 16;

/// Resources that are looked at for one request that cannot pay on those, the cheapest first.
const CHEAPEST_MAX: usize = 256;

/// Whether its price limits its places.
pub(crate) fn is_budgeted(view: View<'_>, need: &Need<'_>) -> bool {
    need.payer.budget.is_some() && view.settings.pricing.is_some()
}

/// The size and the resource that are best as the plans stand, of the ones that its payer can pay.
pub(crate) fn choose_best_placement(
    view: View<'_>,
    need: &Need<'_>,
) -> Result<(usize, Shape, Interval), Reason> {
    match best_placement_choice(view, need) {
        Ok(best) if is_budgeted(view, need) && !is_cheapest_payable_choice(view, need, best) => {
            best_payable_placement_choice(view, need)
        }
        best => best,
    }
}

/// Whether a place is the best one for energy, and its payer can pay for it.
fn is_cheapest_payable_choice(
    view: View<'_>,
    need: &Need<'_>,
    (at, shape, slot): (usize, Shape, Interval),
) -> bool {
    let payable = || payable_placement_choice(view, at, need, &request_on(view, at, need, shape)?);
    view.schedules.weighs_energy() && payable().is_some_and(|from| from.ready <= slot.start)
}

/// A request from when on its payer can pay for it on a resource; none where it never can.
pub(crate) fn payable_placement_choice(
    view: View<'_>,
    resource: usize,
    need: &Need<'_>,
    request: &scheduler::Request,
) -> Option<scheduler::Request> {
    let load = placement_prices::load_for_placement_price(view, resource, need.window);
    let ready = budgets::affordable_budget_from(view, resource, load, need.payer, request, need.window)?;
    Some(scheduler::Request { ready, ..*request })
}

/// The size and the resource that are best as the plans stand; of equal ones the larger, then the first configured. Another
/// size for an agreement has to complete earlier than the larger ones.
pub(crate) fn best_placement_choice(
    view: View<'_>,
    need: &Need<'_>,
) -> Result<(usize, Shape, Interval), Reason> {
    let objective = view.settings.objective;
    let completes = objective == Objective::EarliestCompletion || need.of.is_some();
    let mut best: Option<((i128, Time), usize, Shape, Interval)> = None;
    let mut why = Reason::ResourceNotOffered;
    let mut window = need.window;
    for shape in need.shapes.iter() {
        match resource_choice::best_resource_choice(view.schedules, need, *shape, window, objective) {
            Ok((at, _))
                if need
                    .of
                    .is_some_and(|each| !eligible_resources::may_go_to_resource(view, at, each)) => {}
            Ok((at, found)) => {
                let rank = (found.rank.objective, found.rank.completion);
                // Where nothing is foreseen, it completes with its slot.
                let resources = view.schedules;
                let by_end = completes && !resources.weighs_energy() && !resources.foresees(need, *shape);
                if by_end || best.as_ref().is_none_or(|(before, ..)| rank < *before) {
                    best = Some((rank, at, *shape, found.slot));
                }
                if by_end {
                    // A smaller size has to complete earlier.
                    window.end = window.end.min(found.slot.end - 1);
                }
            }
            Err(reason) => why = nearer_refusal_reason(why, reason),
        }
    }
    best.map(|(_, at, shape, slot)| (at, shape, slot)).ok_or(why)
}

/// Where others may be asked to move, and for which sizes, the most hopeful first.
pub(crate) fn crowded_placement_choices(view: View<'_>, need: &Need<'_>) -> Vec<(usize, Shape)> {
    let shapes = need.some_shapes();
    let each = CROWDED_MAX / shapes.len().max(1);
    let on = |shape: Shape| {
        let hopeful = resource_choice::hopeful_resource_choices(view.schedules, need, shape, each);
        hopeful.into_iter().map(move |at| (at, shape))
    };
    shapes.into_iter().flat_map(on).collect()
}

/// Where its sizes cost least by the price list, the cheapest places of each first.
fn cheapest_placement_choices(view: View<'_>, need: &Need<'_>) -> Vec<(usize, Shape)> {
    let shapes = need.some_shapes();
    let each = CHEAPEST_MAX / shapes.len().max(1);
    let on = |shape: Shape| {
        let cheapest = resource_choice::cheapest_resource_choices(view.schedules, need, shape, each);
        cheapest.into_iter().map(move |at| (at, shape))
    };
    shapes.into_iter().flat_map(on).collect()
}

/// The request in the form that the resources would get where others may be asked to move.
pub(crate) fn requests(view: View<'_>, need: &Need<'_>) -> Vec<(usize, scheduler::Request)> {
    requests_of_choices(view, need, crowded_placement_choices(view, need))
}

/// The request in the form that the resources would get on which it may be paid for: beside those the cheapest ones, if its price
/// limits its places.
pub(crate) fn choices_to_pay(view: View<'_>, need: &Need<'_>) -> Vec<(usize, scheduler::Request)> {
    let mut places = crowded_placement_choices(view, need);
    if is_budgeted(view, need) {
        places.extend(cheapest_placement_choices(view, need));
    }
    requests_of_choices(view, need, places)
}

fn requests_of_choices(
    view: View<'_>,
    need: &Need<'_>,
    places: Vec<(usize, Shape)>,
) -> Vec<(usize, scheduler::Request)> {
    let on = |(at, shape): (usize, Shape)| Some((at, request_on(view, at, need, shape)?));
    places.into_iter().filter_map(on).collect()
}

/// One size of a need as a resource would get it.
pub(crate) fn request_on(
    view: View<'_>,
    at: usize,
    need: &Need<'_>,
    shape: Shape,
) -> Option<scheduler::Request> {
    Some(need.request(view.schedules.foreseen_longest(at, need, shape)?))
}

/// The best size, resource and slot of the ones that the payer can pay, among the most hopeful resources, or if it can pay on none of them among
/// the cheapest ones: where energy decides, the cheapest place for the provider, else the earliest.
fn best_payable_placement_choice(
    view: View<'_>,
    need: &Need<'_>,
) -> Result<(usize, Shape, Interval), Reason> {
    let objective = view.settings.objective;
    let payable = |(at, shape): (usize, Shape)| {
        let request = payable_placement_choice(view, at, need, &request_on(view, at, need, shape)?)?;
        if view.schedules.weighs_energy() {
            let part = (shape, request.window());
            let best = view.schedules.best_foreseen_on(at, need, part, objective)?;
            return Some((best.rank.objective, at, shape, best.slot));
        }
        let tree = view.schedules.get(at)?.schedule.tree();
        let start = tree.earliest_fit(request.nodes, request.duration, request.window())?;
        Some((0, at, shape, request.slot(start)))
    };
    let best_of = |places: Vec<(usize, Shape)>| {
        let found = places.into_iter().filter_map(payable).take(CROWDED_MAX);
        found.min_by_key(|(cost, at, _, slot)| (*cost, slot.end, *at))
    };
    let best = best_of(crowded_placement_choices(view, need))
        .or_else(|| best_of(cheapest_placement_choices(view, need)));
    best.map(|(_, at, shape, slot)| (at, shape, slot))
        .ok_or(Reason::NoCapacityInWindow)
}

/// The part of its window in which a slot of an agreement may move on a resource.
pub(crate) fn room_of_placement_choice(
    view: View<'_>,
    at: usize,
    agreement: &Agreement,
    stretch: Stretch,
) -> Interval {
    let window = agreement.window();
    let need = Need::of_agreement(agreement, window);
    view.schedules.foreseen_room(at, &need, stretch).unwrap_or(window)
}

/// Notes in which part of its window an agreement may move: where its slot is long enough.
pub(crate) fn settle_room_of_choice(view: View<'_>, agreement: &mut Agreement) {
    let window = agreement.window();
    let room = view.schedules.place_of(&agreement.resource);
    let room = room.map(|at| room_of_placement_choice(view, at, agreement, agreement.slots[0].stretch()));
    let part = room.filter(|room| *room != window && !agreement.slots.is_split());
    agreement.constraints.room = part.map(|room| (room.start.seconds(), room.end.seconds()));
}

/// Has the shape of an agreement stay where others hold its nodes: on a cluster, or in the domain of a peer.
pub(crate) fn keep_shape_elsewhere(view: View<'_>, agreement: &mut Agreement) {
    if !view.schedules.is_local(&agreement.resource) {
        agreement.constraints.keep_shape();
    }
}
