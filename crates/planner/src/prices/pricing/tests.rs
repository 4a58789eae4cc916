use super::*;
use crate::prices::payer::AllowedShapes;
use domain::agreement::{BarredResource, Filter, Measure, Shape};
use domain::resources::Scaling;
use scheduler::Rate;
use scheduler::domain::Attribute;
use scheduler::preemptive::Preemption;

const EUR: &str = "EUR";
const LOCAL: &str = "local";

fn pricing() -> Pricing {
    Pricing::flat(100_000, Currency::parse(EUR).unwrap())
}

/// Days before the window.
const LONG_BEFORE: Time = Time(-864_000);

/// The price of two nodes for an hour in a window of this number of hours, asked for long before.
fn micros(pricing: &Pricing, tree: &SlotTree, hours: i64, at: i64) -> i64 {
    micros_where_it_moves(None, pricing, tree, hours, at)
}

fn micros_where_it_moves(
    fix_at: Option<Fraction>,
    pricing: &Pricing,
    tree: &SlotTree,
    hours: i64,
    at: i64,
) -> i64 {
    let window = Interval::of(Time(0), hours * 3_600);
    let payer = Payer {
        party: "physics",
        budget: None,
        fix_at,
        shapes: AllowedShapes::ONE,
    };
    let priced = Priced::rigid(payer, (Interval::of(Time(at), 3_600), 2), window);
    let load = pricing.load(tree, window, 0);
    pricing.price(LOCAL, load, LONG_BEFORE, priced).unwrap().micros
}

#[test]
fn each_rule_changes_the_price_as_it_says() {
    let free = SlotTree::new(4);
    let mut pricing = pricing();
    assert_eq!(
        micros(&pricing, &free, 1, 0),
        200_000,
        "2 nodes, an hour, 0.10 each"
    );
    pricing.resources.insert("local".into(), 300_000);
    assert_eq!(
        micros(&pricing, &free, 1, 0),
        600_000,
        "the resource has its own price"
    );
    pricing.resources.clear();
    pricing.profiles.insert("physics".into(), Fraction::percent(50));
    assert_eq!(micros(&pricing, &free, 1, 0), 100_000, "the party has a profile");
    pricing.profiles.clear();
    pricing.flexible = Discount {
        most: Fraction::percent(40),
        half: 3_600,
    };
    assert_eq!(micros(&pricing, &free, 1, 0), 200_000, "no slack, no discount");
    assert_eq!(
        micros(&pricing, &free, 2, 0),
        160_000,
        "half of the discount at w50"
    );
    assert_eq!(
        micros(&pricing, &free, 4, 0),
        140_000,
        "w/(w + w50) is three quarters"
    );
    for (percent, micros) in [(0, 200_000), (50, 152_000), (100, 140_000)] {
        let moves = Some(Fraction::percent(percent));
        let price = micros_where_it_moves(moves, &pricing, &free, 4, 0);
        assert_eq!(price, micros, "it may be moved for {percent} % of its wait");
    }
    pricing.busy = Fraction::percent(50);
    let mut half = SlotTree::new(4);
    half.reserve(Interval::of(Time(0), 7_200), 2).unwrap();
    assert_eq!(micros(&pricing, &half, 2, 0), 200_000, "a half of a half on top");
}

