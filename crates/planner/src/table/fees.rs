//! The fees for ending and for changing an agreement, each with its reason in words.
//!
//! A fee is at least the amount by which the same request would be cheaper now. So it never pays to end an agreement and to book it
//! again at the same instant. Only resources count that would take the request: they meet its conditions, are open for new
//! agreements, and have room for it in its window.

use std::collections::BTreeMap;

use domain::agreement::{Agreement, Money, Shape, part_of_amount};
use scheduler::{Fraction, Interval, Request};

use crate::context::{Search, View};
use crate::placement::{admit, choice, trial};
use crate::prices::payer::Payer;
use crate::prices::placement_prices;
use crate::prices::pricing::Priced;
use crate::schedules::need::Need;
use crate::schedules::resource_choice;
use crate::table::holds;

/// A fee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fee {
    pub(crate) amount: Money,
    /// Why it is that much, in words for its party; none where it is nothing.
    pub(crate) why: Option<String>,
}

impl Fee {
    fn new(micros: i64, price: Money, why: String) -> Self {
        Self {
            amount: Money::new(micros, price.currency),
            why: Some(why).filter(|_| micros > 0),
        }
    }
}

/// Where the request of an agreement would cost least now, and how much: less than its price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rebooking {
    price: Money,
    resource: String,
}

impl Rebooking {
    fn in_words(&self) -> String {
        format!("the same would now cost {} on {}", self.price, self.resource)
    }
}

/// The fee for ending an agreement before its slot, now that it has left the plan. It is the provider's part of its
/// price, at least the amount by which the same request would be cheaper now, and at most its price. So it never pays
/// to end an agreement and to book it again at the same instant. The fee is zero where its work was lost before, or the start
/// that was promised has passed: its party need not wait for another time. Where a peer has it, the fee is at least that
/// peer's charge for its end.
pub(crate) fn cancellation_fee(
    search: &mut Search<'_>,
    agreement: &Agreement,
    charge_of_peer: Option<Money>,
) -> Option<Fee> {
    if agreement.restarts() > 0 || agreement.has_missed_start(search.present_second()) {
        return None;
    }
    let (price, rate) = (agreement.price?, search.settings.pricing.as_ref()?.cancellation);
    let rule = part(price, rate);
    let rebooking = cheapest_rebooking_for_fee(search, agreement);
    let cheaper = cheaper_by(price, rebooking.as_ref());
    let there = charge_of_peer.filter(|charge| charge.currency == price.currency);
    let there = there.map_or(0, |each| each.micros);
    let fee = rule.max(cheaper).max(there).min(price.micros);
    let why = match &rebooking {
        _ if there > rule.max(cheaper) => format!("{} charges that for its end", agreement.resource),
        Some(rebooking) if cheaper > rule => format!(
            "{}, {} less than its price",
            rebooking.in_words(),
            Money::new(cheaper, price.currency)
        ),
        _ => format!("{} of its price of {price}", fee_percent_in_words(rate)),
    };
    Some(Fee::new(fee, price, why))
}

/// The fee for a change of an agreement to one of another price, beside the difference of the prices. It is the
/// provider's part of its price. Where the price falls, it is at least the fee for ending that part. `rebooking` is what
/// [`cheapest_rebooking_for_fee`] has found.
pub(crate) fn change_fee(
    view: View<'_>,
    agreement: &Agreement,
    next: Option<Money>,
    rebooking: Option<&Rebooking>,
) -> Option<Fee> {
    let (price, pricing) = (agreement.price?, view.settings.pricing.as_ref()?);
    let next = next?;
    // Amounts of another currency are not compared.
    let next = if next.currency == price.currency {
        next
    } else {
        price
    };
    let given_up = Money::new((price.micros - next.micros).max(0), price.currency);
    let fixed = part(price, pricing.change);
    let rule = part(given_up, pricing.cancellation);
    let cheaper = cheaper_by(price, rebooking).min(given_up.micros);
    let fee = (fixed + rule.max(cheaper)).min(price.micros);
    let mut why = Vec::new();
    if fixed > 0 {
        why.push(format!(
            "{} of its price of {price}",
            fee_percent_in_words(pricing.change)
        ));
    }
    match rebooking.filter(|_| cheaper > rule) {
        Some(rebooking) => why.push(format!(
            "{}, since its price would fall and {}",
            Money::new(cheaper, price.currency),
            rebooking.in_words()
        )),
        None if rule > 0 => why.push(format!(
            "{} of the {given_up} by which its price falls",
            fee_percent_in_words(pricing.cancellation)
        )),
        None => {}
    }
    Some(Fee::new(fee, price, why.join(" and ")))
}

