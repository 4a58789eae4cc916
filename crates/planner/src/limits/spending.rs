//! What may be spent and what is: the prices of placements by the provider's price list, budgets of requesters, and caps of keys.
//!
//! A requester sees the same number in every place, and an accepted price stays when placements move later. The budget of a
//! requester limits the places of its request, and a refusal gives the lowest budget that would have sufficed. In one window a later
//! placement never costs more than an earlier one. So a budget is a bound on the start, and the cheapest placement of the plan as it
//! stands is its latest fit.

use std::collections::HashMap;

use domain::agreement::{Agreement, EnergyUse, Money, Slots, Spender};
use domain::change::Change;
use scheduler::{Fraction, Interval, Time, counted};
use uuid::Uuid;

use crate::context::View;
use crate::limits::Limits;
use crate::prices::payer::Payer;
use crate::prices::pricing::Priced;
use crate::refusal::{Refusal, quota_exceeded};
use crate::request::Request;

/// Holds a proposal within the cap of its key, as its budget; tells whether the cap is lower than its own.
pub(crate) fn limit_to_cap(view: View<'_>, request: &mut Request) -> bool {
    let Some(left) = left_to_spend(view, request.spender) else {
        return false;
    };
    let lowers = request
        .budget
        .is_none_or(|budget| !is_within_budget(budget, left));
    if lowers {
        request.budget = Some(left);
    }
    lowers
}

/// Why a price is too much for a key, if it is.
pub(crate) fn check_spending_cap(
    view: View<'_>,
    spender: Option<Spender>,
    price: Option<Money>,
) -> Result<(), Refusal> {
    match (spender, left_to_spend(view, spender), price) {
        (Some(spender), Some(left), Some(price)) if !is_within_budget(price, left) => {
            Err(spending_cap_exceeded(view, spender))
        }
        _ => Ok(()),
    }
}

pub(crate) fn spending_cap_exceeded(view: View<'_>, Spender { key, cap }: Spender) -> Refusal {
    let charged = view.settings.pricing.as_ref().map(|pricing| pricing.currency);
    if let Some(charged) = charged.filter(|charged| *charged != cap.currency) {
        return quota_exceeded(format!(
            "this key may spend {cap}, and agreements are charged in {charged}"
        ));
    }
    let spent = Money::new(spent_by(view, key), cap.currency);
    quota_exceeded(format!("this key may spend {cap}, and has spent {spent}"))
}

fn left_to_spend(view: View<'_>, spender: Option<Spender>) -> Option<Money> {
    let Spender { key, cap } = spender?;
    let left = cap.micros.saturating_sub(spent_by(view, key));
    Some(Money::new(left, cap.currency))
}

/// What a key has spent, with what waits.
fn spent_by(view: View<'_>, key: Uuid) -> i64 {
    view.limits.spent_by(key, |id| view.elsewhere.has(*id))
}

/// Counts the price of an agreement that its command waits for; `waits` says of an agreement whether one still does.
pub(crate) fn note_spending_that_waits(
    limits: &mut Limits,
    waits: impl Fn(Uuid) -> bool,
    spender: Option<Spender>,
    agreement: &Agreement,
) {
    limits.retain_waiting(|id| waits(*id));
    if let (Some(spender), Some(price)) = (spender, agreement.price) {
        limits.spend_later(agreement.id, spender.key, price.micros);
    }
}

/// Counts the price of an agreement that was made. Returns what is to be stored, if something was spent.
pub(crate) fn spend(limits: &mut Limits, spender: Option<Spender>, agreement: &Agreement) -> Option<Change> {
    let (Spender { key, .. }, price) = spender.zip(agreement.price)?;
    limits.spend(key, price.micros);
    Some(Change::Spend {
        agreement: agreement.id,
        key,
        micros: price.micros,
    })
}

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
    let affordable = |start: Time| {
        let priced = Priced::of(payer, (request.slot(start), request.nodes), window);
        let price = price_under(view, load, resource, priced);
        price.is_some_and(|price| payer.budget.is_none_or(|budget| is_within_budget(price, budget)))
    };
    let (mut early, mut late) = (window.start, window.end - request.duration);
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
        let tree = view.schedules.get(*resource)?.schedule.tree();
        let start = tree.latest_fit(request.nodes, request.duration, window)?;
        let priced = Priced::of(payer, (request.slot(start), request.nodes), window);
        price(view, *resource, priced)
    };
    let prices = requests.iter().filter_map(cheapest);
    prices.min_by_key(|price| price.micros)
}