#[test]
fn slack_earns_a_discount_for_the_time_in_which_it_can_be_used() {
    let mut pricing = pricing();
    pricing.flexible = Discount {
        most: Fraction::percent(40),
        half: 3_600,
    };
    let free = SlotTree::new(4);
    let payer = Payer {
        party: "physics",
        budget: None,
        fix_at: None,
        shapes: AllowedShapes::ONE,
    };
    // Two nodes for an hour in a window of ten: at most 9 hours of slack, of which the wait until the start can be used.
    let window = Interval::of(Time(0), 36_000);
    let plain = pricing.load(&free, window, 0);
    for (now, start, micros) in [
        // It begins at once: nobody can move it.
        (0, 0, 200_000),
        // An hour: 40 % × 1/2. Three: 40 % × 3/4. Nine: 40 % × 9/10.
        (0, 3_600, 160_000),
        (0, 10_800, 140_000),
        (0, 32_400, 128_000),
        // The window is known a day before: all of its slack.
        (-86_400, 0, 128_000),
        // Half of an hour is over.
        (1_800, 3_600, 173_333),
    ] {
        let priced = Priced::rigid(payer, (Interval::of(Time(start), 3_600), 2), window);
        let price = pricing.price(LOCAL, plain, Time(now), priced).unwrap();
        assert_eq!(price.micros, micros, "at {now} from {start}");
    }
}

/// Two nodes for an hour that cost 20, and half of that for a completion at the deadline.
fn half_off_when_late() -> Pricing {
    let mut pricing = Pricing::flat(10_000_000, Currency::parse(EUR).unwrap());
    pricing.late = Fraction::percent(50);
    pricing
}

/// The price of that hour from `start` on in a window, asked for at `now`.
fn price_of_hour(pricing: &Pricing, now: i64, start: i64, window: (i64, i64)) -> i64 {
    let payer = Payer {
        party: "physics",
        budget: None,
        fix_at: None,
        shapes: AllowedShapes::ONE,
    };
    let window = Interval::new(Time(window.0), Time(window.1));
    let priced = Priced::rigid(payer, (Interval::of(Time(start), 3_600), 2), window);
    let price = pricing.price(LOCAL, Fraction::percent(100), Time(now), priced);
    price.unwrap().micros
}

#[test]
fn the_saving_for_a_late_completion_counts_from_the_ready_time() {
    let pricing = half_off_when_late();
    let day = 86_400;
    let tomorrow = |start, end| price_of_hour(&pricing, 0, day + start, (day, day + end));
    assert_eq!(
        tomorrow(0, 3_600),
        20_000_000,
        "its time is exact: it waits for nothing"
    );
    assert_eq!(tomorrow(0, 7_200), 20_000_000, "it begins when it is ready");
    assert_eq!(tomorrow(3_600, 7_200), 10_000_000, "it completes at its deadline");
    assert_eq!(
        tomorrow(3_600, 10_800),
        15_000_000,
        "it waits for half of its slack"
    );
    // Ready since an hour ago: only what is left of the window counts.
    assert_eq!(price_of_hour(&pricing, 3_600, 3_600, (0, 10_800)), 20_000_000);
    assert_eq!(price_of_hour(&pricing, 3_600, 7_200, (0, 10_800)), 10_000_000);
}

#[test]
fn a_slightly_wider_window_costs_no_more_than_it_saves() {
    let pricing = half_off_when_late();
    let price = |wait: i64, slack: i64| price_of_hour(&pricing, 0, wait, (0, 3_600 + slack));
    let rigid = price(0, 0);
    for wait in [0, 1, 2, 60, 1_800, 3_599] {
        for slack in wait..3_600 {
            let (before, wider) = (price(wait, slack), price(wait, slack + 1));
            assert!(
                wider <= before && before <= rigid,
                "{wait} of {slack}: {before}, then {wider}"
            );
        }
    }
    // A second of a longer slack costs its proportion, and no unit of the currency.
    for (wait, slack) in [(3_600, 3_600), (5_000, 10_800), (10_800, 10_800)] {
        let more = price(wait, slack + 1) - price(wait, slack);
        assert!(
            (0..=10_000_000 / slack + 1).contains(&more),
            "{wait} of {slack}: {more}"
        );
    }
}

