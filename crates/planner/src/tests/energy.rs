//! Where energy has a price over time, work goes to hours and resources with cheaper energy, and stays there.

use advisor::random::Random;
use domain::agreement::{Agreement, Currency, Money};
use domain::resources::Resource;
use scheduler::domain::Objective;
use scheduler::{Fraction, Interval, Rate, Time};

use super::harness::{Domain, proposal};
use crate::decider::Decider;
use crate::schedules::need::Need;
use crate::{Energy, Kwh, Pricing, Settings, Terminate, Watts};

const HOUR: i64 = 3_600;
/// The price of a node and an hour, in millionths.
const NODE_HOUR: u32 = 1_000_000;

/// Two resources at the same price. A kilowatt-hour costs 0.30 from 8 to 20 and else 0.10.
fn domain(objective: Objective, watts: &[(&str, u32)]) -> Domain {
    let tariff = [(0, 100_000), (8, 300_000), (20, 100_000), (32, 300_000)];
    domain_with(objective, watts, &tariff)
}

/// The same with the prices of a kilowatt-hour from these hours on, in millionths.
fn domain_with(objective: Objective, watts: &[(&str, u32)], tariff: &[(i64, i64)]) -> Domain {
    let resources = vec![
        Resource::new("one", "local", 2),
        Resource::new("other", "local", 2),
    ];
    let mut settings = Settings::new(resources, 48 * HOUR);
    settings.objective = objective;
    let step = |(from, micros): &(i64, i64)| Kwh {
        from: Time(from * HOUR),
        micros: *micros,
        grams: 0,
    };
    let tariff = tariff.iter().map(step).collect();
    let watts = watts.iter().map(|(name, busy)| {
        let idle = busy / 4;
        ((*name).to_owned(), Watts { busy: *busy, idle })
    });
    let mut pricing = Pricing::flat(NODE_HOUR, Currency::parse("EUR").unwrap());
    pricing.energy = Some(Energy::new(watts.collect(), tariff, 0));
    settings.pricing = Some(pricing);
    Domain::with(settings)
}

fn placed(domain: &mut Domain, hours: i64, (from, until): (i64, i64)) -> Agreement {
    let wanted = proposal(2, hours * HOUR, (from * HOUR, until * HOUR));
    let placed = domain.place(wanted).unwrap().agreement;
    domain.check();
    placed
}

#[test]
fn work_is_placed_in_the_cheaper_hours_of_its_window_and_does_not_move_out_of_them() {
    let both = [("one", 400), ("other", 400)];
    let mut domain = domain(Objective::Cheapest, &both);
    let night = placed(&mut domain, 2, (9, 30));
    assert_eq!(night.placement().start, Time(20 * HOUR), "{night:?}");
    // Idle moments move it nowhere.
    domain.now = 9 * HOUR;
    domain.state.schedules.queue_looks_everywhere();
    domain.improve();
    assert_eq!(domain.of(night.id).placement(), night.placement());
    // A window by day gets a place by day.
    let day = placed(&mut domain, 2, (9, 14));
    assert_eq!(day.placement().start, Time(9 * HOUR));
    // Of a long slot the most lies at night.
    let long = placed(&mut domain, 14, (9, 40));
    assert!(long.placement().end <= Time(34 * HOUR + HOUR), "{long:?}");
}

#[test]
fn work_goes_to_the_resource_that_takes_less_energy_and_offers_by_time_know_nothing_of_it() {
    let watts = [("one", 800), ("other", 200)];
    let mut by_cost = domain(Objective::Cheapest, &watts);
    assert_eq!(placed(&mut by_cost, 1, (9, 14)).resource, "other");
    let mut by_time = domain(Objective::EarliestCompletion, &watts);
    let early = placed(&mut by_time, 1, (9, 30));
    assert_eq!(
        (&*early.resource, early.placement().start),
        ("one", Time(9 * HOUR))
    );
    assert_eq!(early.constraints.room, None);
}

#[test]
fn cheaper_energy_keeps_no_agreement_from_making_room() {
    let mut domain = domain(Objective::Cheapest, &[("one", 400), ("other", 400)]);
    let both = [placed(&mut domain, 2, (9, 22)), placed(&mut domain, 2, (9, 22))];
    for agreement in &both {
        assert_eq!(agreement.placement().start, Time(20 * HOUR), "{agreement:?}");
    }
    let rigid = placed(&mut domain, 2, (20, 22));
    assert_eq!(rigid.placement().start, Time(20 * HOUR));
    let moved = both
        .iter()
        .filter(|agreement| domain.of(agreement.id).placement() != agreement.placement());
    assert_eq!(moved.count(), 1);
}

#[test]
fn a_resource_whose_power_is_not_known_attracts_no_work() {
    let mut domain = domain(Objective::Cheapest, &[("one", 400)]);
    let placed = placed(&mut domain, 1, (9, 30));
    assert_eq!(
        (&*placed.resource, placed.placement().start),
        ("one", Time(20 * HOUR))
    );
}

