//! The end of a slot that has begun is moved: the possible offers, with their prices.
//!
//! Running work stays where it is and goes on. So no place is searched for: its own nodes are free for longer, or others
//! can make room on as many, or the slot can be made as long as there is room.

use domain::agreement::{Agreement, Job, Money, OfferKind, OfferTerms, Shape, part_of_amount};
use domain::resources::Scaling;
use scheduler::refusal::Relaxation;
use scheduler::{Interval, Rate, Reason, Seconds, Time};

use crate::context::{Search, View};
use crate::error::{Error, Result};
use crate::limits::{quotas, window};
use crate::overruns::TOLD_BEFORE;
use crate::placement::eligible_resources;
use crate::placement::find::find_part_on_other_resource;
use crate::prices::budgets::is_within_budget;
use crate::prices::payer::Payer;
use crate::prices::placement_prices;
use crate::prices::pricing::Priced;
use crate::refusal::{Refusal, bare_refusal, quota_exceeded};
use crate::request::Request;
use crate::schedules::need::request_of_agreement;
use crate::table::candidates::{
    Candidate, HOLD_MIN, PHI_EPSILON, QuoteOffers, candidate_price_difference, candidate_price_with_fee,
    coarse_candidate_instant, last_candidate_instant_that, ratio,
};
use crate::table::quote::Quote;
use crate::table::{candidates, fees, replace};

/// The parts that may not change any more.
const GOES_ON: &str = "being carried out: only its end and its deadline can change";
/// Why there is no offer of our own for an agreement that runs at a peer.
const RUNS_AT_PEER: &str = "another domain carries it out, and offers no such change";

/// The possible offers in place of an agreement with a slot that has begun. The agreement is out of the plan
/// meanwhile.
pub(crate) fn quote_other_end_of_begun(
    search: &mut Search<'_>,
    ask: &QuoteOffers,
    expires: Time,
    old: &Agreement,
) -> Result<Result<Quote, Refusal>> {
    if !goes_on_to_other_end(old, &ask.proposal) {
        return Err(Error::Conflict(GOES_ON));
    }
    if search.schedules.is_at_peer(old) {
        return Ok(Err(bare_refusal(Reason::NoCapacityInWindow, RUNS_AT_PEER)));
    }
    Ok(quote_other_end(search, ask, expires, old))
}

/// How long all slots of an agreement have to be together where its work takes this long.
fn seconds_to_wanted_end(old: &Agreement, duration: Seconds, rate: Rate, by_law: bool) -> Seconds {
    let mut shapes = old.constraints.shapes.iter();
    let whole = shapes.find(|shape| shape.nodes == old.nodes());
    match whole.filter(|_| by_law && old.constraints.pieces_differ) {
        // The law says how long the whole work takes, and its pieces together take as much longer, or less long.
        Some(whole) => find_part_on_other_resource(old.planned_seconds(), duration, whole.at(rate).duration)
            .unwrap_or(duration),
        None => duration,
    }
}

fn quote_other_end(
    search: &mut Search<'_>,
    ask: &QuoteOffers,
    expires: Time,
    old: &Agreement,
) -> Result<Quote, Refusal> {
    let now = search.present_second();
    let mut proposal = ask.proposal.clone();
    // Running work keeps its nodes, and a part of its time is over: the sizes that a quota leaves are no help.
    quotas::limit_to_quota_horizon(search.view(), &mut proposal)?;
    quotas::limit_to_node_hour_quota(search.view(), &mut proposal, Some(old))?;
    let shape = proposal.shapes.iter().find(|shape| shape.nodes == old.nodes());
    let place = search.schedules.place_of(&old.resource);
    let place_and_rate = place.and_then(|at| Some((at, search.schedules.get(at)?.resource.rate)));
    let Some((shape, (at, rate))) = shape.zip(place_and_rate) else {
        return Err(quota_exceeded("its size is beyond what its party may have"));
    };
    let planned = old.placement();
    let duration = proposal.scaling.shape(*shape, rate).duration;
    let by_law = proposal.scaling == Scaling::ReferenceRate;
    let wanted = seconds_to_wanted_end(old, duration, rate, by_law);
    let end = planned.end + (wanted - old.planned_seconds());
    let last = old.slots.len() - 1;
    if last >= old.slots_begun() && end <= old.slots[last].placement.start {
        return Err(bare_refusal(
            Reason::WindowContradictory,
            "its last piece would have no time",
        ));
    }
    let until = (now + search.settings.negotiation.hold)
        .min(expires)
        .min(planned.end.min(end) - TOLD_BEFORE);
    if until - now < HOLD_MIN {
        let why = "its slot is, or would be, over before what runs could be told";
        return Err(bare_refusal(Reason::WindowInThePast, why));
    }
    // The rest of it is treated as a new request: it has to lie inside the window and the horizon.
    let rest = Request {
        shapes: vec![Shape {
            nodes: old.nodes(),
            duration: end - now,
        }],
        scaling: Scaling::Contract,
        ready: None,
        ..proposal.clone()
    };
    let deadline = window::window_within_limits(search.view(), &rest)?.end;
    check_end_may_change(search.view(), old, end)?;
    for index in old.slots_over()..last {
        if let Some((_, number)) = search.placement.planned_slot(search.schedules, old, index) {
            replace::put_replaced_slot_back(search, at, old, index, number);
        }
    }
    let reached = reached_end(search, at, old, end);
    let fits = reached >= end;
    let told = search.settings.refusals;
    let reached = if fits {
        end
    } else {
        coarse_candidate_instant(reached, told.coarsen)
    };
    let deviation = ratio(end - reached, duration);
    // Longer than it is, or it is no offer.
    let worth_offering = told.relaxations && reached > planned.end;
    let near = deviation <= candidates::phi_max_of_candidates(search.view(), &proposal) + PHI_EPSILON;
    if !(fits || worth_offering && near) {
        let longest = worth_offering.then_some(Relaxation::Duration(duration - (end - reached)));
        let why = "its nodes are promised to others after its slot";
        return Err(Refusal {
            relaxations: longest.into_iter().collect(),
            ..bare_refusal(Reason::NoCapacityInWindow, why)
        });
    }
    let price = price_of_changed_end(search.view(), at, old, reached)?;
    let rebooking = fees::cheapest_rebooking_for_fee(search, old);
    let fee = fees::change_fee(search.view(), old, price, rebooking.as_ref());
    let slots = old.slots.ending(reached);
    let terms = OfferTerms {
        peer: None,
        resource: old.resource.clone(),
        energy: placement_prices::placement_energy(search.view(), &old.resource, &slots),
        slots,
        ready: proposal.ready.unwrap_or(old.ready).min(planned.start),
        deadline,
        kept_until: reached,
        deviation,
        kind: if fits {
            OfferKind::Exact
        } else {
            OfferKind::Shorter
        },
        confidence: None,
        price,
        difference: candidate_price_difference(price, old.price),
        fee: fee.as_ref().map(|fee| fee.amount),
        fee_why: fee.and_then(|fee| fee.why),
        discounts: None,
        promise: None,
    };
    check_budget_of_changed_end(proposal.budget, &terms)?;
    Ok(Quote::of(vec![Candidate::own(terms, until)]))
}