#[test]
fn a_late_completion_saves_in_proportion_to_its_wait() {
    let free = SlotTree::new(4);
    let mut pricing = Pricing::flat(10_000_000, Currency::parse(EUR).unwrap());
    pricing.late = Fraction::percent(60);
    let window = Interval::of(Time(0), 14_400);
    let payer = Payer {
        party: "physics",
        budget: None,
        fix_at: None,
        shapes: AllowedShapes::ONE,
    };
    let price = |hour: i64| {
        let priced = Priced::rigid(payer, (Interval::of(Time(hour * 3_600), 3_600), 2), window);
        let load = pricing.load(&free, window, 0);
        pricing.price(LOCAL, load, Time(0), priced).unwrap().micros / 1_000_000
    };
    let prices: Vec<i64> = (0..=3).map(price).collect();
    assert_eq!(prices, [20, 16, 12, 8]);
}

const HOUR: i64 = 3_600;

/// A resource of eight nodes of that rate.
fn local(rate: Rate) -> Resource {
    Resource {
        rate,
        ..Resource::new(LOCAL, LOCAL, 8)
    }
}

/// The price of four node-hours on two nodes at 0, on a resource of that rate, for a request with these sizes and cuts.
fn price_in_shapes(pricing: &Pricing, rate: Rate, sizes: &[(u32, i64)], cuts: Option<Preemption>) -> i64 {
    price_where_allowed(pricing, &local(rate), sizes, cuts, (&[], &[]))
}

/// The price of two nodes for two hours of work at 0 on a resource, for a request with these sizes, cuts, conditions and barred resources.
fn price_where_allowed(
    pricing: &Pricing,
    on: &Resource,
    sizes: &[(u32, i64)],
    cuts: Option<Preemption>,
    (filters, barred): (&[Filter], &[BarredResource]),
) -> i64 {
    let sizes: Vec<Shape> = (sizes.iter())
        .map(|(nodes, duration)| Shape {
            nodes: *nodes,
            duration: *duration,
        })
        .collect();
    let payer = Payer {
        party: "physics",
        budget: None,
        fix_at: None,
        shapes: AllowedShapes {
            sizes: &sizes,
            scaling: Scaling::ReferenceRate,
            cuts: cuts.unwrap_or(Preemption::NONE),
            filters,
            barred,
        },
    };
    let slot = Interval::of(Time(0), on.rate.duration(2 * HOUR));
    let priced = Priced::of(payer, on, (slot, 2), Interval::of(Time(0), 4 * HOUR));
    let price = pricing.price(LOCAL, Fraction::percent(100), Time(0), priced);
    price.unwrap().micros
}

#[test]
fn work_that_may_be_cut_and_a_choice_of_shapes_cost_less() {
    let mut pricing = pricing();
    let cut = Preemption::new(2, 500_000, false);
    let five: Vec<(u32, i64)> = (2..=6).map(|nodes| (nodes, 2 * HOUR)).collect();
    let price = |pricing: &Pricing, sizes: &[(u32, i64)], cuts| {
        price_in_shapes(pricing, Rate::REFERENCE, sizes, cuts)
    };
    assert_eq!(price(&pricing, &five, cut), 400_000, "no key is set");
    pricing.preemptive = Fraction::percent(30);
    assert_eq!(price(&pricing, &five, None), 400_000, "it may not be cut");
    assert_eq!(price(&pricing, &five[..1], cut), 280_000);
    pricing.preemptive = Fraction::percent(0);
    pricing.shapes = Discount::of_shapes(Fraction::percent(40));
    assert_eq!(price(&pricing, &five[..1], None), 400_000, "one shape");
    assert_eq!(
        price(&pricing, &five, None),
        320_000,
        "four beyond the first: half of it"
    );
    // One size in one piece, or cut in the middle: one beyond the first, and 1/5 of 40 %.
    assert_eq!(price(&pricing, &five[..1], cut), 368_000);
    pricing.preemptive = Fraction::percent(30);
    assert_eq!(price(&pricing, &five[..1], cut), 257_600, "one after the other");
}

