//! Suggestions: they would make room for others, nothing has moved for them, and sometimes there is none.

use domain::agreement::Money;
use domain::resources::Resource;
use proptest::prelude::*;
use scheduler::{Fraction, Interval, Seconds, Time};

use super::*;
use crate::commands::Place;
use crate::schedules::need::request_of_agreement;
use crate::table::{propose, replace};
use crate::tests::price_plan::{Domain, eur, price_list, proposal, wish, wished_request};
use crate::{OfferOrigin, Pricing, Request, State, Weights};

/// Five nodes, filled from 100 to 200 by a party that agreed to no other time.
fn filled(moves_max: usize) -> Domain {
    let mut domain = Domain::new(Pricing::flat(0, eur()));
    domain.settings.resources = vec![Resource::new("large", "local", 5)];
    domain.state = State::rebuild(
        &domain.settings,
        &domain.settings.resources,
        Vec::new(),
        Vec::new(),
        Time(0),
    )
    .unwrap();
    domain.settings.negotiation.hold = 10;
    domain.settings.proposals.moves_max = moves_max;
    domain.place(0, by("physics", 5, 100, (100, 200))).unwrap();
    domain
}

fn by(party: &str, nodes: u32, duration: Seconds, window: (i64, i64)) -> Request {
    Request {
        party: party.into(),
        ..proposal(
            nodes,
            duration,
            Interval::new(Time(window.0), Time(window.1)),
            None,
        )
    }
}

/// The slots that are suggested after a proposal was refused.
fn suggested(domain: &mut Domain, refused: Request) -> Vec<Option<Interval>> {
    domain.place(0, refused).unwrap_err();
    domain
        .state
        .table
        .take_suggestions()
        .iter()
        .map(|suggested| suggested.slot)
        .collect()
}

#[test]
fn the_slot_nearest_to_its_window_is_suggested_to_who_stands_in_the_way() {
    let mut domain = filled(1);
    // After the end of the new request; before it there is not enough time.
    let later = Interval::of(Time(150), 100);
    let newcomer = by("biology", 1, 60, (90, 180));
    assert_eq!(suggested(&mut domain, newcomer), [Some(later)]);
    let other = by("chemistry", 1, 50, (110, 190));
    assert_eq!(suggested(&mut domain, other).len(), 1, "one at a time");
}

#[test]
fn nothing_is_suggested_that_helps_nobody_or_that_nobody_may_be_asked() {
    let newcomer = || by("biology", 1, 60, (110, 190));
    assert_eq!(suggested(&mut filled(1), newcomer()).len(), 1);
    assert_eq!(suggested(&mut filled(0), newcomer()), [], "the provider does not");
    let own = by("physics", 1, 60, (110, 190));
    assert_eq!(suggested(&mut filled(1), own), [], "it is its own agreement");
    let mut near = filled(1);
    near.settings.refusals.alternatives_phi = Fraction::percent(20);
    assert_eq!(suggested(&mut near, newcomer()), [], "it would lie too far away");
    let mut full = filled(1);
    for (duration, window) in [(90, (10, 100)), (200, (200, 400))] {
        full.place(0, by("physics", 5, duration, window)).unwrap();
    }
    assert_eq!(
        suggested(&mut full, newcomer()),
        [],
        "there is no room for it elsewhere"
    );
}

#[test]
fn a_slot_that_is_suggested_is_told_in_the_providers_steps() {
    let mut domain = filled(1);
    domain.settings.refusals.coarsen = 60;
    let newcomer = by("biology", 1, 60, (90, 180));
    let later = Interval::of(Time(180), 100);
    assert_eq!(suggested(&mut domain, newcomer), [Some(later)]);
}

#[test]
fn what_there_is_instead_of_a_broken_promise_is_offered_however_dear_it_has_become() {
    let mut domain = Domain::new(Pricing::flat(1_000_000, eur()));
    let asked = by("physics", 1, 36, (100, 136));
    let agreement = domain.place(0, asked.clone()).unwrap().agreement;
    domain.settings.pricing = Some(Pricing::flat(3_000_000, eur()));
    let suggestion = Suggestion::instead_of(agreement.clone());
    let ask = QuoteOffers {
        about: OfferOrigin::Proposal(Box::new(suggestion.clone())),
        proposal: Request {
            budget: agreement.price,
            deadline: None,
            ..asked
        },
        others: None,
        weights: Weights::default(),
    };
    let (quote, _) = domain.decide(0, |decider| {
        propose::quote_proposal(&mut decider.search(), &ask, &suggestion)
    });
    let prices: Vec<_> = quote
        .unwrap()
        .candidates
        .iter()
        .map(|candidate| candidate.terms.price)
        .collect();
    assert!(!prices.is_empty());
    assert!(prices.iter().all(|price| *price == agreement.price), "{prices:?}");
}

#[test]
fn what_is_proposed_costs_no_more_than_was_agreed_less_the_discount() {
    let money = |micros| Money::new(micros, eur());
    let own = |before, percent| CandidatePrice {
        before,
        discount: Fraction::percent(percent),
    };
    for (own, price, expected) in [
        (own(Some(money(400)), 25), 500, 300),
        (own(Some(money(400)), 25), 200, 150),
        (own(Some(money(400)), 0), 500, 400),
        (own(None, 10), 500, 450),
        (own(Some(money(400)), 100), 500, 0),
    ] {
        assert_eq!(own.of(money(price)), money(expected), "{own:?} of {price}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Every suggestion makes room for the new request, and the search for it has changed nothing.
    #[test]
    fn a_move_that_is_suggested_lets_the_newcomer_in(
        pricing in price_list(),
        wishes in prop::collection::vec(wish(), 4..40),
    ) {
        let mut domain = Domain::new(pricing);
        domain.settings.negotiation.hold = 10;
        domain.settings.proposals.moves_max = 1;
        for (number, wish) in wishes.into_iter().enumerate() {
            let party = ["physics", "biology"][number % 2];
            let proposal = Request { party: party.into(), ..wished_request(wish, None) };
            let before: Vec<_> = placements(&domain);
            if domain.place(0, proposal.clone()).is_ok() {
                continue;
            }
            prop_assert_eq!(before, placements(&domain));
            let Some(Suggestion { agreement, slot, .. }) = domain.state.table.take_suggestions().pop() else {
                continue;
            };
            let slot = slot.expect("a move has a slot");
            prop_assert!(agreement.party != party && slot.start >= Time(10));
            let (admitted, _) = domain.decide(0, |decider| {
                let at = decider.state.schedules.place_of(&agreement.resource).unwrap();
                let lifted = replace::lift_replaced_agreement(&mut decider.search(), agreement.id).unwrap();
                let request = request_of_agreement(&lifted, u64::MAX);
                let moved = decider.state.schedules.put(at, Time(0), &request.fixed_to(slot.start), slot.start);
                let admitted = decider.decide(Place(proposal)).is_ok();
                decider.state.schedules.vacate(at, Time(0), u64::MAX);
                moved && admitted
            });
            prop_assert!(admitted, "{} in {:?}", agreement.id, slot);
            return Ok(());
        }
    }
}

/// The places of all agreements.
fn placements(domain: &Domain) -> Vec<(uuid::Uuid, Interval)> {
    let mut all: Vec<_> = domain
        .state
        .agreements
        .iter()
        .map(|agreement| (agreement.id, agreement.placement()))
        .collect();
    all.sort_unstable_by_key(|(id, _)| *id);
    all
}