/// Whether one of the requests has a place on its resource as the plan stands that its payer can pay.
pub(crate) fn is_payable(view: View<'_>, payer: Payer<'_>, requests: &[(usize, scheduler::Request)]) -> bool {
    let Some(budget) = payer.budget.filter(|_| view.settings.pricing.is_some()) else {
        return true;
    };
    let lowest = lowest_budget(view, payer, requests);
    lowest.is_some_and(|lowest| is_within_budget(lowest, budget))
}

/// Whether there is a start in the window of one of the requests, free or not, that its payer can pay.
pub(crate) fn can_payer_pay(
    view: View<'_>,
    payer: Payer<'_>,
    requests: &[(usize, scheduler::Request)],
) -> bool {
    requests.iter().any(|(resource, request)| {
        let window = request.window_at(view.present_second());
        let load = window_load_for_price(view, *resource, window);
        affordable_budget_from(view, *resource, load, payer, request, window).is_some()
    })
}

/// Whether a price is within a budget: never in another currency.
pub(crate) fn is_within_budget(price: Money, budget: Money) -> bool {
    price.currency == budget.currency && price.micros <= budget.micros
}

/// The energy of slots on a resource; none where its power is not known.
pub(crate) fn energy(view: View<'_>, resource: &str, slots: &Slots) -> Option<EnergyUse> {
    let pricing = view.settings.pricing.as_ref()?;
    let energy = pricing.energy.as_ref()?;
    energy.of_slots(resource, slots, pricing.currency)
}

/// The parts of the price of an agreement that is made now, in words; none where it has no price.
pub(crate) fn price_in_words(view: View<'_>, agreement: &Agreement) -> Option<String> {
    let pricing = view.settings.pricing.as_ref()?;
    let price = agreement.price?;
    let end = agreement.placement().end;
    let priced = Priced {
        payer: Payer::of_agreement(agreement),
        node_seconds: agreement.node_seconds(),
        slot: Interval::new(end - agreement.duration, end),
        window: agreement.window(),
    };
    let size = if agreement.slots.differ() {
        format!("pieces of up to {}", counted(agreement.nodes(), "node"))
    } else {
        counted(agreement.nodes(), "node")
    };
    let parts = pricing.parts(&agreement.resource, view.present_second(), (priced, &size), price)?;
    Some(format!("{price}: {parts}"))
}

/// The price of a placement on a resource of the plan at this moment, while the request is not on its tree yet;
/// none where nothing is priced, or where the price is more than an amount can hold. O(log n).
pub(crate) fn price(view: View<'_>, resource: usize, priced: Priced<'_>) -> Option<Money> {
    price_under(
        view,
        window_load_for_price(view, resource, priced.window),
        resource,
        priced,
    )
}

/// The price of a placement under a load factor that was found before the request came on the tree.
pub(crate) fn price_under(
    view: View<'_>,
    load: Fraction,
    resource: usize,
    priced: Priced<'_>,
) -> Option<Money> {
    let pricing = view.settings.pricing.as_ref()?;
    let name = &view.schedules.get(resource)?.resource.name;
    pricing.price(name, load, view.present_second(), priced)
}

/// The load factor of a window on a resource of the plan. O(log n).
pub(crate) fn window_load_for_price(view: View<'_>, resource: usize, window: Interval) -> Fraction {
    let pricing = view.settings.pricing.as_ref();
    match pricing.zip(view.schedules.get(resource)) {
        Some((pricing, resource_plan)) => pricing.load(resource_plan.schedule.tree(), window, 0),
        None => Fraction::percent(100),
    }
}

impl Limits {
    /// Takes back what keys with a cap have spent.
    pub(crate) fn recall_spent(&mut self, spent: HashMap<Uuid, i64>) {
        self.spent = spent;
    }

    /// Counts what was spent with a key.
    pub(crate) fn spend(&mut self, key: Uuid, micros: i64) {
        let spent = self.spent.entry(key).or_default();
        *spent = spent.saturating_add(micros);
    }

    /// Counts what would be spent with a key once the cluster of an agreement holds its nodes.
    fn spend_later(&mut self, agreement: Uuid, key: Uuid, micros: i64) {
        self.spent_by_waiting.insert(agreement, (key, micros));
    }

    /// Counts only those agreements for later that still wait.
    fn retain_waiting(&mut self, waits: impl Fn(&Uuid) -> bool) {
        self.spent_by_waiting.retain(|id, _| waits(id));
    }

    /// What a key has spent, with what those agreements cost that still wait.
    fn spent_by(&self, key: Uuid, waits: impl Fn(&Uuid) -> bool) -> i64 {
        let waiting = self.spent_by_waiting.iter();
        let own = waiting.filter(|(id, (by, _))| *by == key && waits(id));
        let spent = self.spent.get(&key).copied().unwrap_or(0);
        own.fold(spent, |sum, (_, (_, micros))| sum.saturating_add(*micros))
    }
}

#[cfg(test)]
mod tests;
