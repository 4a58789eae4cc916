//! Where energy has a price over time, work goes to hours and resources with cheaper energy, and stays there.

use scheduler::Time;
use scheduler::domain::Objective;

use super::domain::{Domain, proposal};
use crate::agreement::{Agreement, Currency};
use crate::planner::{Energy, Kwh, Pricing, Resource, Settings, Watts};

const HOUR: i64 = 3_600;

/// Two resources at the same price. A kilowatt-hour costs 0.30 from 8 to 20 and else 0.10.
fn domain(objective: Objective, watts: &[(&str, u32)]) -> Domain {
    let resources = vec![
        Resource::new("one", "local", 2),
        Resource::new("other", "local", 2),
    ];
    let mut settings = Settings::new(resources, 48 * HOUR);
    settings.objective = objective;
    let step = |from, micros| Kwh {
        from: Time(from * HOUR),
        micros,
        grams: 0,
    };
    let tariff = vec![
        step(0, 100_000),
        step(8, 300_000),
        step(20, 100_000),
        step(32, 300_000),
    ];
    let watts = watts.iter().map(|(name, busy)| {
        let idle = busy / 4;
        ((*name).to_owned(), Watts { busy: *busy, idle })
    });
    let mut pricing = Pricing::flat(1_000_000, Currency::parse("EUR").unwrap());
    pricing.energy = Energy::new(watts.collect(), tariff, 0);
    settings.pricing = Some(pricing);
    Domain::with(settings)
}

fn placed(domain: &mut Domain, hours: i64, (from, until): (i64, i64)) -> Agreement {
    let of = proposal(2, hours * HOUR, (from * HOUR, until * HOUR));
    let placed = domain.place(of).unwrap().agreement;
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
    domain.plan.resources.note_free_time_everywhere();
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
    assert_eq!(early.leeway.room, None);
}

#[test]
fn cheaper_energy_keeps_no_agreement_from_making_room() {
    let mut domain = domain(Objective::Cheapest, &[("one", 400), ("other", 400)]);
    let both = [placed(&mut domain, 2, (9, 22)), placed(&mut domain, 2, (9, 22))];
    for of in &both {
        assert_eq!(of.placement().start, Time(20 * HOUR), "{of:?}");
    }
    let rigid = placed(&mut domain, 2, (20, 22));
    assert_eq!(rigid.placement().start, Time(20 * HOUR));
    let moved = both
        .iter()
        .filter(|of| domain.of(of.id).placement() != of.placement());
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