/// The first two fill both resources; as the first one ends, the third one moves to its place.
#[test]
fn energy_of_which_no_power_is_known_changes_nothing() {
    let mut domain = domain(Objective::Cheapest, &[]);
    let [first, _, third] = [(9, 11), (9, 11), (9, 30)].map(|window| placed(&mut domain, 2, window));
    assert_eq!(third.placement().start, Time(11 * HOUR));
    let ended = domain.decide(|decider| decider.decide(Terminate::of(first.id, None)).is_ok());
    assert!(ended);
    assert_eq!(domain.of(third.id).placement().start, Time(9 * HOUR));
    let asked = proposal(2, HOUR, (0, 24 * HOUR));
    let need = Need::of(&asked, 1, Interval::new(Time(0), Time(24 * HOUR)), Time(0));
    let resources = &domain.state.schedules;
    assert_eq!(resources.forecasts(&need, asked.shapes[0], None), None);
}

#[test]
fn what_was_weighed_is_found_again_until_the_prices_are_others() {
    let mut domain = domain(Objective::Cheapest, &[("one", 400), ("other", 400)]);
    let mut dearer = domain.settings.clone();
    let step = Kwh {
        from: Time(0),
        micros: 900_000,
        grams: 0,
    };
    let pricing = dearer.pricing.as_mut().unwrap();
    pricing.energy = pricing
        .energy
        .as_ref()
        .map(|energy| energy.with_tariff(vec![step]));
    let asked = proposal(2, HOUR, (9 * HOUR, 30 * HOUR));
    let need = Need::of(&asked, 1, Interval::new(Time(9 * HOUR), Time(30 * HOUR)), Time(0));
    domain.decide(|decider| {
        let ask = |decider: &Decider<'_>| {
            let resources = &decider.state.schedules;
            resources.forecasts(&need, asked.shapes[0], None).unwrap()
        };
        let (first, again) = (ask(decider), ask(decider));
        assert!(std::ptr::eq(first.of(0).unwrap(), first.of(1).unwrap()));
        assert!(std::ptr::eq(first.of(0).unwrap(), again.of(0).unwrap()));
        decider.state.schedules.reprice(&dearer);
        let after = ask(decider);
        let loss =
            |forecasts: &scheduler::domain::Forecasts| forecasts.of(0).unwrap().at(Time(9 * HOUR)).loss;
        assert_eq!(loss(&after), 3 * loss(&first));
    });
}

#[test]
fn a_single_cheap_hour_between_dear_ones_is_found() {
    let tariff = [
        (0, 300_000),
        (10, 200_000),
        (11, 100_000),
        (12, 200_000),
        (13, 300_000),
    ];
    let mut domain = domain_with(Objective::Cheapest, &[("one", 400), ("other", 400)], &tariff);
    assert_eq!(placed(&mut domain, 1, (0, 24)).placement().start, Time(11 * HOUR));
    // Three hours cost least around it.
    assert_eq!(placed(&mut domain, 3, (0, 24)).placement().start, Time(10 * HOUR));
}

#[test]
fn where_energy_earns_something_work_goes_to_where_it_takes_the_most() {
    let tariff = [(0, 100_000), (12, -100_000), (14, 100_000)];
    let mut known = domain_with(Objective::Cheapest, &[("one", 200), ("other", 800)], &tariff);
    let first = placed(&mut known, 2, (0, 24));
    assert_eq!(
        (&*first.resource, first.placement().start),
        ("other", Time(12 * HOUR))
    );
    // A resource whose power is not known counts as the one that earns the least.
    let mut unknown = domain_with(Objective::Cheapest, &[("other", 800)], &tariff);
    let first = placed(&mut unknown, 2, (0, 24));
    assert_eq!(first.placement().start, Time(12 * HOUR));
}

#[test]
fn an_offer_with_a_budget_gets_the_cheapest_hours_that_it_can_pay() {
    let mut domain = domain(Objective::Cheapest, &[("one", 400), ("other", 400)]);
    let request_within = |micros: i64, window: (i64, i64)| {
        let budget = Some(Money::new(micros, Currency::parse("EUR").unwrap()));
        let wanted = proposal(2, 2 * HOUR, (window.0 * HOUR, window.1 * HOUR));
        crate::Request { budget, ..wanted }
    };
    // Four node-hours.
    let night = domain
        .place(request_within(4_000_000, (9, 30)))
        .unwrap()
        .agreement;
    assert_eq!(night.placement().start, Time(20 * HOUR), "{night:?}");
    assert_eq!(night.price.map(|price| price.micros), Some(4_000_000));
    assert!(domain.place(request_within(3_999_999, (9, 30))).is_err());
    // Half off for a completion at the deadline: 3 can be paid from a start at 15 on.
    let pricing = domain.settings.pricing.as_mut().unwrap();
    pricing.late = Fraction::percent(50);
    let late = domain
        .place(request_within(3_000_000, (0, 32)))
        .unwrap()
        .agreement;
    assert!(late.placement().start >= Time(20 * HOUR), "{late:?}");
    assert!(
        late.price.is_some_and(|price| price.micros <= 3_000_000),
        "{late:?}"
    );
    domain.check();
}

