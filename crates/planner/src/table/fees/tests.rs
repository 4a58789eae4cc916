//! With any price list, plan and time, no party gains by ending an agreement and booking it again, nor by changing it
//! into its present form.

use domain::agreement::{
    Currency, Filter, NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState, Posting,
    PostingKind, ServiceState,
};
use domain::resources::Resource;
use proptest::prelude::*;
use scheduler::{Interval, Time};
use uuid::Uuid;

use super::*;
use crate::commands::BeginDue;
use crate::table::fees;
use crate::tests::price_plan::{Domain, HORIZON, eur, price_list, proposal, wish, wished_request};
use crate::{
    ExchangeOffers, OfferOrigin, OfferWords, Pricing, Quote, QuoteOffers, Request, Settings, State, Weights,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn cancelling_and_booking_again_at_the_same_instant_never_pays(
        pricing in price_list(),
        fees in (0..101_u32, 0..101_u32),
        before in prop::collection::vec(wish(), 0..12),
        own in wish(),
        after in prop::collection::vec(wish(), 0..6),
        leaving in 0..18_usize,
        wait in 0..100_i64,
        share in 50..110_i64,
    ) {
        let mut domain = Domain::new(pricing);
        let list = domain.settings.pricing.as_mut().unwrap();
        (list.cancellation, list.change) = (Fraction::percent(fees.0), Fraction::percent(fees.1));
        let mut others = Vec::new();
        for other in before {
            others.extend(domain.place(0, wished_request(other, None)).ok());
        }
        let Ok(mine) = domain.place(0, wished_request(own, None)) else { return Ok(()) };
        for other in after {
            others.extend(domain.place(0, wished_request(other, None)).ok());
        }
        let mine = mine.agreement;
        let price = mine.price.unwrap();
        // Some leave, so that there is less going on than when it was priced.
        for other in others.into_iter().take(leaving) {
            domain.terminate(0, other.agreement.id);
        }
        let placed = domain.state.agreements.get(mine.id).unwrap().placement();
        let now = wait.min(placed.start.seconds() - 1).max(0);
        let (change, _) = domain.decide(now, |decider| {
            let same = fees::cheapest_rebooking_for_fee(&mut decider.search(), &mine);
            let next = Money { micros: price.micros - cheaper_by(price, same.as_ref()), ..price };
            (next, fees::change_fee(decider.view(), &mine, Some(next), same.as_ref()).unwrap().amount)
        });
        let (next, fee) = change;
        prop_assert!(next.micros + fee.micros >= price.micros, "a change to the same: {next} and {fee}, not {price}");
        let posted = domain.terminate(now, mine.id);
        let fee: i64 = posted
            .iter()
            .filter(|posting| posting.kind == PostingKind::Cancellation)
            .map(|posting| posting.amount.micros)
            .sum();
        prop_assert!((0..=price.micros).contains(&fee));
        for budget in [None, Some(price.micros * share / 100)] {
            if let Ok(again) = domain.place(now, wished_request(own, budget)) {
                let again = again.agreement;
                let paid = fee + again.price.unwrap().micros;
                prop_assert!(paid >= price.micros, "{paid} of {price}, the fee being {fee}");
                domain.terminate(now, again.id);
            }
        }
    }
}

#[test]
fn nothing_is_charged_for_what_costs_nothing() {
    let mut domain = Domain::new(crate::Pricing::flat(0, crate::tests::price_plan::eur()));
    let mine = domain
        .place(0, wished_request((1, 10, 5, 5), None))
        .unwrap()
        .agreement;
    assert_eq!(mine.price.unwrap().micros, 0);
    assert_eq!(domain.terminate(0, mine.id), []);
}

/// Two resources with a node each: an hour costs a thousandth of it on the second.
fn dear_and_cheap() -> Domain {
    let mut pricing = Pricing::flat(3_600_000, eur());
    pricing.cancellation = Fraction::percent(10);
    pricing.resources.insert("cheap".into(), 3_600);
    let resources = ["dear", "cheap"].map(|name| Resource::new(name, "local", 1));
    let mut settings = Settings::new(resources.to_vec(), HORIZON);
    settings.pricing = Some(pricing);
    let plan = State::rebuild(&settings, &settings.resources, Vec::new(), Vec::new(), Time(0)).unwrap();
    Domain {
        settings,
        state: plan,
    }
}

