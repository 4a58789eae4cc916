//! Which resource takes a request, and which agreements move for it: first where it fits as the plans stand, then where
//! others move inside their windows, then where some waiting agreements go to another resource (design of many
//! resources). Changes that do not lead to a place are taken back, so a refusal leaves every agreement where it was.

use domain::agreement::{Agreement, AgreementState, ServiceState, Shape, Slots, Stretch};
use scheduler::domain::Objective;
use scheduler::{Fraction, Interval, Reason, Time, counted};

use crate::context::{Search, View};
use crate::limits::budget::is_within_budget;
use crate::limits::{budget, pricing};
use crate::placement::{eligible, find, transaction};
use crate::prices::price_list::Priced;
use crate::request::Request;
use crate::requests::revenue_of_price;
use crate::schedules::IN_THE_WAY_MAX;
use crate::schedules::need::{Need, Placement, Transfer};

/// Resources on which others are asked to move for one request, and sizes of the request that are tried there: admission to a
/// crowded resource may take milliseconds, and all commands wait meanwhile.
const CROWDED_MAX: usize = 16;
/// Resources that are looked at for one request that cannot pay on those, the cheapest first.
const CHEAPEST_MAX: usize = 256;
/// Trials of sending others elsewhere, each of which may take many decisions.
const DISPLACING_MAX: usize = 4;