/// Refuses a later end on a frozen resource, which takes nothing new.
fn check_end_may_change(view: View<'_>, old: &Agreement, end: Time) -> Result<(), Refusal> {
    let frozen = eligible_resources::ineligible_as_frozen_in_words(view, |each| each.name == old.resource);
    let frozen = frozen.filter(|_| end > old.placement().end);
    frozen.map_or(Ok(()), |why| Err(bare_refusal(Reason::ResourceNotOffered, why)))
}

/// How far towards `end` the slot of an agreement that is out of the plan can reach: with others moving inside their
/// windows all the way, or else as long as there is room as the plan stands.
pub(crate) fn reached_end(search: &mut Search<'_>, at: usize, old: &Agreement, end: Time) -> Time {
    let now = search.present_second();
    if end <= old.placement().end {
        return end;
    }
    let now = match search.schedules.get(at) {
        Some(resource_plan) => resource_plan.schedule.now().max(now),
        None => return old.placement().end,
    };
    let more = |end: Time| Interval::new(old.placement().end, end);
    let last = old.slots[old.slots.len() - 1];
    // A slot that is to come has no nodes of its own yet.
    let runs = old.has_nodes() && !old.has_more_slots();
    let ready = if runs { now } else { last.placement.start };
    let rest = scheduler::Request {
        ready,
        deadline: end,
        duration: end - ready,
        nodes: last.nodes,
        ..request_of_agreement(old, search.placement.next_number())
    };
    if search.life.may_keep_held_nodes_until(search.schedules, old, end)
        && search.schedules.would_start(at, now, &rest).is_some()
    {
        return end;
    }
    let Some(one_resource_plan) = search.schedules.get(at) else {
        return old.placement().end;
    };
    let tree = one_resource_plan.schedule.tree();
    let free = |end: Time| {
        tree.min_free(more(end)) >= last.nodes
            && search.life.may_keep_held_nodes_until(search.schedules, old, end)
    };
    last_candidate_instant_that(old.placement().end, end, free)
}

/// The price, with another end, of an agreement that is out of the plan. Where it is longer, the added time costs the
/// present price of such a slot. Where it is shorter, the price falls in proportion, but never by more than that
/// present price: else it would pay to make a slot longer and shorter again. None where it has no price.
///
/// # Errors
/// The refusal of an end without a price: what has a price does not lose it.
fn price_of_changed_end(
    view: View<'_>,
    at: usize,
    old: &Agreement,
    end: Time,
) -> Result<Option<Money>, Refusal> {
    let changed = |price| {
        let words = "the present prices give it none in the currency of its own";
        changed_price(view, at, old, price, end).ok_or_else(|| bare_refusal(Reason::PolicyDenied, words))
    };
    old.price.map(changed).transpose()
}