/// The fee for ending an agreement now, and its reason.
fn fee_for_ending(domain: &mut Domain, id: Uuid) -> (i64, String) {
    let mut posted = domain.terminate(0, id);
    posted.retain(|posted| posted.kind == PostingKind::Cancellation);
    assert_eq!(posted.len(), 1, "{posted:?}");
    let Posting { amount, detail, .. } = posted.remove(0);
    (amount.micros, detail)
}

#[test]
fn a_resource_where_an_agreement_may_not_lie_does_not_raise_the_fee_for_ending_it() {
    let mut domain = dear_and_cheap();
    let pinned = Request {
        filters: vec![Filter::of_resource("dear")],
        ..proposal(1, 40, WINDOW, None)
    };
    let pinned = domain.place(0, pinned).unwrap().agreement;
    let (fee, why) = fee_for_ending(&mut domain, pinned.id);
    assert_eq!(fee, 4_000, "a tenth of 40 seconds at a thousandth each");
    assert_eq!(
        why,
        "fee for ending it before its slot: 10 % of its price of 0.04 EUR"
    );
}

#[test]
fn only_a_resource_with_room_in_its_window_raises_the_fee_for_ending_an_agreement() {
    for (is_full, fee, why) in [
        (true, 4_000, "10 % of its price of 0.04 EUR"),
        (
            false,
            39_960,
            "the same would now cost 0.00004 EUR on cheap, 0.03996 EUR less than its price",
        ),
    ] {
        let mut domain = dear_and_cheap();
        let on = |resource: &str, duration| Request {
            filters: vec![Filter::of_resource(resource)],
            ..proposal(1, duration, WINDOW, None)
        };
        let before = domain.place(0, on("cheap", 45)).unwrap().agreement;
        let own = domain.place(0, proposal(1, 40, WINDOW, None)).unwrap().agreement;
        assert_eq!(own.resource, "dear");
        if !is_full {
            domain.terminate(0, before.id);
        }
        let (charged, said) = fee_for_ending(&mut domain, own.id);
        assert_eq!(charged, fee);
        assert_eq!(said, format!("fee for ending it before its slot: {why}"));
    }
}

#[test]
fn a_quote_for_a_change_says_why_its_fee_is_as_much() {
    let mut domain = dear_and_cheap();
    domain.settings.pricing.as_mut().unwrap().change = Fraction::percent(5);
    let pinned = |duration| Request {
        filters: vec![Filter::of_resource("dear")],
        ..proposal(1, duration, WINDOW, None)
    };
    let own = domain.place(0, pinned(40)).unwrap().agreement;
    let quote = quote(&mut domain, Some(own.id), pinned(20));
    let terms = &quote.candidates[0].terms;
    assert_eq!(terms.fee.unwrap().micros, 2_000 + 2_000);
    assert_eq!(
        terms.fee_why.as_deref(),
        Some("5 % of its price of 0.04 EUR and 10 % of the 0.02 EUR by which its price falls")
    );
}

#[test]
fn a_change_that_is_quoted_again_beside_its_own_hold_costs_the_same_at_the_same_place() {
    let mut domain = four_nodes(Pricing::flat(3_600_000, eur()));
    let mut settings = domain.settings.clone();
    settings.resources.push(Resource::new("other", "local", 4));
    let pricing = settings.pricing.as_mut().unwrap();
    pricing.busy = Fraction::percent(100);
    pricing.resources.insert("other".into(), 36_000_000);
    domain.state = State::rebuild(&settings, &settings.resources, Vec::new(), Vec::new(), Time(0)).unwrap();
    domain.settings = settings;
    let own = domain.place(0, proposal(2, 50, WINDOW, None)).unwrap().agreement;
    assert_eq!(own.resource, "only");
    let larger = proposal(4, 50, WINDOW, None);
    let first = quote(&mut domain, Some(own.id), larger.clone());
    hold(&mut domain, &first);
    let again = quote_in(&mut domain, (Uuid::from_u128(9), Some(own.id)), larger);
    assert_eq!(first.candidates[0].terms.resource, "only");
    assert_eq!(first.candidates[0].terms, again.candidates[0].terms);
}

