//! Admission with rescheduling beside the plain algorithm: the same decisions, and how much sooner.
//!
//! `cargo bench -p scheduler --bench admission -- [WAITING [DECISIONS [SLACK]]]` fills one resource of 128 nodes to 70 % with
//! WAITING requests (default 10,000), and then lets both decide about DECISIONS more (default 200). Windows are longer than the
//! duration by up to SLACK durations (default 20).
//!
//! Then the fast one alone decides about lists that ask for 130 % of the resource, of 4,000 requests each, where a third is
//! refused.

#[path = "../../tests/scheduler/plain/adopted.rs"]
mod adopted;
#[path = "../../tests/scheduler/plain/mod.rs"]
mod plain;
#[path = "../shared/mod.rs"]
mod shared;

use plain::Plain;
use scheduler::measure::{Bar, measurement_against_bar};
use scheduler::{Decision, Order, Request, Schedule, Time};
use shared::{Mix, cpu_ns};

const CAPACITY: u32 = 128;
const LOAD_PERCENT: i64 = 70;
const ORDERS: [(&str, Order); 5] = [
    ("EDF", Order::Edf),
    ("FIFO", Order::Fifo),
    ("LFF", Order::Lff),
    ("BJF", Order::Bjf),
    ("MDF", Order::Mdf),
];

/// Up to 64 nodes for up to 18 hours, ready within `horizon`, with up to `slack` times its duration of slack.
fn request(mix: &mut Mix, id: u64, now: Time, horizon: i64, slack: i64) -> Request {
    let duration = mix.below(64_741) + 60;
    let ready = now + mix.below(horizon);
    let slack = duration * mix.below(slack * 100) / 100;
    Request {
        id,
        submitted: now,
        ready,
        deadline: ready + duration + slack,
        duration,
        nodes: u32::try_from(mix.below(64) + 1).expect("small"),
        revenue: 0,
    }
}

fn timed<T>(times: &mut Vec<u64>, work: impl FnOnce() -> T) -> T {
    let start = cpu_ns();
    let result = work();
    times.push(cpu_ns() - start);
    result
}

fn percentile(times: &[u64], p: usize) -> u64 {
    times[(times.len() * p / 100).min(times.len() - 1)]
}

/// Lists that ask for more than there is: mean and worst decision in each order.
#[expect(clippy::cast_precision_loss, reason = "times are shown to three digits")]
fn crowded() {
    const REQUESTS: u32 = 4_000;
    const ASKED_PERCENT: i64 = 130;
    let horizon = horizon(REQUESTS, ASKED_PERCENT);
    println!(
        "{:5} {:>7} {:>9} {:>12} {:>12}",
        "order", "windows", "refused", "mean us", "worst us"
    );
    for slack in [1, 5, 20] {
        for (name, order) in ORDERS {
            let mut mix = Mix(7);
            let mut schedule = Schedule::new(CAPACITY, order);
            let (mut times, mut refused) = (Vec::new(), 0);
            for id in 0..u64::from(REQUESTS) {
                let newcomer = request(&mut mix, id, Time(0), horizon, slack);
                let decision = timed(&mut times, || schedule.submit(Time(0), &newcomer));
                refused += u32::from(matches!(decision, Decision::Refused { .. }));
            }
            let mean = times.iter().sum::<u64>() as f64 / 1e3 / times.len() as f64;
            let worst = times.iter().max().copied().unwrap_or(0) as f64 / 1e3;
            println!("{name:5} {slack:>7} {refused:>9} {mean:>12.1} {worst:>12.0}");
        }
    }
}

/// Seconds over which ready times are spread so that `requests` requests ask for `percent` of the resource. A request takes
/// 32,400 s on 32.5 nodes on average.
fn horizon(requests: u32, percent: i64) -> i64 {
    i64::from(requests) * 32_400 * 325 / 10 * 100 / (i64::from(CAPACITY) * percent)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is told how much to do")]
#[expect(clippy::cast_precision_loss, reason = "times are shown to three digits")]
fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let waiting: u32 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(10_000);
    let decisions: usize = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(200);
    let slack: i64 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(20);
    let horizon = horizon(waiting, LOAD_PERCENT);
    println!(
        "{:5} {:>9} {:>6} {:>27} {:>27} {:>15}",
        "order", "accepted", "moved", "fast p50/p99 us", "plain p50/p99 us", "ratio p50/p99"
    );
    for (name, order) in ORDERS {
        let mut mix = Mix(1);
        let mut now = Time(0);
        let mut fast = Schedule::new(CAPACITY, order);
        let (mut id, mut accepted) = (0, 0);
        while accepted < waiting {
            let decision = fast.submit(now, &request(&mut mix, id, now, horizon, slack));
            accepted += u32::from(matches!(decision, Decision::Accepted { .. }));
            id += 1;
        }
        let mut plain = Plain::of(&fast, order);
        let (mut quick, mut slow) = (Vec::new(), Vec::new());
        let (mut accepted, mut moves) = (0, 0);
        for _ in 0..decisions {
            now = now + 60;
            let newcomer = request(&mut mix, id, now, horizon, slack);
            id += 1;
            let decision = timed(&mut quick, || fast.submit(now, &newcomer));
            assert_eq!(
                decision,
                timed(&mut slow, || plain.submit(now, &newcomer)),
                "{name} decides otherwise"
            );
            if let Decision::Accepted { moved, .. } = decision {
                accepted += 1;
                moves += moved.len();
            }
        }
        quick.sort_unstable();
        slow.sort_unstable();
        let [a, b, c, d] = [(&quick, 50), (&quick, 99), (&slow, 50), (&slow, 99)]
            .map(|(t, p)| percentile(t, p) as f64 / 1e3);
        println!(
            "{name:5} {accepted:>9} {moves:>6} {a:>13.1}/{b:>13.1} {c:>13.0}/{d:>13.0} {:>7.0}/{:>7.0}",
            c / a,
            d / b
        );
        for (what, bar, ratio) in [("median", 100.0, c / a), ("99th percentile", 10.0, d / b)] {
            let what = format!("admission: {name}, spread windows, {what}, × plain");
            println!("{}", measurement_against_bar(&what, Bar::AtLeast(bar), ratio));
        }
    }
    crowded();
}
