//! The value of flexibility.

use proptest::prelude::*;
use scheduler::Fraction;
use scheduler::pricing::{Discount, Price, PricedUsage, Tariff};

/// An hour on ten nodes that may take until ten hours after its submission.
fn hour(completion: i64) -> PricedUsage {
    PricedUsage {
        node_seconds: 36_000,
        completion,
        fastest: 3_600,
        deadline: 36_000,
        preemptive: false,
        shapes: 1,
    }
}

fn micros(tariff: &Tariff, usage: &PricedUsage) -> i128 {
    tariff.price(usage).expect("an amount").micros()
}

#[test]
fn a_later_completion_saves_whole_units_up_to_the_part_allowed() {
    let price = |completion| micros(&Tariff::PUBLISHED, &hour(completion));
    assert_eq!(price(3_600), 10_000_000);
    // 0.6·10·5399/32400 is just below 1.
    assert_eq!(price(3_600 + 5_399), 10_000_000);
    assert_eq!(price(3_600 + 5_400), 9_000_000);
    assert_eq!(price(36_000), 4_000_000);
    // As published: rounded pieces that complete a second early save less than nothing.
    assert_eq!(price(3_599), 11_000_000);
    let rigid = PricedUsage {
        deadline: 3_600,
        ..hour(3_600)
    };
    assert_eq!(micros(&Tariff::PUBLISHED, &rigid), 10_000_000);
}

#[test]
fn each_profile_has_its_factor_its_rate_and_its_incentive() {
    let usage = PricedUsage {
        preemptive: true,
        ..hour(9_000)
    };
    let profitable = Tariff {
        profile: Fraction::percent(300),
        incentive: Fraction::percent(30),
        ..Tariff::PUBLISHED
    };
    // (10 − 1)·3·(1 − 0.3).
    assert_eq!(micros(&profitable, &usage), 18_900_000);
    assert_eq!(micros(&profitable, &hour(9_000)), 27_000_000);
    let dearer = Tariff {
        micros_per_node_hour: 2_500_000,
        ..Tariff::PUBLISHED
    };
    // 25 less ⌊2.5⌋.
    assert_eq!(micros(&dearer, &hour(9_000)), 23_000_000);
}

#[test]
fn more_shapes_give_more_discount_and_none_gives_none() {
    let tariff = Tariff {
        flexibility: Discount {
            most: Fraction::percent(40),
            half: 3,
        },
        ..Tariff::PUBLISHED
    };
    let price = |shapes| {
        micros(
            &tariff,
            &PricedUsage {
                shapes,
                ..hour(3_600)
            },
        )
    };
    assert_eq!(price(1), 10_000_000);
    assert_eq!(price(4), 8_000_000);
    assert_eq!(price(7), 7_333_333);
    assert_eq!(price(u64::MAX), 6_000_000);
}

#[test]
fn a_large_price_has_its_discount_for_any_number_of_shapes() {
    // A million nodes for a thousand hours, at most a billion of the currency.
    let usage = |shapes| PricedUsage {
        node_seconds: 3_600_000_000_000,
        shapes,
        ..hour(3_600)
    };
    let price = |percent, shapes| {
        let tariff = Tariff {
            flexibility: Discount::of_shapes(Fraction::percent(percent)),
            ..Tariff::PUBLISHED
        };
        tariff
            .price(&usage(shapes))
            .map(|price| price.micros() / 1_000_000)
    };
    for shapes in [1 << 30, 1 << 50, u64::MAX] {
        assert_eq!(price(0, shapes), Some(1_000_000_000), "{shapes}, none off");
        let less = price(40, shapes);
        assert!(
            less.is_some_and(|less| (600_000_000..600_000_010).contains(&less)),
            "{shapes}: {less:?}"
        );
    }
}

#[test]
fn slack_that_may_be_used_lowers_the_price_and_load_raises_it() {
    let base = Price::from_units(10 * Price::WHOLE);
    let discount = Discount {
        most: Fraction::percent(30),
        half: 7_200,
    };
    let price = |load, slack| {
        let price = base.flexible(Fraction::percent(load), discount, slack);
        price.unwrap().micros()
    };
    assert_eq!(price(100, 0), 10_000_000);
    assert_eq!(price(100, -5), 10_000_000);
    assert_eq!(price(100, 7_200), 8_500_000);
    assert_eq!(price(150, 7_200), 12_750_000);
    assert_eq!(price(100, i64::MAX), 7_000_000);
}

#[test]
fn what_no_amount_can_hold_is_no_price() {
    let endless = PricedUsage {
        node_seconds: u128::MAX,
        ..hour(3_600)
    };
    assert_eq!(Tariff::PUBLISHED.price(&endless), None);
    let broken = Tariff {
        profile: Fraction {
            numerator: 1,
            denominator: 0,
        },
        ..Tariff::PUBLISHED
    };
    assert_eq!(broken.price(&hour(3_600)), None);
    let most = Price::from_units(i128::MAX);
    assert_eq!(most.flexible(Fraction::percent(150), Discount::NONE, 0), None);
}

#[test]
fn millionths_are_to_the_nearest() {
    let micros = |units| Price::from_units(units).micros();
    assert_eq!([micros(1_799), micros(1_800), micros(3_600)], [0, 1, 1]);
    assert_eq!([micros(-1_800), micros(-1_801), micros(-3_600)], [0, -1, -1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn completing_later_or_allowing_more_never_costs_more(
        nodes in 1..1_000_u128,
        fastest in 1..100_000_i64,
        slack in 0..1_000_000_i64,
        (early, late) in (0..1_000_000_i64, 0..1_000_000_i64),
        (few, many) in (1..1_000_u64, 0..1_000_u64),
    ) {
        let tariff = Tariff {
            flexibility: Discount { most: Fraction::percent(50), half: 10 },
            ..Tariff::PUBLISHED
        };
        let usage = |completion: i64, shapes| PricedUsage {
            node_seconds: nodes * u128::from(fastest.unsigned_abs()),
            completion: fastest + completion.min(slack),
            fastest,
            deadline: fastest + slack,
            preemptive: false,
            shapes,
        };
        let price = |completion, shapes| tariff.price(&usage(completion, shapes)).unwrap();
        let full = price(0, 1);
        let one = price(early, few);
        prop_assert!(price(early.max(late), few) <= one);
        prop_assert!(price(early, few + many) <= one);
        prop_assert!(one <= full);
        // At most 60 % for the wait and half for the shapes.
        prop_assert!(one.units() * 5 + 10 >= full.units());
        let discount = Discount { most: Fraction::percent(30), half: 3_600 };
        let slackened = |w| one.flexible(Fraction::percent(120), discount, w).unwrap();
        prop_assert!(slackened(early.max(late)) <= slackened(early));
        prop_assert!(slackened(early).units() * 100 + 100 >= one.units() * 84);
    }
}