/// The same of an agreement with a price; none where it has none by the price list as it is now, or in another currency.
fn changed_price(view: View<'_>, at: usize, old: &Agreement, price: Money, end: Time) -> Option<Money> {
    // Overrun is charged by its use, or bought by this change.
    let before = old.placement().end - old.overrun();
    let slot = Interval::new(before.min(end), before.max(end));
    let nodes = old.slots.last().map_or(0, |last| last.nodes);
    // Time that is added or given up has no other shape.
    let priced = Priced::rigid(Payer::of_agreement(old), (slot, nodes), slot);
    let more = placement_prices::placement_price(view, at, priced)?;
    let micros = if end <= before {
        let agreed = i64::try_from(old.node_seconds()).unwrap_or(i64::MAX);
        let given_up = i64::from(nodes).saturating_mul(before - end);
        let share = part_of_amount(price, agreed.saturating_sub(given_up), agreed);
        share.micros.max(price.micros.checked_sub(more.micros)?)
    } else {
        price.micros.checked_add(more.micros)?
    };
    (more.currency == price.currency).then_some(Money { micros, ..price })
}

/// Refuses a change that costs more than its budget, with its fee.
fn check_budget_of_changed_end(budget: Option<Money>, terms: &OfferTerms) -> Result<(), Refusal> {
    match (budget, candidate_price_with_fee(terms)) {
        (Some(budget), Some(costs)) if !is_within_budget(costs, budget) => Err(Refusal {
            lowest_budget: Some(costs),
            ..bare_refusal(Reason::BudgetTooLow, "it would cost more than its budget")
        }),
        _ => Ok(()),
    }
}

/// Whether a proposal keeps the parts of an agreement that cannot change once its slot has begun: the job, the resource, the number
/// of nodes, and the start.
fn goes_on_to_other_end(old: &Agreement, request: &Request) -> bool {
    request.job.as_ref().map(Job::first_time) == old.job.as_ref().map(Job::first_time)
        && request.filters == old.constraints.filters
        && request.shapes.iter().any(|shape| shape.nodes == old.nodes())
        && request.ready.is_none_or(|ready| ready <= old.placement().start)
}

#[cfg(test)]
mod tests {
    use domain::agreement::{Currency, NegotiationInstance, Slots};
    use domain::resources::Resource;
    use scheduler::Fraction;
    use uuid::Uuid;

    use super::*;
    use crate::tests::harness::{Domain, proposal, work};
    use crate::{OfferOrigin, Pricing, Weights};

    #[test]
    fn a_slot_that_is_made_longer_and_shorter_again_costs_no_less() {
        let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
        let mut pricing = Pricing::flat(100_000_000, Currency::parse("EUR").unwrap());
        pricing.busy = Fraction::percent(60);
        domain.settings.pricing = Some(pricing);
        domain.place(proposal(2, 1_000, (0, 1_000))).unwrap();
        let old = domain.place(proposal(2, 1_000, (0, 1_000))).unwrap().agreement;
        let mut cost = |agreement: &Agreement, end| {
            let price =
                domain.decide(|decider| price_of_changed_end(decider.view(), 0, agreement, Time(end)));
            price.unwrap()
        };
        let longer = cost(&old, 2_000).unwrap();
        let more = longer.micros - old.price.unwrap().micros;
        assert!(
            more < old.price.unwrap().micros,
            "it is cheaper where less is going on"
        );
        let prolonged = Agreement {
            slots: Slots::one((Interval::new(Time(0), Time(2_000)), 2)),
            duration: 2_000,
            price: Some(longer),
            ..old.clone()
        };
        assert_eq!(cost(&prolonged, 1_000), old.price);
        let half = cost(&old, 500).unwrap();
        assert!(half.micros * 2 >= old.price.unwrap().micros, "{half}");
        assert!(half.micros < old.price.unwrap().micros, "{half}");
    }
    #[test]
    fn another_end_has_no_price_of_another_currency_and_is_not_free() {
        let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
        let list = |currency| Pricing::flat(100_000_000, Currency::parse(currency).unwrap());
        domain.settings.pricing = Some(list("EUR"));
        let runs = domain.place(work(2, 1_000, (1, 3_000))).unwrap().agreement;
        domain.begin(1);
        let negotiation = Uuid::from_u128(1);
        let instance = NegotiationInstance {
            id: negotiation,
            party: runs.party.clone(),
            agreement: Some(runs.id),
            created: 0,
            expires: Time(900),
            ended: None,
            proposed: None,
        };
        domain.state.table.open(instance, []);
        let mut reason = |list: Option<Pricing>, duration| {
            domain.settings.pricing = list;
            let ask = QuoteOffers {
                about: OfferOrigin::Negotiation(negotiation),
                proposal: work(2, duration, (1, 3_000)),
                others: None,
                weights: Weights::default(),
            };
            let quote = domain.decide(|decider| decider.decide(ask)).unwrap();
            let offered = quote.candidates.first();
            assert!(
                offered.is_none_or(|offered| offered.terms.price.is_some()),
                "{quote:?}"
            );
            quote.refusal.map(|refusal| refusal.reason)
        };
        for duration in [1_001, 999] {
            assert_eq!(reason(Some(list("EUR")), duration), None);
            for other in [Some(list("USD")), None] {
                assert_eq!(reason(other, duration), Some(Reason::PolicyDenied));
            }
        }
    }
}
