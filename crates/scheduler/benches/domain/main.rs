//! A decision among many resources beside the same reservations on few.
//!
//! `cargo bench -p scheduler --bench domain -- [RESERVATIONS [RESOURCES [DECISIONS]]]`: RESERVATIONS live reservations in all
//! (default 1,000,000), on RESOURCES resources (10,000) and on ten, each booked to 70 %; DECISIONS decisions of each sort
//! (2,000). Resources have 128 nodes, one of four rates and one of four prices. It prints the mean, median and 99th percentile of
//! a decision in microseconds, of a plain scan of all resources for the same tasks (fewer of them), and of a reservation and a
//! release. Then it does the same for 1,000 resources and tasks that have a forecast for each of them, beside the same tasks by
//! the rates of the resources.

mod foreseen;
#[path = "../shared/mod.rs"]
mod shared;

use scheduler::domain::{Candidate, Domain, Objective, Resource, Task};
use scheduler::measure::{Bar, measurement_against_bar};
use scheduler::{Interval, Rate, Seconds, SlotError, SlotTree, Time};
use shared::{Mix, cpu_ns};

const NODES: u32 = 128;
const OBJECTIVES: [Objective; 4] = [
    Objective::EarliestCompletion,
    Objective::Cheapest,
    Objective::LatestStart,
    Objective::LeastWorkLost,
];
/// Mean node-seconds of a reservation: 1 to 64 nodes for 60 to 64,800 s.
const AREA: i64 = 1_053_975;

/// At least `least` nodes and at most `most`.
fn nodes(mix: &mut Mix, least: u32, most: u32) -> u32 {
    least + u32::try_from(mix.below(i64::from(most - least + 1))).unwrap_or(0)
}

/// Resources with `live` reservations in all, spread evenly, and the horizon at which that books so much of them.
fn booked(live: i64, resources: i64, percent: i64) -> (Domain<SlotTree>, Seconds) {
    let mut mix = Mix(1);
    let each = live / resources;
    let horizon = each * AREA * 100 / (percent * i64::from(NODES));
    let mut plans = Vec::new();
    for id in 0..resources {
        let rate = [500_000, 800_000, 1_000_000, 1_250_000][usize::try_from(id % 4).unwrap_or(0)];
        let resource = Resource {
            id: id.cast_unsigned(),
            rate: Rate::from_millionths(rate).unwrap_or_default(),
            price: nodes(&mut mix, 1, 4),
            attributes: std::collections::BTreeMap::default(),
        };
        let mut plan = SlotTree::new(NODES);
        let mut placed = 0;
        while placed < each {
            let (nodes, duration) = (nodes(&mut mix, 1, 64), 60 + mix.below(64_741));
            let window = Interval::new(Time(mix.below(horizon)), Time(horizon));
            // Where the end is full it begins again elsewhere.
            if let Some(start) = plan.earliest_fit(nodes, duration, window) {
                placed += i64::from(plan.reserve(Interval::of(start, duration), nodes).is_ok());
            }
        }
        plans.push((resource, plan));
    }
    let begin = cpu_ns();
    let domain = Domain::new(Interval::new(Time(0), Time(horizon)), plans);
    println!(
        "{resources} resources, {each} reservations each: index built in {} ms",
        (cpu_ns() - begin) / 1_000_000
    );
    (domain, horizon)
}

fn tasks(sort: &str, count: usize, horizon: Seconds) -> Vec<Task> {
    let mut mix = Mix(2);
    let one = |_| {
        let (nodes, work) = match sort {
            "large" => (nodes(&mut mix, 97, 128), 3_600 + mix.below(39_600)),
            "scarce" => (nodes(&mut mix, 121, 128), 86_400 + mix.below(129_600)),
            _ => (nodes(&mut mix, 1, 64), 60 + mix.below(64_741)),
        };
        let last = (horizon - 3 * work).max(1);
        let ready = if sort == "now" { 0 } else { mix.below(last) };
        let factor = if sort == "rigid" { 0 } else { mix.below(4) };
        Task {
            nodes,
            work,
            // Of a slow resource, it takes twice the work.
            window: Interval::of(Time(ready), work + work * factor / 2),
            requires: vec![],
            except: vec![],
            forecasts: None,
        }
    };
    (0..count).map(one).collect()
}