/// Accepts a request: with the best size and resource as the plans stand, else on a resource where others move, else
/// where some go elsewhere.
///
/// # Errors
/// Why it has no place; everything is as it was then.
pub(crate) fn admit(search: &mut Search<'_>, need: &Need<'_>) -> Result<Placement, Reason> {
    match best_admission_to_pay(search.view(), need) {
        Ok((at, shape, slot)) => {
            let load = pricing::window_load(search.view(), at, need.window);
            // It lies elsewhere than at its first fit; or at another time it would be shorter or longer.
            let exactly = need.is_sized()
                || matches!(
                    search.settings.objective,
                    Objective::LatestStart | Objective::LeastWorkLost
                );
            // At another time its energy would cost more.
            let is_weighed = search.schedules.weighs_energy();
            let found = if is_weighed || exactly && !is_budgeted(search.view(), need) {
                put_slots(search, (at, load), need, Slots::one((slot, shape.nodes)))
            } else {
                admit_on_resource(search, (at, load), need, shape)
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(Reason::NoCapacityInWindow) => {}
        Err(reason) => return Err(reason),
    }
    let found = admit_where_others_move(search, need);
    search.schedules.share_work(1);
    found.ok_or(Reason::NoCapacityInWindow)
}

/// Accepts a request where others move, else where some go elsewhere: each with the work of one decision.
fn admit_where_others_move(search: &mut Search<'_>, need: &Need<'_>) -> Option<Placement> {
    let crowded = crowded_places(search.view(), need);
    search.schedules.share_work(crowded.len());
    for (at, shape) in &crowded {
        let load = pricing::window_load(search.view(), *at, need.window);
        let found = admit_on_resource(search, (*at, load), need, *shape);
        if found.is_some() {
            return found;
        }
    }
    let displacing = crowded.len().min(DISPLACING_MAX);
    // The search finds the agreements in the way, and a place for the new request as each of them leaves.
    search.schedules.share_work(displacing * (1 + IN_THE_WAY_MAX));
    let mut crowded = crowded.into_iter().take(displacing);
    crowded.find_map(|(at, shape)| displace(search, at, need, shape))
}

/// Whether its price limits its places.
fn is_budgeted(view: View<'_>, need: &Need<'_>) -> bool {
    need.payer.budget.is_some() && view.settings.pricing.is_some()
}

/// The size and the resource that are best as the plans stand, of the ones that its payer can pay.
pub(crate) fn best_admission_to_pay(
    view: View<'_>,
    need: &Need<'_>,
) -> Result<(usize, Shape, Interval), Reason> {
    match best_place(view, need) {
        Ok(best) if is_budgeted(view, need) && !is_cheapest_payable(view, need, best) => {
            best_payable(view, need)
        }
        best => best,
    }
}

/// Whether a place is the best one for energy, and its payer can pay for it.
fn is_cheapest_payable(view: View<'_>, need: &Need<'_>, (at, shape, slot): (usize, Shape, Interval)) -> bool {
    let payable = || payable_request(view, at, need, &request_on(view, at, need, shape)?);
    view.schedules.weighs_energy() && payable().is_some_and(|from| from.ready <= slot.start)
}

/// A request from when on its payer can pay for it on a resource; none where it never can.
pub(crate) fn payable_request(
    view: View<'_>,
    resource: usize,
    need: &Need<'_>,
    request: &scheduler::Request,
) -> Option<scheduler::Request> {
    let load = pricing::window_load(view, resource, need.window);
    let ready = budget::affordable_budget_from(view, resource, load, need.payer, request, need.window)?;
    Some(scheduler::Request { ready, ..*request })
}

/// The size and the resource that are best as the plans stand; of equal ones the larger, then the first configured. Another
/// size for an agreement has to complete earlier than the larger ones.
pub(crate) fn best_place(view: View<'_>, need: &Need<'_>) -> Result<(usize, Shape, Interval), Reason> {
    let objective = view.settings.objective;
    let completes = objective == Objective::EarliestCompletion || need.of.is_some();
    let mut best: Option<((i128, Time), usize, Shape, Interval)> = None;
    let mut why = Reason::ResourceNotOffered;
    let mut window = need.window;
    for shape in need.shapes.iter() {
        match view.schedules.best_candidate(need, *shape, window, objective) {
            Ok((at, _))
                if need
                    .of
                    .is_some_and(|each| !eligible::may_go_to_resource(view, at, each)) => {}
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
pub(crate) fn crowded_places(view: View<'_>, need: &Need<'_>) -> Vec<(usize, Shape)> {
    let shapes = need.some_shapes();
    let each = CROWDED_MAX / shapes.len().max(1);
    let on = |shape: Shape| {
        let hopeful = view.schedules.hopeful(need, shape, each);
        hopeful.into_iter().map(move |at| (at, shape))
    };
    shapes.into_iter().flat_map(on).collect()
}

/// Where its sizes cost least by the price list, the cheapest places of each first.
fn cheapest_places(view: View<'_>, need: &Need<'_>) -> Vec<(usize, Shape)> {
    let shapes = need.some_shapes();
    let each = CHEAPEST_MAX / shapes.len().max(1);
    let on = |shape: Shape| {
        let cheapest = view.schedules.cheapest(need, shape, each);
        cheapest.into_iter().map(move |at| (at, shape))
    };
    shapes.into_iter().flat_map(on).collect()
}

/// The request in the form that the resources would get where others may be asked to move.
pub(crate) fn requests(view: View<'_>, need: &Need<'_>) -> Vec<(usize, scheduler::Request)> {
    requests_at(view, need, crowded_places(view, need))
}

/// The request in the form that the resources would get on which it may be paid for: beside those the cheapest ones, if its price
/// limits its places.
pub(crate) fn requests_to_pay(view: View<'_>, need: &Need<'_>) -> Vec<(usize, scheduler::Request)> {
    let mut places = crowded_places(view, need);
    if is_budgeted(view, need) {
        places.extend(cheapest_places(view, need));
    }
    requests_at(view, need, places)
}

fn requests_at(
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
    Some(need.request(view.schedules.longest(at, need, shape)?))
}

/// The best size, resource and slot of the ones that the payer can pay, among the most hopeful resources, or if it can pay on none of them among
/// the cheapest ones: where energy decides, the cheapest place for the provider, else the earliest.
fn best_payable(view: View<'_>, need: &Need<'_>) -> Result<(usize, Shape, Interval), Reason> {
    let objective = view.settings.objective;
    let payable = |(at, shape): (usize, Shape)| {
        let request = payable_request(view, at, need, &request_on(view, at, need, shape)?)?;
        if view.schedules.weighs_energy() {
            let part = (shape, request.window());
            let best = view.schedules.best_on(at, need, part, objective)?;
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
    let best = best_of(crowded_places(view, need)).or_else(|| best_of(cheapest_places(view, need)));
    best.map(|(_, at, shape, slot)| (at, shape, slot))
        .ok_or(Reason::NoCapacityInWindow)
}

/// Accepts a request on a resource by algorithm 1, from the time on at which its payer can pay, under the load factor without
/// it.
fn admit_on_resource(
    search: &mut Search<'_>,
    (at, load): (usize, Fraction),
    need: &Need<'_>,
    shape: Shape,
) -> Option<Placement> {
    let request = request_on(search.view(), at, need, shape)?;
    // From when on it can pay.
    let ready = budget::affordable_budget_from(search.view(), at, load, need.payer, &request, need.window)?;
    let priced = |slot| Priced::of(need.payer, (slot, request.nodes), need.window);
    let least = request.slot(need.window.end - request.duration);
    let paying = scheduler::Request {
        ready,
        revenue: revenue_of_price(pricing::price_under(search.view(), load, at, priced(least))),
        ..request
    };
    let (placement, moved) = search.schedules.submit(at, search.present_second(), &paying)?;
    let price = pricing::price_under(search.view(), load, at, priced(placement.slot));
    Some(Placement {
        moved,
        ..Placement::at(at, Slots::one((placement.slot, request.nodes)), price)
    })
}

/// The agreement that an offer becomes.
pub(crate) fn make_agreement(
    search: &mut Search<'_>,
    proposal: &Request,
    window: Interval,
    admitted: &Placement,
) -> Agreement {
    Agreement {
        id: proposal.id,
        party: proposal.party.clone(),
        name: proposal.name.clone(),
        initiator_id: proposal.initiator_id.clone(),
        template: proposal.template.clone(),
        resource: search.schedules.name(admitted.resource),
        duration: admitted.slots.seconds(),
        ready: window.start,
        deadline: window.end,
        slots: admitted.slots.clone(),
        fixed: false,
        price: admitted.price,
        constraints: proposal.constraints(admitted.slots.is_split()),
        job: proposal.job.clone(),
        guarantees: proposal.guarantees.clone(),
        choices: proposal.choices.clone(),
        state: AgreementState::Observed,
        service: ServiceState::NotReady,
        started: None,
        ended: None,
        outcome: None,
        created: search.now,
        version: 1,
        origin: None,
    }
}

/// Notes in which part of its window an agreement may move: where its slot is long enough.
pub(crate) fn settle_room(view: View<'_>, agreement: &mut Agreement) {
    let window = agreement.window();
    let room = view.schedules.place_of(&agreement.resource);
    let room = room.map(|at| room_of_request_on(view, at, agreement, agreement.slots[0].stretch()));
    let part = room.filter(|room| *room != window && !agreement.slots.is_split());
    agreement.constraints.room = part.map(|room| (room.start.seconds(), room.end.seconds()));
}

/// The part of its window in which a slot of an agreement may move on a resource.
pub(crate) fn room_of_request_on(
    view: View<'_>,
    at: usize,
    agreement: &Agreement,
    stretch: Stretch,
) -> Interval {
    let window = agreement.window();
    let need = Need::of_agreement(agreement, window);
    view.schedules.room(at, &need, stretch).unwrap_or(window)
}

/// Puts slots where they were found to fit, all or none; none also where the payer cannot pay for them.
pub(crate) fn put_slots(
    search: &mut Search<'_>,
    (at, load): (usize, Fraction),
    need: &Need<'_>,
    slots: Slots,
) -> Option<Placement> {
    let price = pricing::price_under(
        search.view(),
        load,
        at,
        Priced::of_slots(need.payer, &slots, need.window),
    );
    if search.settings.pricing.is_some() {
        let budget = need.payer.budget;
        price.filter(|price| budget.is_none_or(|budget| is_within_budget(*price, budget)))?;
    }
    let first = slots.first()?.stretch();
    let room = search.schedules.room(at, need, first).unwrap_or(need.window);
    let requests = slots.iter().zip(need.number..).map(|(slot, number)| {
        let (slot, nodes) = slot.stretch();
        // One alone may move where it is long enough; several get their windows with the agreement.
        let window = if slots.is_split() { slot } else { room };
        let request = scheduler::Request {
            id: number,
            submitted: need.submitted,
            ready: window.start,
            deadline: window.end,
            duration: slot.duration(),
            nodes,
            revenue: revenue_of_price(price),
        };
        (request, slot.start)
    });
    let requests: Vec<_> = requests.collect();
    let put = search.schedules.put_all(at, search.present_second(), &requests);
    put.then(|| Placement::at(at, slots, price))
}

/// Accepts a request where some waiting agreements can go to free places on other resources.
pub(crate) fn displace(
    search: &mut Search<'_>,
    at: usize,
    need: &Need<'_>,
    shape: Shape,
) -> Option<Placement> {
    let request = request_on(search.view(), at, need, shape)?;
    // Making room does not lower the price.
    let load = pricing::window_load(search.view(), at, need.window);
    transaction::run_trial(search, |search| {
        let mut transferred: Vec<Transfer> = Vec::new();
        for number in search
            .schedules
            .waiting_in_the_way(at, search.present_second(), &request)
        {
            let Some(transfer) = send_displaced_elsewhere(search, at, number) else {
                continue;
            };
            transferred.push(transfer);
            if let Some(found) = admit_on_resource(search, (at, load), need, shape) {
                // The first agreements that left may not have had to leave.
                transferred.retain(|transferred| !take_back(search, transferred));
                return Some(Placement { transferred, ..found });
            }
        }
        None
    })
}

/// Moves a waiting agreement to another resource where it fits as the plan stands.
fn send_displaced_elsewhere(search: &mut Search<'_>, from: usize, number: u64) -> Option<Transfer> {
    let now = search.present_second();
    let (agreement, _) = search.placement.slot_by_number(search.agreements, number)?;
    let moves = agreement.is_waiting() && !agreement.fixed;
    // It may have gone with another of its slots.
    let is_here = search.schedules.has_request(from, number);
    if !moves || !is_here || search.table.is_counted_on(agreement.id) {
        return None;
    }
    let agreement = agreement.clone();
    // A slot that starts in this second could not be taken back.
    let window = Interval::new(agreement.ready.max(now + 1), agreement.deadline);
    transaction::run_trial(search, |search| {
        let was = find::take_slots_out(search, &agreement, 0, now);
        let placed = find::place_elsewhere(search, &agreement, 0, (window, Some(from)), true, now)?;
        Some(Transfer { placed, from, was })
    })
}

/// Moves an agreement back to where it was, if there is room.
#[must_use]
fn take_back(search: &mut Search<'_>, transfer: &Transfer) -> bool {
    let back = search
        .schedules
        .put_all(transfer.from, search.present_second(), &transfer.was);
    if back && let Some(to) = search.schedules.required_place_of(&transfer.placed.resource) {
        for (request, _) in &transfer.was {
            let left = search.schedules.withdraw(to, request.id).is_some();
            let what = || format!("{} has no place where it went", request.id);
            search.schedules.note_unless(left, what);
        }
    }
    back
}

/// How an agreement came to its place, in words for its party.
pub(crate) fn admission_in_words(agreement: &Agreement, found: &Placement) -> String {
    let resource = &agreement.resource;
    let mut detail = match found.moved.len() {
        0 => format!("placed on {resource} as the first fit in its window"),
        1 => format!("placed on {resource}; 1 other moved inside its window"),
        count => format!("placed on {resource}; {count} others moved inside their windows"),
    };
    if !agreement.constraints.shapes.is_empty() {
        detail += &format!(
            "; {} for {} of {}",
            counted(agreement.nodes(), "node"),
            counted(agreement.duration, "second"),
            counted(agreement.constraints.shapes.len(), "size")
        );
    }
    if found.slots.is_split() {
        let (count, end) = (found.slots.len(), found.slots.placement().duration());
        detail += &format!(
            "; in {count} pieces, the last of which ends {} after the start of the first",
            counted(end, "second")
        );
    }
    match found.transferred.len() {
        0 => {}
        count => detail += &format!("; {} went to another resource", counted(count, "other")),
    }
    detail
}

/// The reason that came nearer to a place.
fn nearer_refusal_reason(one: Reason, other: Reason) -> Reason {
    let steps = |reason: &Reason| match reason {
        Reason::ResourceNotOffered => 0,
        Reason::SizeExceedsCapacity => 1,
        Reason::WindowContradictory => 2,
        Reason::WindowInThePast => 3,
        _ => 4,
    };
    if steps(&one) >= steps(&other) { one } else { other }
}

#[cfg(test)]
mod tests;
