//! Which resource takes a request, and which agreements move for it: first where it fits as the plans stand, then where
//! others move inside their windows, then where some waiting agreements go to another resource (design of many
//! resources). Changes that do not lead to a place are taken back, so a refusal leaves every agreement where it was.

use domain::agreement::{Shape, Slots};
use scheduler::domain::Objective;
use scheduler::{Fraction, Interval, Reason, Time};

use crate::context::Search;
use crate::placement::places::{Placement, Transfer};
use crate::placement::{choice, find, trial};
use crate::prices::budgets::is_within_budget;
use crate::prices::pricing::Priced;
use crate::prices::{budgets, placement_prices};
use crate::schedules::IN_THE_WAY_MAX;
use crate::schedules::need::{Need, revenue_of_price};

/// Trials of sending others elsewhere, each of which may take many decisions.
const DISPLACING_MAX: usize = 4;

/// Accepts a request: with the best size and resource as the plans stand, else on a resource where others move, else
/// where some go elsewhere.
///
/// # Errors
/// Why it has no place; everything is as it was then.
pub(crate) fn admit(search: &mut Search<'_>, need: &Need<'_>) -> Result<Placement, Reason> {
    match choice::choose_best_placement(search.view(), need) {
        Ok((at, shape, slot)) => {
            let load = placement_prices::load_for_placement_price(search.view(), at, need.window);
            // It lies elsewhere than at its first fit; or at another time it would be shorter or longer.
            let exactly = need.is_sized()
                || matches!(
                    search.settings.objective,
                    Objective::LatestStart | Objective::LeastWorkLost
                );
            // At another time its energy would cost more.
            let is_weighed = search.schedules.weighs_energy();
            let found = if is_weighed || exactly && !choice::is_budgeted(search.view(), need) {
                put_admitted_slots(search, (at, load), need, Slots::one((slot, shape.nodes)))
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
    let crowded = choice::crowded_placement_choices(search.view(), need);
    search.schedules.share_work(crowded.len());
    for (at, shape) in &crowded {
        let load = placement_prices::load_for_placement_price(search.view(), *at, need.window);
        let found = admit_on_resource(search, (*at, load), need, *shape);
        if found.is_some() {
            return found;
        }
    }
    let displacing = crowded.len().min(DISPLACING_MAX);
    // The search finds the agreements in the way, and a place for the new request as each of them leaves.
    search.schedules.share_work(displacing * (1 + IN_THE_WAY_MAX));
    let mut crowded = crowded.into_iter().take(displacing);
    crowded.find_map(|(at, shape)| displace_to_admit(search, at, need, shape))
}

/// Accepts a request on a resource by algorithm 1, from the time on at which its payer can pay, under the load factor without
/// it.
pub(crate) fn admit_on_resource(
    search: &mut Search<'_>,
    (at, load): (usize, Fraction),
    need: &Need<'_>,
    shape: Shape,
) -> Option<Placement> {
    let request = choice::request_on(search.view(), at, need, shape)?;
    // From when on it can pay.
    let ready = budgets::affordable_budget_from(search.view(), at, load, need.payer, &request, need.window)?;
    let latest = request.slot(need.window.end - request.duration);
    let on = &search.schedules.get(at)?.resource;
    let priced = Priced::of(need.payer, on, (latest, request.nodes), need.window);
    let paying = scheduler::Request {
        ready,
        revenue: revenue_of_price(placement_prices::placement_price_under_load(
            search.view(),
            load,
            at,
            priced,
        )),
        ..request
    };
    let now = search.present_second();
    let (places, agreements) = (search.basis.placement, search.basis.agreements);
    let resource = search.schedules.get(at).map(|plan| plan.resource.name.as_str());
    let near_until = resource.and_then(|name| search.basis.elsewhere.near_until(name, now));
    let most = search.settings.improving.moves_per_hour;
    // Where energy decides, an earlier time may be a dearer one.
    let is_weighed = search.schedules.weighs_energy();
    let may_move = |number: u64| {
        let from = places.movable_from(agreements, near_until, most, number);
        !is_weighed && from.is_some_and(|from| from <= now)
    };
    // Its cluster was not asked for nearer time.
    let not_before = near_until.map_or(Time::MIN, |until| until + 1);
    let (placement, moved) = search
        .schedules
        .submit_gaining(at, now, &paying, not_before, may_move)?;
    let price =
        placement_prices::placement_price_under_load(search.view(), load, at, priced.at(placement.slot));
    Some(Placement {
        moved,
        ..Placement::at(at, Slots::one((placement.slot, request.nodes)), price)
    })
}

/// Puts slots where they were found to fit, all or none; none also where the payer cannot pay for them.
pub(crate) fn put_admitted_slots(
    search: &mut Search<'_>,
    (at, load): (usize, Fraction),
    need: &Need<'_>,
    slots: Slots,
) -> Option<Placement> {
    let on = &search.schedules.get(at)?.resource;
    let price = placement_prices::placement_price_under_load(
        search.view(),
        load,
        at,
        Priced::of_slots(need.payer, on, &slots, need.window),
    );
    if search.settings.pricing.is_some() {
        let budget = need.payer.budget;
        price.filter(|price| budget.is_none_or(|budget| is_within_budget(*price, budget)))?;
    }
    let first = slots.first()?.stretch();
    let room = search
        .schedules
        .foreseen_room(at, need, first)
        .unwrap_or(need.window);
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
pub(crate) fn displace_to_admit(
    search: &mut Search<'_>,
    at: usize,
    need: &Need<'_>,
    shape: Shape,
) -> Option<Placement> {
    let request = choice::request_on(search.view(), at, need, shape)?;
    // Making room does not lower the price.
    let load = placement_prices::load_for_placement_price(search.view(), at, need.window);
    trial::run_trial(search, |search| {
        let mut transferred: Vec<Transfer> = Vec::new();
        for number in search
            .schedules
            .waiting_in_the_way(at, search.present_second(), &request)
        {
            let Some(transfer) = admit_displaced_elsewhere(search, at, number) else {
                continue;
            };
            transferred.push(transfer);
            if let Some(found) = admit_on_resource(search, (at, load), need, shape) {
                // The first agreements that left may not have had to leave.
                transferred.retain(|transferred| !take_admission_back(search, transferred));
                return Some(Placement { transferred, ..found });
            }
        }
        None
    })
}

/// Moves a waiting agreement to another resource where it fits as the plan stands.
fn admit_displaced_elsewhere(search: &mut Search<'_>, from: usize, number: u64) -> Option<Transfer> {
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
    trial::run_trial(search, |search| {
        let was = find::take_slots_out(search, &agreement, 0, now);
        let placed = find::find_place_elsewhere(search, &agreement, 0, (window, Some(from)), true, now)?;
        // Its cluster would have to hold it first, and is not asked for it.
        let is_asked_for = !search.basis.elsewhere.is_needed(&placed, now);
        is_asked_for.then_some(Transfer { placed, from, was })
    })
}

/// Moves an agreement back to where it was, if there is room.
#[must_use]
fn take_admission_back(search: &mut Search<'_>, transfer: &Transfer) -> bool {
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

#[cfg(test)]
mod tests;
