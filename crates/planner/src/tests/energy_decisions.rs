//! What decisions by cost take where energy has a price by the hour, beside the same ones where it has none: in turn, on the same plans.

use std::hint::black_box;
use std::time::{Duration, Instant};

use advisor::random::Random;
use domain::agreement::Currency;
use domain::resources::Resource;
use scheduler::domain::Objective;
use scheduler::{Interval, Time};

use super::harness::{Domain, proposal};
use crate::limits::window;
use crate::placement::choice;
use crate::schedules::need::Need;
use crate::{Energy, Kwh, Pricing, Request, Settings, Watts};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
const NODES: u32 = 16;
/// Days that plans are filled for.
const FILLED: i64 = 60;
/// Decisions that are made one after the other before it is the turn of the other domain.
const TURN: usize = 10;

/// A year of hours, cheaper by night, some of them below zero.
fn hourly_year() -> Vec<Kwh> {
    let mut random = Random::new(1, &[8_760]);
    let hour = |hour: i64| {
        let by_day = if (8..20).contains(&(hour % 24)) {
            150_000
        } else {
            20_000
        };
        Kwh {
            from: Time(hour * HOUR),
            micros: by_day + 1_000 * i64::try_from(random.below(60)).unwrap() - 30_000,
            grams: 0,
        }
    };
    (0..365 * 24).map(hour).collect()
}

/// So many resources of four powers, free or filled but for some gaps.
fn domain(resources: u32, is_filled: bool, has_energy: bool) -> Domain {
    let names: Vec<String> = (0..resources).map(|number| format!("r{number:05}")).collect();
    let all = names.iter().map(|name| Resource::new(name, "local", NODES));
    let mut settings = Settings::new(all.collect(), 90 * DAY);
    (settings.objective, settings.improving.idle) = (Objective::Cheapest, false);
    let mut pricing = Pricing::flat(1_000_000, Currency::parse("EUR").unwrap());
    if has_energy {
        let watts = (0..).zip(&names).map(|(number, name)| {
            let busy = 300 + 100 * (number % 4);
            (name.clone(), Watts { busy, idle: 100 })
        });
        pricing.energy = Some(Energy::new(watts.collect(), hourly_year(), 0));
    }
    settings.pricing = Some(pricing);
    let mut domain = Domain::with(settings);
    domain.moves_up = false;
    if is_filled {
        fill(&mut domain, resources);
    }
    domain
}

/// Fills the plan of each resource, one piece of work after the other.
fn fill(domain: &mut Domain, resources: u32) {
    for at in 0..resources {
        let mut random = Random::new(2, &[at.into()]);
        let mut start = 0;
        let mut requests = Vec::new();
        while start < FILLED * DAY {
            let duration = HOUR + i64::try_from(random.below(7 * 3_600)).unwrap();
            let slot = Interval::of(Time(start), duration);
            let request = scheduler::Request {
                id: u64::from(at) << 32 | requests.len() as u64,
                submitted: Time(0),
                ready: slot.start,
                deadline: slot.end,
                duration,
                nodes: NODES - u32::try_from(random.below(4)).unwrap(),
                revenue: 0,
            };
            requests.push((request, slot.start));
            let gap = if random.chance(0.3) {
                random.below(3 * 3_600)
            } else {
                0
            };
            start += duration + i64::try_from(gap).unwrap();
        }
        let put = domain
            .state
            .schedules
            .put_all(usize::try_from(at).unwrap(), Time(0), &requests);
        assert!(put, "they follow each other");
    }
}

/// Requests of up to all nodes for up to six hours, in windows of so many days.
fn requests(count: usize, days: i64) -> Vec<Request> {
    let mut random = Random::new(3, &[u64::try_from(days).unwrap()]);
    let one = |_| {
        let nodes = 1 + u32::try_from(random.below(NODES as usize)).unwrap();
        let duration = HOUR + i64::try_from(random.below(5 * 3_600)).unwrap();
        let ready = i64::try_from(random.below(20 * 86_400)).unwrap();
        proposal(nodes, duration, (ready, ready + days * DAY))
    };
    (0..count).map(one).collect()
}

/// The time that a domain takes to find the best place of each, and how many have one.
fn time_of(domain: &mut Domain, requests: &[Request]) -> (Duration, usize) {
    domain.decide(|decider| {
        let needs: Vec<Need<'_>> = requests
            .iter()
            .map(|request| {
                Need::of(
                    request,
                    1 << 40,
                    window::window_within_limits(decider.view(), request).unwrap(),
                    Time(0),
                )
            })
            .collect();
        let started = Instant::now();
        let found = needs
            .iter()
            .filter(|need| black_box(choice::best_placement_choice(decider.view(), need)).is_ok());
        let found = found.count();
        (started.elapsed(), found)
    })
}

/// With `BESPEAK_TEST_ENERGY_DECISIONS` of them it prints a table.
#[test]
fn decisions_with_prices_of_energy_beside_the_same_ones_without() {
    let wanted = std::env::var("BESPEAK_TEST_ENERGY_DECISIONS").ok();
    let wanted: Option<usize> = wanted.and_then(|count| count.parse().ok());
    let sizes: &[u32] = if wanted.is_some() {
        &[1, 100, 1_000]
    } else {
        &[1, 3]
    };
    println!(
        "| resources | plans | windows (days) | without (µs) | with (µs) | ratio |\n|---|---|---|---|---|---|"
    );
    for resources in sizes {
        for is_filled in [false, true] {
            let mut without = domain(*resources, is_filled, false);
            let mut with = domain(*resources, is_filled, true);
            for days in [1, 7, 30] {
                let requests = requests(wanted.unwrap_or(TURN), days);
                let (mut times, mut found) = ([Duration::ZERO; 2], [0; 2]);
                for turn in requests.chunks(TURN) {
                    for (which, domain) in [&mut without, &mut with].into_iter().enumerate() {
                        let (time, places) = time_of(domain, turn);
                        times[which] += time;
                        found[which] += places;
                    }
                }
                assert_eq!(
                    found[0], found[1],
                    "the price of energy keeps no place from being found"
                );
                let count = u32::try_from(requests.len()).unwrap();
                let each = times.map(|time| 1e6 * time.as_secs_f64() / f64::from(count));
                let plans = if is_filled { "filled" } else { "free" };
                println!(
                    "| {resources} | {plans} | {days} | {:.1} | {:.1} | {:.1} |",
                    each[0],
                    each[1],
                    each[1] / each[0]
                );
            }
        }
    }
}
