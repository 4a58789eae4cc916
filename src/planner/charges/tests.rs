//! Whatever the price list, the plan and the time: nobody gains by ending an agreement and booking it again, nor by
//! changing it into what it is already.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::tests::trial::{Domain, of, price_list, wish};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: RngSeed::Fixed(462), ..ProptestConfig::default() })]

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
            others.extend(domain.place(0, of(other, None)).ok());
        }
        let Ok(mine) = domain.place(0, of(own, None)) else { return Ok(()) };
        for other in after {
            others.extend(domain.place(0, of(other, None)).ok());
        }
        let mine = mine.agreement;
        let price = mine.price.unwrap();
        // Some leave, so that there is less going on than when it was priced.
        for other in others.into_iter().take(leaving) {
            domain.terminate(0, other.agreement.id);
        }
        let placed = domain.plan.get(mine.id).unwrap().placement;
        let now = wait.min(placed.start.seconds() - 1).max(0);
        let (change, _) = domain.decide(now, |decider| {
            let same = decider.cheaper_by(&mine, price);
            let next = Money { micros: price.micros - same, ..price };
            (next, decider.change_fee(&mine, next).unwrap())
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
            if let Ok(again) = domain.place(now, of(own, budget)) {
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
    let mut domain = Domain::new(super::super::Pricing::flat(0, super::super::tests::trial::eur()));
    let mine = domain.place(0, of((1, 10, 5, 5), None)).unwrap().agreement;
    assert_eq!(mine.price.unwrap().micros, 0);
    assert_eq!(domain.terminate(0, mine.id), []);
}