#[test]
fn the_wait_counts_from_the_shortest_of_all_sizes() {
    let mut pricing = pricing();
    pricing.late = Fraction::percent(60);
    // Two hours of a window of four: it began at once, on the size that it has.
    assert_eq!(
        price_in_shapes(&pricing, Rate::REFERENCE, &[(2, 2 * HOUR)], None),
        400_000
    );
    // On four nodes it would have taken an hour: it completes a third of three hours later, for a fifth less.
    let sizes = [(4, HOUR), (2, 2 * HOUR)];
    assert_eq!(price_in_shapes(&pricing, Rate::REFERENCE, &sizes, None), 320_000);
    // At twice the rate an hour, and half an hour on four nodes: a seventh of three and a half hours later.
    let twice = Rate::from_millionths(2_000_000).unwrap();
    assert_eq!(price_in_shapes(&pricing, twice, &sizes, None), 182_857);
}

#[test]
fn a_size_that_the_resource_cannot_have_lowers_no_price() {
    let mut pricing = pricing();
    pricing.late = Fraction::percent(60);
    pricing.shapes = Discount::of_shapes(Fraction::percent(40));
    let mut on = local(Rate::REFERENCE);
    on.attributes.insert("cpus".into(), Attribute::Number(8));
    let price = |sizes: &[(u32, i64)], filters: &[Filter], barred: &[BarredResource]| {
        price_where_allowed(&pricing, &on, sizes, None, (filters, barred))
    };
    let alone = price(&[(2, 2 * HOUR)], &[], &[]);
    assert_eq!(alone, 400_000);
    // More nodes than it has: a second would be its fastest time.
    assert_eq!(price(&[(64, 1), (2, 2 * HOUR)], &[], &[]), alone);
    let two = [(4, HOUR), (2, 2 * HOUR)];
    assert!(price(&two, &[], &[]) < alone);
    let barred = BarredResource {
        resource: LOCAL.into(),
        sizes: vec![Shape {
            nodes: 4,
            duration: HOUR,
        }],
        why: String::new(),
    };
    assert_eq!(price(&two, &[], &[barred]), alone, "its cluster would refuse it");
    // At most 16 processors in all, of 8 on each node.
    let total = Filter::Number {
        attribute: "cpus".into(),
        measure: Measure::Total,
        within: vec![(0, 16)],
    };
    assert_eq!(
        price(&two, &[total], &[]),
        alone,
        "it does not meet the conditions"
    );
}

#[test]
fn the_parts_of_a_price_add_up_to_it() {
    let mut pricing = pricing();
    pricing.preemptive = Fraction::percent(30);
    pricing.shapes = Discount::of_shapes(Fraction::percent(40));
    let payer = Payer {
        party: "physics",
        budget: None,
        fix_at: None,
        shapes: AllowedShapes {
            cuts: Preemption::new(2, 500_000, false).unwrap(),
            ..AllowedShapes::ONE
        },
    };
    let hour = Interval::of(Time(0), HOUR);
    let priced = Priced::of(payer, &local(Rate::REFERENCE), (hour, 2), hour);
    let plain = Fraction::percent(100);
    let price = pricing.price(LOCAL, plain, Time(0), priced).unwrap();
    let words = pricing.parts(LOCAL, Time(0), (priced, "2 nodes"), price).unwrap();
    assert_eq!(
        words,
        "0.2 EUR for 2 nodes for 3600 seconds, 0.06 EUR less because its work may be cut, \
         0.0112 EUR less for the number of its shapes"
    );
    let discounts = pricing.discounts(LOCAL, Time(0), priced).unwrap();
    let micros = |money: Option<Money>| money.unwrap().micros;
    assert_eq!(
        (micros(discounts.preemptive), micros(discounts.shapes)),
        (60_000, 11_200)
    );
    let rigid = Priced::rigid(payer, (hour, 2), hour);
    assert_eq!(pricing.discounts(LOCAL, Time(0), rigid), None);
}