const NEGOTIATION: Uuid = Uuid::from_u128(1);
/// The window of everything here.
const WINDOW: Interval = Interval::new(Time(100), Time(150));

/// Four nodes at such prices.
fn four_nodes(pricing: Pricing) -> Domain {
    let mut settings = Settings::new(vec![Resource::new("only", "local", 4)], HORIZON);
    settings.pricing = Some(pricing);
    let plan = State::rebuild(&settings, &settings.resources, Vec::new(), Vec::new(), Time(0)).unwrap();
    Domain {
        settings,
        state: plan,
    }
}

/// Asks for offers in a new negotiation of the party, about one of its agreements or about a new one.
fn quote(domain: &mut Domain, about: Option<Uuid>, request: Request) -> Quote {
    quote_in(domain, (NEGOTIATION, about), request)
}

/// The same in a negotiation of this id.
fn quote_in(domain: &mut Domain, (id, about): (Uuid, Option<Uuid>), request: Request) -> Quote {
    let instance = NegotiationInstance {
        id,
        party: request.party.clone(),
        agreement: about,
        created: 0,
        expires: Time(90),
        ended: None,
        proposed: None,
    };
    domain.state.table.open(instance, []);
    let ask = QuoteOffers {
        about: OfferOrigin::Negotiation(id),
        proposal: request,
        others: None,
        weights: Weights::default(),
    };
    domain.decide(0, |decider| decider.decide(ask.clone())).0.unwrap()
}

/// Has the first candidate held.
fn hold(domain: &mut Domain, quote: &Quote) {
    let said = |id, parent, state| {
        let candidate = quote
            .candidates
            .first()
            .filter(|_| parent == Some(Uuid::from_u128(2)));
        let offer = NegotiationOffer {
            id: Uuid::from_u128(id),
            negotiation: NEGOTIATION,
            name: id.to_string(),
            parent,
            creator: NegotiationRole::Responder,
            state,
            created: 0,
            expires: candidate.map(|candidate| candidate.expires),
            terms: candidate.map(|candidate| candidate.terms.clone()),
            refusal: None,
            held: None,
            released: None,
            agreement: None,
        };
        let document = String::new();
        OfferWords { offer, document }
    };
    let bargain = ExchangeOffers {
        opening: None,
        negotiation: NEGOTIATION,
        incoming: Some(said(2, None, OfferState::Solicited)),
        answers: vec![said(3, Some(Uuid::from_u128(2)), OfferState::Acceptable)],
        otherwise: OfferState::Rejected,
        idempotency: None,
    };
    let held = domain.decide(0, |decider| decider.decide(bargain)).0.unwrap();
    assert!(held[0].is_held(), "{held:?}");
}

#[test]
fn who_has_nodes_held_pays_no_smaller_fee_for_that() {
    let fee = |holding: bool| {
        let mut pricing = Pricing::flat(3_600_000, eur());
        pricing.busy = Fraction::percent(300);
        let mut domain = four_nodes(pricing);
        let others = Request {
            party: "biology".into(),
            ..proposal(3, 50, WINDOW, None)
        };
        let others = domain.place(0, others).unwrap().agreement;
        let mine = domain.place(0, proposal(1, 50, WINDOW, None)).unwrap().agreement;
        domain.terminate(0, others.id);
        if holding {
            let quote = quote(&mut domain, None, proposal(3, 50, WINDOW, None));
            hold(&mut domain, &quote);
        }
        let posted = domain.terminate(0, mine.id);
        let fees = posted
            .iter()
            .filter(|posted| posted.kind == PostingKind::Cancellation);
        fees.map(|fee| fee.amount.micros).sum::<i64>()
    };
    assert!(fee(false) > 0, "it would cost less now");
    assert_eq!(fee(true), fee(false));
}