/// Runs each, and prints the times in microseconds.
fn measure<T>(label: &str, tasks: &[T], mut operation: impl FnMut(&T) -> bool) -> u64 {
    let mut samples = Vec::with_capacity(tasks.len());
    let mut yes = 0;
    let begin = cpu_ns();
    for task in tasks {
        let start = cpu_ns();
        yes += u64::from(operation(task));
        samples.push(cpu_ns() - start);
    }
    let mean = (cpu_ns() - begin) / tasks.len().max(1) as u64;
    samples.sort_unstable();
    let at = |percent: usize| samples.get(samples.len() * percent / 100).copied().unwrap_or(0);
    println!(
        "  {label:36} {:>5} of {:>5}  mean {:>9.1}  median {:>9.1}  p99 {:>9.1}",
        yes,
        tasks.len(),
        micros(mean),
        micros(at(50)),
        micros(at(99))
    );
    mean
}

#[expect(clippy::cast_precision_loss, reason = "times are given to a few digits")]
fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// The completion of the plain scan.
fn scan(domain: &Domain<SlotTree>, task: &Task) -> Option<Time> {
    let candidate_on = |(resource, plan): (&Resource, &SlotTree)| {
        let duration = resource.rate.duration(task.work);
        let start = plan.earliest_fit(task.nodes, duration, task.window)?;
        Some((start + duration, resource.id))
    };
    domain
        .iter()
        .filter_map(candidate_on)
        .min()
        .map(|(completion, _)| completion)
}

/// Whether a change of the plan of a candidate's resource succeeds.
fn change(
    domain: &mut Domain<SlotTree>,
    candidate: &Candidate,
    change: impl FnOnce(&mut SlotTree) -> Result<(), SlotError>,
) -> bool {
    let changed = domain.change(candidate.resource, |plan| {
        (change(plan).is_ok(), vec![candidate.slot])
    });
    changed.unwrap_or(false)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is told how much to do")]
fn main() {
    let numbers: Vec<i64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let number = |k: usize, default| numbers.get(k).copied().unwrap_or(default);
    let (live, many) = (number(0, 1_000_000), number(1, 10_000));
    let count = usize::try_from(number(2, 2_000)).unwrap_or(0);
    let mut means = Vec::new();
    for resources in [10, many] {
        let (mut domain, horizon) = booked(live, resources, 70);
        let mut of_size = Vec::new();
        for sort in ["usual", "now", "rigid", "large", "scarce"] {
            let tasks = tasks(sort, count, horizon);
            for objective in OBJECTIVES {
                let label = format!("{sort} {objective:?}");
                of_size.push((
                    label.clone(),
                    measure(&label, &tasks, |task| domain.decide(task, objective).is_ok()),
                ));
            }
            let few = &tasks[..tasks.len().min(50)];
            for task in few {
                let decided = domain.decide(task, Objective::EarliestCompletion).ok();
                assert_eq!(decided.map(|c| c.slot.end), scan(&domain, task), "{task:?}");
            }
            measure(&format!("{sort} plain scan"), few, |task| {
                scan(&domain, task).is_some()
            });
        }
        let mut live = Vec::new();
        measure("decide and reserve", &tasks("usual", count, horizon), |task| {
            let best = domain.decide(task, Objective::EarliestCompletion);
            let placed = best.is_ok_and(|c| change(&mut domain, &c, |plan| plan.reserve(c.slot, task.nodes)));
            live.extend(best.ok().filter(|_| placed).map(|c| (c, task.nodes)));
            placed
        });
        measure("release", &live, |(c, nodes)| {
            change(&mut domain, c, |plan| plan.release(c.slot, *nodes))
        });
        means.push(of_size);
    }
    println!("{many} resources over 10, by the mean:");
    let mut worst = (0.0, "");
    for ((label, few), (_, many)) in means[0].iter().zip(&means[1]) {
        let growth = micros(*many) / micros(*few);
        println!("  {label:36} {growth:>6.1} ×");
        if label.starts_with("scarce") && growth > worst.0 {
            worst = (growth, label);
        }
    }
    let (growth, label) = worst;
    let what = format!("domain: {label} on {many} resources, × ten resources");
    println!("{}", measurement_against_bar(&what, Bar::AtMost(20.0), growth));
    foreseen::run(live / many, count);
}