/// Where the request of an agreement that is out of the plan would cost least now in its window, if that is less than its price;
/// none where it is not, or where a peer has it, whose prices are its own. What its party has held for offers counts as free:
/// it could let that go. O(log n) for each resource, a look at its sizes for each kind of resource, and a bounded number of decisions
/// where others would have to move.
pub(crate) fn cheapest_rebooking_for_fee(
    search: &mut Search<'_>,
    agreement: &Agreement,
) -> Option<Rebooking> {
    let price = agreement.price.filter(|price| price.micros > 0)?;
    if search.settings.pricing.is_none() || search.schedules.is_at_peer(agreement) {
        return None;
    }
    let window = Interval::new(agreement.ready.max(search.present_second()), agreement.deadline);
    let need = Need {
        // As it would be booked again.
        of: None,
        is_new: true,
        ..Need::of_agreement(agreement, window)
    };
    let found = trial::suppose_in_trial(search, |search| {
        holds::vacate_holds_of(search, &agreement.party);
        let mut cheaper = rebooking_prices_for_fee(search.view(), agreement, &need);
        cheaper.retain(|(least, _)| *least < price.micros);
        cheaper.sort_unstable();
        let crowded = choice::crowded_placement_choices(search.view(), &need);
        search.schedules.share_work(crowded.len());
        cheaper.into_iter().find(|(_, at)| {
            let others_may_move = crowded.iter().any(|(crowded, _)| crowded == at);
            has_room_for_rebooking(search, *at, agreement, (&need, others_may_move))
        })
    });
    search.schedules.share_work(1);
    let (micros, at) = found?;
    let resource = search.schedules.get(at)?.resource.name.clone();
    Some(Rebooking {
        price: Money::new(micros, price.currency),
        resource,
    })
}

/// What the request of an agreement would cost at least on each resource that meets its conditions, wherever it would lie in its
/// window, in the currency of its price. Where it was given another shape, that counts as much as the one that it was priced for.
fn rebooking_prices_for_fee(view: View<'_>, agreement: &Agreement, need: &Need<'_>) -> Vec<(i64, usize)> {
    let (shape, window) = (need.shapes[0], need.window);
    let payer = Payer::of_agreement(agreement);
    let currency = agreement.price.map(|price| price.currency);
    // There may be a thousand sizes, and ten thousand resources that are alike for them.
    let mut freedoms = BTreeMap::new();
    let able = resource_choice::hopeful_resource_choices(view.schedules, need, shape, usize::MAX).into_iter();
    let priced = able.filter_map(|at| {
        let Shape { nodes, duration } = view.schedules.foreseen_shortest(at, need, shape)?;
        let on = &view.schedules.get(at)?.resource;
        if on.is_peer() || window.duration() < duration {
            return None;
        }
        let latest = Interval::of(window.end - duration, duration);
        let freedom = match payer.shapes.alike_on(on) {
            Some(alike) => *freedoms.entry(alike).or_insert_with(|| payer.shapes.on(on)),
            None => payer.shapes.on(on),
        };
        let mut priced = Priced {
            freedom,
            ..Priced::rigid(payer, (latest, nodes), window)
        };
        let present = agreement.node_seconds();
        if agreement.slots.is_split() {
            priced.node_seconds = present;
        }
        priced.node_seconds = priced.node_seconds * agreement.priced_node_seconds() / present.max(1);
        let price = placement_prices::placement_price(view, at, priced)?;
        (Some(price.currency) == currency).then_some((price.micros, at))
    });
    priced.collect()
}

/// Whether a resource would take the request of an agreement that is out of the plan: as the plan stands, or where others move.
fn has_room_for_rebooking(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    (need, others_may_move): (&Need<'_>, bool),
) -> bool {
    let (shape, window) = (need.shapes[0], need.window);
    let shortest = search.schedules.foreseen_shortest(at, need, shape);
    let Some((resource_plan, shortest)) = search.schedules.get(at).zip(shortest) else {
        return false;
    };
    let tree = resource_plan.schedule.tree();
    // Where it has not begun, its own place is free.
    if resource_plan.resource.name == agreement.resource && !agreement.is_being_carried_out()
        || tree
            .latest_fit(shortest.nodes, shortest.duration, window)
            .is_some()
    {
        return true;
    }
    if agreement.slots.is_split() {
        // In other pieces at best.
        let whole = u128::from(tree.capacity()) * u128::from(window.duration().max(0).unsigned_abs());
        return whole.saturating_sub(tree.busy_area(window).into()) >= agreement.node_seconds();
    }
    let (request, now) = (need.request(shortest), search.present_second());
    // With a budget it could be booked for where it costs least.
    let last = Request {
        ready: window.end - shortest.duration,
        ..request
    };
    let mut fits = |request: &Request| search.schedules.would_start(at, now, request).is_some();
    others_may_move
        && (fits(&request) || fits(&last) || admit::displace_to_admit(search, at, need, shape).is_some())
}

/// By how much a price is more than that of the cheapest rebooking.
fn cheaper_by(price: Money, rebooking: Option<&Rebooking>) -> i64 {
    rebooking.map_or(0, |rebooking| (price.micros - rebooking.price.micros).max(0))
}

/// A part of an amount, to the nearest millionth.
fn part(amount: Money, fraction: Fraction) -> i64 {
    part_of_amount(amount, fraction.numerator.into(), fraction.denominator.into()).micros
}

fn fee_percent_in_words(part: Fraction) -> String {
    format!(
        "{} %",
        100.0 * f64::from(part.numerator) / f64::from(part.denominator)
    )
}

#[cfg(test)]
mod tests;