/// What a party could let go of is no less free for it.
#[test]
fn who_has_a_cheap_resource_held_pays_no_smaller_fee_for_that() {
    let fee = |holding: bool| {
        let mut domain = dear_and_cheap();
        let on_cheap = Request {
            filters: vec![Filter::of_resource("cheap")],
            ..proposal(1, 45, WINDOW, None)
        };
        let others = domain.place(0, on_cheap.clone()).unwrap().agreement;
        let mine = domain.place(0, proposal(1, 40, WINDOW, None)).unwrap().agreement;
        domain.terminate(0, others.id);
        if holding {
            let quote = quote(&mut domain, None, on_cheap);
            hold(&mut domain, &quote);
        }
        fee_for_ending(&mut domain, mine.id).0
    };
    assert_eq!((fee(true), fee(false)), (39_960, 39_960));
}

#[test]
fn a_budget_has_to_hold_the_fee_of_a_change_besides_its_price() {
    let mut pricing = Pricing::flat(3_600_000, eur());
    pricing.change = Fraction::percent(50);
    let mut domain = four_nodes(pricing);
    let mine = domain.place(0, proposal(1, 20, WINDOW, None)).unwrap().agreement;
    let mut ask = |budget| quote(&mut domain, Some(mine.id), proposal(1, 40, WINDOW, budget));
    let free = ask(None).candidates.remove(0).terms;
    let (price, fee) = (free.price.unwrap().micros, free.fee.unwrap().micros);
    assert_eq!(fee, mine.price.unwrap().micros / 2);
    for budget in [price, price + fee - 1] {
        let refusal = ask(Some(budget)).refusal.unwrap();
        assert_eq!(refusal.lowest_budget.unwrap().micros, price + fee, "{refusal}");
        assert!(refusal.binding.contains("the fee for the change"), "{refusal}");
    }
    let enough = ask(Some(price + fee));
    assert_eq!((enough.candidates.len(), enough.refusal), (1, None));
}

/// The service was down for all of its slot.
#[test]
fn who_ends_what_was_not_begun_at_the_start_that_was_promised_pays_no_fee() {
    let mut pricing = Pricing::flat(3_600_000, eur());
    pricing.cancellation = Fraction::percent(10);
    let mut domain = four_nodes(pricing);
    let own = domain.place(0, proposal(2, 20, WINDOW, None)).unwrap().agreement;
    assert_eq!(own.placement().start, WINDOW.start);
    let behind = Interval::new(Time(120), Time(130));
    domain.place(0, proposal(4, 10, behind, None)).unwrap();
    let (begun, _) = domain.decide(121, |decider| {
        decider.state.schedules.advance(Time(121));
        decider.decide(BeginDue).map(drop)
    });
    begun.unwrap();
    let waits = domain.state.agreements.get(own.id).unwrap();
    assert_eq!(
        (waits.service, waits.placement().start),
        (ServiceState::NotReady, behind.end)
    );
    assert_eq!(domain.terminate(122, own.id), []);
}

/// The price list has another currency than the agreement's price.
#[test]
fn amounts_of_another_currency_are_not_compared() {
    let mut domain = dear_and_cheap();
    let own = domain.place(0, proposal(1, 40, WINDOW, None)).unwrap().agreement;
    let usd = Currency::parse("USD").unwrap();
    domain.settings.pricing.as_mut().unwrap().currency = usd;
    let change_fee = |domain: &mut Domain| {
        let less = Some(Money::new(1, usd));
        domain
            .decide(0, |decider| fees::change_fee(decider.view(), &own, less, None))
            .0
    };
    assert_eq!(change_fee(&mut domain).unwrap().amount.micros, 0);
    domain.settings.pricing.as_mut().unwrap().change = Fraction::percent(5);
    assert_eq!(change_fee(&mut domain).unwrap().amount, Money::new(2_000, eur()));
    assert_eq!(
        fee_for_ending(&mut domain, own.id).0,
        4_000,
        "a tenth, by the rule"
    );
}