/// What a slot on a resource costs where places are compared: the nodes, and the energy beyond that of idle ones, by the sums of the price
/// from the beginning to each second.
fn plain_cost(watts: u32, sums: &[i64], nodes: u32, slot: Interval) -> i128 {
    let sum_to = |at: Time| i128::from(sums[usize::try_from(at.0).unwrap()]);
    let micros = sum_to(slot.end) - sum_to(slot.start);
    let energy = (i128::from(watts) * i128::from(nodes) * micros).div_euclid(1_000);
    i128::from(NODE_HOUR) * i128::from(nodes) * i128::from(slot.duration()) + energy
}

fn below(random: &mut Random, count: u16) -> u16 {
    u16::try_from(random.below(usize::from(count))).unwrap()
}

/// Three resources with powers and rates of their own, prices of each hour from −0.20 to 0.30, and a plan that fills: each place costs
/// no more than any other that is free, looked at second by second.
#[test]
fn each_place_is_the_cheapest_of_all_free_ones_also_where_prices_are_negative() {
    const DAY: i64 = 24 * HOUR;
    let powers = [
        ("one", 400_u32, 1_000_000),
        ("other", 900, 2_000_000),
        ("third", 150, 700_000),
    ];
    let mut below_zero = 0;
    for seed in 0..4 {
        let mut random = Random::new(seed, &[16]);
        let hourly: Vec<i64> = (0..25)
            .map(|_| 10_000 * (i64::from(below(&mut random, 51)) - 20))
            .collect();
        let rated = |(name, _, millionths): &(&str, u32, u32)| Resource {
            rate: Rate::from_millionths(*millionths).unwrap(),
            ..Resource::new(name, "local", 4)
        };
        let mut settings = Settings::new(powers.iter().map(rated).collect(), 2 * DAY);
        (settings.objective, settings.improving.idle) = (Objective::Cheapest, false);
        let steps = (0..).zip(&hourly).map(|(hour, micros)| Kwh {
            from: Time(hour * HOUR),
            micros: *micros,
            grams: 0,
        });
        let watts = powers.map(|(name, watts, _)| {
            (
                name.to_owned(),
                Watts {
                    busy: watts + 50,
                    idle: 50,
                },
            )
        });
        let mut pricing = Pricing::flat(NODE_HOUR, Currency::parse("EUR").unwrap());
        pricing.energy = Some(Energy::new(watts.into(), steps.collect(), 0));
        settings.pricing = Some(pricing);
        let by_second: Vec<i64> = hourly
            .iter()
            .flat_map(|micros| std::iter::repeat_n(*micros, 3_600))
            .collect();
        let mut sums = vec![0];
        for micros in &by_second {
            sums.push(sums[sums.len() - 1] + micros);
        }
        let mut domain = Domain::with(settings);
        for _ in 0..15 {
            let (nodes, work) = (
                1 + u32::from(below(&mut random, 4)),
                600 + i64::from(below(&mut random, 5 * 3_600)),
            );
            let ready = i64::from(below(&mut random, 12 * 3_600));
            let until = (ready + 3 * work + i64::from(below(&mut random, 8 * 3_600))).min(DAY);
            let mut best: Option<i128> = None;
            let wanted = crate::Request {
                scaling: domain::resources::Scaling::ReferenceRate,
                ..proposal(nodes, work, (ready, until))
            };
            for (at, (_, watts, _)) in powers.iter().enumerate() {
                let on = domain.state.schedules.get(at).unwrap();
                let (tree, hold) = (on.schedule.tree(), on.resource.rate.duration(work));
                for start in ready..=until - hold {
                    let slot = Interval::of(Time(start), hold);
                    if tree.min_free(slot) >= nodes {
                        let cost = plain_cost(*watts, &sums, nodes, slot);
                        best = Some(best.map_or(cost, |best| best.min(cost)));
                    }
                }
            }
            let Some(best) = best else { continue };
            let placed = domain.place(wanted).unwrap().agreement;
            let of_resource = powers.iter().find(|(name, ..)| *name == placed.resource);
            let cost = plain_cost(of_resource.unwrap().1, &sums, nodes, placed.placement());
            // Between two hours the cost is rounded to a unit, of which a cent has 36 millions.
            assert!(
                (0..=2).contains(&(cost - best)),
                "{seed}: {cost} {best} {placed:?}"
            );
            let price_at_start = by_second[usize::try_from(placed.placement().start.0).unwrap()];
            below_zero += usize::from(price_at_start < 0);
        }
    }
    assert!(below_zero > 5, "{below_zero} begin where energy earns something");
}
