//! Decisions about tasks that have a forecast for each resource, beside the same tasks by the rates of the resources.

use super::{NODES, OBJECTIVES, booked, measure, micros, tasks};
use crate::shared::Mix;
use scheduler::domain::{Domain, Forecast, Forecasts, ForeseenTimes, Objective, Resource, Task};
use scheduler::measure::{Bar, measurement_against_bar};
use scheduler::{Interval, Rate, Seconds, SlotTree, Time};
use std::ops::Range;
use std::sync::Arc;

/// Resources of these domains.
const RESOURCES: u32 = 1_000;
/// Different pieces of work that are foreseen.
const WORKS: usize = 16;
/// Steps of a forecast: the hours of two days.
const STEPS: i64 = 48;
const HOUR: Seconds = 3_600;

/// For each resource the time of some work by its rate, longer by up to a third with the hour, in some reserve.
fn foreseen(domain: &Domain<SlotTree>, work: Seconds, mix: &mut Mix) -> Forecasts {
    let forecast_for = |resource: &Resource, mix: &mut Mix| {
        let least = resource.rate.duration(work);
        let phase = mix.below(24);
        let step = |hour: i64| {
            let busy = ((hour + phase) % 24 - 12).abs();
            let completion = least + least * busy / 36;
            let foreseen = ForeseenTimes {
                hold: completion + completion / 10,
                completion,
                loss: i128::from(mix.next() % 10_000),
                rise: 0,
            };
            (Time(hour * HOUR), foreseen)
        };
        Forecast::new((0..STEPS).map(step).collect())
    };
    let all = domain.iter();
    let all = all.filter_map(|(resource, _)| Some((resource.id, Arc::new(forecast_for(resource, mix)?))));
    Forecasts::new(all)
}

/// Resources with nothing but gaps of two hours: by the classes of all indices they may be long enough for work of three.
fn gaps(horizon: Seconds) -> Domain<SlotTree> {
    let plans = (0..RESOURCES).map(|id| {
        let resource = Resource {
            id: id.into(),
            rate: Rate::REFERENCE,
            price: 1,
            attributes: std::collections::BTreeMap::default(),
        };
        let mut plan = SlotTree::new(NODES);
        for start in (0..horizon).step_by(3 * 3_600) {
            let reserved = plan.reserve(Interval::of(Time(start), HOUR), NODES);
            reserved.expect("nothing else is there");
        }
        (resource, plan)
    });
    Domain::new(Interval::new(Time(0), Time(horizon)), plans.collect())
}

/// Some works of so many hours, and what is foreseen of each.
fn works(domain: &Domain<SlotTree>, hours: Range<i64>, mix: &mut Mix) -> Vec<(Seconds, Forecasts)> {
    let work = |_| {
        let work = hours.start * HOUR + mix.below((hours.end - hours.start) * HOUR);
        (work, foreseen(domain, work, mix))
    };
    (0..WORKS).map(work).collect()
}

/// Measures tasks by rates and with forecasts, in windows that hold one and a half to three times the work; the largest mean of
/// those with forecasts for one best placement.
fn beside(domain: &Domain<SlotTree>, sort: &str, tasks: Vec<Task>, works: &[(Seconds, Forecasts)]) -> u64 {
    let of_works = tasks.into_iter().enumerate().map(|(number, task)| {
        let (work, _) = works[number % works.len()];
        let halves = 3 + i64::try_from(number % 4).unwrap_or(0);
        Task {
            work,
            window: Interval::of(task.window.start, work * halves / 2),
            ..task
        }
    });
    let by_rates: Vec<Task> = of_works.collect();
    let with = |(number, task): (usize, &Task)| Task {
        forecasts: Some(works[number % works.len()].1.clone()),
        ..task.clone()
    };
    let with: Vec<Task> = by_rates.iter().enumerate().map(with).collect();
    let mut worst = 0;
    for objective in OBJECTIVES {
        let decide = |task: &Task| domain.decide(task, objective).is_ok();
        measure(&format!("{sort} {objective:?} by rates"), &by_rates, decide);
        let mean = measure(&format!("{sort} {objective:?} with forecasts"), &with, decide);
        // The least work lost compares up to 64 placements.
        if objective != Objective::LeastWorkLost {
            worst = worst.max(mean);
        }
    }
    worst
}

/// Tasks where all is free, on plans that are booked, and where nothing fits. `each` is the number of reservations of a resource.
pub(crate) fn run(each: i64, count: usize) {
    let mut mix = Mix(3);
    let live = each * i64::from(RESOURCES);
    let (domain, horizon) = booked(live, RESOURCES.into(), 70);
    let usual = works(&domain, 1..18, &mut mix);
    let scarce = works(&domain, 24..60, &mut mix);
    let empty = Domain::new(
        Interval::new(Time(0), Time(horizon)),
        domain
            .iter()
            .map(|(domain, _)| (domain.clone(), SlotTree::new(NODES)))
            .collect(),
    );
    let free = beside(&empty, "free", tasks("usual", count, horizon), &usual);
    let booked_most = beside(&domain, "usual", tasks("usual", count, horizon), &usual);
    let refused = beside(&domain, "scarce", tasks("scarce", count, horizon), &scarce);
    let (packed, horizon) = booked(live, RESOURCES.into(), 95);
    let full = beside(&packed, "packed", tasks("large", count, horizon), &usual);
    let horizon = 90 * 24 * HOUR;
    let gaps = gaps(horizon);
    let short = works(&gaps, 3..4, &mut mix);
    beside(&gaps, "gaps", tasks("usual", count.min(200), horizon), &short);
    for (what, bar, seen) in [
        ("where all is free (µs)", 100.0, free),
        ("of usual tasks (µs)", 100.0, booked_most),
        ("mostly refused (µs)", 1_000.0, refused.max(full)),
    ] {
        let what = format!("domain: a decision with 1,000 forecasts {what}");
        println!(
            "{}",
            measurement_against_bar(&what, Bar::AtMost(bar), micros(seen))
        );
    }
}
