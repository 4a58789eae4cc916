//! Budgets of requesters: from when on a place costs no more than a budget, and the lowest budget that would do.
//!
//! The budget of a requester limits the places of its request, and a refusal gives the lowest budget that would have sufficed. In one
//! window a later placement never costs more than an earlier one. So a budget is a bound on the start, and the cheapest placement of
//! the plan as it stands is its latest fit.

use domain::agreement::Money;
use scheduler::{Fraction, Interval, Time};

use crate::context::View;
use crate::prices::payer::Payer;
use crate::prices::placement_prices::{
    load_for_placement_price, placement_price, placement_price_under_load,
};
use crate::prices::pricing::Priced;

/// The earliest start in the window of a request from which on a placement on a resource is within the budget, and
/// can be priced at all; none where no start is. O(log n), and for a budget the logarithm of the window's length
/// besides.
pub(crate) fn affordable_budget_from(
    view: View<'_>,
    resource: usize,
    load: Fraction,
    payer: Payer<'_>,
    request: &scheduler::Request,
    window: Interval,
) -> Option<Time> {
    if window.duration() < request.duration {
        return None;
    }
    if view.settings.pricing.is_none() {
        return Some(window.start);
    }
    let (mut early, mut late) = (window.start, window.end - request.duration);
    let on = &view.schedules.get(resource)?.resource;
    let priced = Priced::of(payer, on, (request.slot(late), request.nodes), window);
    let affordable = |start: Time| {
        let price = placement_price_under_load(view, load, resource, priced.at(request.slot(start)));
        price.is_some_and(|price| payer.budget.is_none_or(|budget| is_within_budget(price, budget)))
    };
    if !affordable(late) {
        return None;
    }
    while early < late {
        let middle = Time(i64::midpoint(early.seconds(), late.seconds()));
        if affordable(middle) {
            late = middle;
        } else {
            early = middle + 1;
        }
    }
    Some(late)
}

/// The lowest budget for which one of the requests has a place in its window on its resource, as the plan stands; none
/// where there is no place, or nothing is priced. Since admission ends with the plan as it stands, it is accepted
/// with it.
pub(crate) fn lowest_budget(
    view: View<'_>,
    payer: Payer<'_>,
    requests: &[(usize, scheduler::Request)],
) -> Option<Money> {
    let cheapest = |(resource, request): &(usize, scheduler::Request)| {
        let window = request.window_at(view.present_second());
        let resource_plan = view.schedules.get(*resource)?;
        let tree = resource_plan.schedule.tree();
        let start = tree.latest_fit(request.nodes, request.duration, window)?;
        let on = &resource_plan.resource;
        let priced = Priced::of(payer, on, (request.slot(start), request.nodes), window);
        placement_price(view, *resource, priced)
    };
    let prices = requests.iter().filter_map(cheapest);
    prices.min_by_key(|price| price.micros)
}

/// Whether one of the requests has a place on its resource as the plan stands that its payer can pay.
pub(crate) fn is_payable_within_budget(
    view: View<'_>,
    payer: Payer<'_>,
    requests: &[(usize, scheduler::Request)],
) -> bool {
    let Some(budget) = payer.budget.filter(|_| view.settings.pricing.is_some()) else {
        return true;
    };
    let lowest = lowest_budget(view, payer, requests);
    lowest.is_some_and(|lowest| is_within_budget(lowest, budget))
}

/// Whether there is a start in the window of one of the requests, free or not, that its payer can pay.
pub(crate) fn can_budget_pay(
    view: View<'_>,
    payer: Payer<'_>,
    requests: &[(usize, scheduler::Request)],
) -> bool {
    requests.iter().any(|(resource, request)| {
        let window = request.window_at(view.present_second());
        let load = load_for_placement_price(view, *resource, window);
        affordable_budget_from(view, *resource, load, payer, request, window).is_some()
    })
}

/// Whether a price is within a budget: never in another currency.
pub(crate) fn is_within_budget(price: Money, budget: Money) -> bool {
    price.currency == budget.currency && price.micros <= budget.micros
}

#[cfg(test)]
mod tests;
