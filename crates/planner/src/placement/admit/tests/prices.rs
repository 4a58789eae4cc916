//! Prices of admitted requests with several sizes.

use super::*;

/// The price in the quote for a request, none where it is refused, and the price of its agreement.
fn quoted_and_placed(domain: &mut Domain, request: Request) -> (Option<Money>, Option<Money>) {
    let ask = QuoteOffers {
        about: OfferOrigin::Negotiation(Uuid::nil()),
        proposal: request.clone(),
        others: None,
        weights: Weights::default(),
    };
    let quoted = domain.decide(|decider| {
        let context = candidates::candidate_context(decider.view(), &ask, Time(60), None);
        quote::quote_request(&mut decider.search(), &context, &mut None)
    });
    let quoted = quoted
        .ok()
        .map(|quoted| quoted.candidates[0].terms.price.unwrap());
    let placed = domain.place(request).ok();
    (quoted, placed.map(|accepted| accepted.agreement.price.unwrap()))
}

fn of_sizes(sizes: &[(u32, i64)], window: (i64, i64)) -> Request {
    let shape = |(nodes, duration): &(u32, i64)| Shape {
        nodes: *nodes,
        duration: *duration,
    };
    Request {
        shapes: sizes.iter().map(shape).collect(),
        scaling: Scaling::ReferenceRate,
        ..proposal(1, 1, window)
    }
}

#[test]
fn sizes_that_a_quota_forbids_lower_neither_the_price_of_a_quote_nor_of_an_agreement() {
    let eur = Currency::parse("EUR").unwrap();
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 2 * DAY);
    let mut pricing = Pricing::flat(1_000_000, eur);
    pricing.late = Fraction::percent(60);
    settings.pricing = Some(pricing);
    settings.quotas.node_hours = Some(3);
    let mut domain = Domain::with(settings);
    // Four node-hours, and three.
    let request = of_sizes(&[(4, 3_600), (2, 5_400)], (DAY, DAY + 14_400));
    let price = Some(Money::new(3_000_000, eur));
    assert_eq!(quoted_and_placed(&mut domain, request), (price, price));
}

#[test]
fn a_request_of_ever_so_many_shapes_has_its_price_in_a_quote_and_in_an_agreement() {
    let eur = Currency::parse("EUR").unwrap();
    let mut settings = Settings::new(vec![Resource::new("local", "local", 40)], 60 * DAY);
    settings.pricing = Some(Pricing::flat(2_000_000_000, eur));
    let mut domain = Domain::with(settings);
    let sizes: Vec<_> = (1..=40).rev().map(|nodes| (nodes, 30 * DAY)).collect();
    let request = Request {
        preemption: Preemption::new(10, 50_000, true),
        ..of_sizes(&sizes, (DAY, 32 * DAY))
    };
    let cuts = request.preemption.unwrap();
    assert_eq!(cuts.flexibility(40), u64::MAX);
    let price = Some(Money::new(40 * 720 * 2_000_000_000, eur));
    assert_eq!(quoted_and_placed(&mut domain, request), (price, price));
}

#[test]
fn what_costs_more_than_an_amount_can_hold_is_neither_offered_nor_accepted() {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 1_000_000)], 400 * DAY);
    settings.pricing = Some(Pricing::flat(u32::MAX, Currency::parse("EUR").unwrap()));
    let mut domain = Domain::with(settings);
    let request = proposal(1_000_000, 150 * DAY, (DAY, 200 * DAY));
    assert_eq!(quoted_and_placed(&mut domain, request), (None, None));
}
