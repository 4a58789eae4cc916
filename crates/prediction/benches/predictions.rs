//! What it costs to learn, and to foresee work on many resources.
//!
//! `cargo bench -p prediction --bench predictions -- [RESOURCES [EXECUTIONS]]`: RESOURCES resources (default 1,000) of four rates, a tenth of which
//! have samples of the load of people's working hours, and EXECUTIONS executions (20,000) of twenty applications on a tenth of them. It
//! prints how long learning takes, and how long it takes to foresee work on all resources: for the first time, and again.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use domain::agreement::{Execution, RunOutcome};
use domain::clock::MICROS_PER_SECOND;
use domain::past::{Condition, PastExecution, ResourceHour};
use prediction::{Hold, Ids, Knowledge, Machine, Machines, Work};
use scheduler::measure::{Bar, measurement_against_bar};
use scheduler::prediction::Ladder;
use scheduler::{Interval, Rate, Time};
use uuid::Uuid;

const HOUR: i64 = 3_600;
/// Samples of this many hours.
const HOURS: i64 = 10 * 7 * 24;
const APPLICATIONS: i64 = 20;

fn name(resource: i64) -> String {
    format!("r{resource:05}")
}

fn machines(resources: i64) -> Machines {
    let rate =
        |number: i64| [1_000_000, 1_250_000, 1_600_000, 2_000_000][usize::try_from(number % 4).unwrap_or(0)];
    let machine = |number: i64| Machine {
        rate: Rate::from_millionths(rate(number)).unwrap_or_default(),
        nodes: 64,
        ..Machine::default()
    };
    (0..resources).map(|each| (name(each), machine(each))).collect()
}

fn past(resources: i64, executions: i64) -> Vec<PastExecution> {
    let used = (resources / 10).max(1);
    let mut random = 1_u64;
    let mut below = |most: i64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(random >> 33).unwrap_or(0) % most
    };
    let one = |number: i64| {
        let ended = (number - executions) * 300;
        let run = 60 + below(3_600);
        PastExecution {
            execution: Execution {
                agreement: Uuid::nil(),
                application: format!("a{}", below(APPLICATIONS)),
                version: None,
                arguments: vec![format!("case-{}", below(5))],
                input_bytes: 0,
                output_bytes: 0,
                resource: name(10 * below(used)),
                nodes: 1,
                planned: Interval::of(Time(ended - run), run),
                estimate: run,
                queue_time: below(2_000_000),
                run_time: run * MICROS_PER_SECOND,
                transfer_in: 0,
                transfer_out: 0,
                moved_in: 0,
                moved_out: 0,
                outcome: if below(50) == 0 {
                    RunOutcome::Lost
                } else {
                    RunOutcome::Completed
                },
                ended: ended * MICROS_PER_SECOND,
            },
            party: format!("p{}", below(4)),
            agreed: (ended - run - 600) * MICROS_PER_SECOND,
        }
    };
    (0..executions).map(one).collect()
}

fn hours(resources: i64) -> Vec<ResourceHour> {
    let hours_of = |resource: i64| {
        (-HOURS..0).map(move |hour| {
            let busy = (8..18).contains(&hour.rem_euclid(24));
            ResourceHour {
                resource: name(10 * resource),
                start: Time(hour * HOUR),
                samples: 60,
                condition: Condition {
                    free_cpu: Some(if busy { 200_000 } else { 950_000 } + hour.rem_euclid(7) * 1_000),
                    ..Condition::default()
                },
            }
        })
    };
    (0..(resources / 10).max(1)).flat_map(hours_of).collect()
}

/// The time of each of some calls in milliseconds: the median and the longest.
fn timed(calls: i64, mut call: impl FnMut(i64)) -> (f64, f64) {
    let mut took: Vec<f64> = (0..calls)
        .map(|number| {
            let begun = Instant::now();
            call(number);
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    took.sort_by(f64::total_cmp);
    (took[took.len() / 2], took[took.len() - 1])
}

fn main() {
    let mut sizes = std::env::args().skip(1).filter_map(|size| size.parse().ok());
    let (resources, executions) = (sizes.next().unwrap_or(1_000), sizes.next().unwrap_or(20_000));
    let (past, hours) = (past(resources, executions), hours(resources));
    let machines = machines(resources);
    let ids: Arc<Ids> = Arc::new(machines.keys().cloned().zip(0..).collect());
    let begun = Instant::now();
    let conditions = Knowledge::of(&[], &hours, (machines.clone(), Some(Ladder::All)), Time(0));
    println!(
        "{} resources with {HOURS} hours of samples: fitted in {:.1} s",
        resources / 10,
        begun.elapsed().as_secs_f64()
    );
    drop(conditions);
    let begun = Instant::now();
    let known = Knowledge::of(&past, &[], (machines.clone(), Some(Ladder::All)), Time(0));
    let seconds = begun.elapsed().as_secs_f64();
    println!("{executions} executions: learned in {seconds:.1} s");
    drop(known);
    let known = Knowledge::of(&past, &hours, (machines, Some(Ladder::All)), Time(0));
    let arguments = ["case-1".to_owned()];
    let work = |application| Work {
        party: Some("p1"),
        arguments: Some(&arguments),
        nodes: Some(1),
        ..Work::of(application)
    };
    let names: Vec<String> = (0..APPLICATIONS).map(|each| format!("a{each}")).collect();
    let foresee = |number: i64, ppm: u32| {
        let name = &names[usize::try_from(number % APPLICATIONS).unwrap_or(0)];
        let foreseen = known.foreseen(&work(name), Hold::Sized(ppm), 0);
        black_box(foreseen.map(|foreseen| foreseen.forecasts(&ids)));
    };
    let (median, longest) = timed(APPLICATIONS, |number| foresee(number, 950_000));
    println!(
        "{resources} resources foreseen for the first time: median {median:.2} ms, at most {longest:.2} ms"
    );
    let (median, longest) = timed(1_000, |number| foresee(number, 950_000));
    println!(
        "again: median {:.1} µs, at most {:.1} µs",
        median * 1e3,
        longest * 1e3
    );
    let what = format!("an estimate for {resources} resources that was made before, median, ms");
    println!("{}", measurement_against_bar(&what, Bar::AtMost(1.0), median));
}
