//! Deciding in time: admission beside the plain algorithm on lists of many kinds, and alone where much waits.
//!
//! `cargo bench -p scheduler --bench deciding -- lists [WAITING [DECISIONS]]` makes the last DECISIONS decisions (default all)
//! about lists of WAITING requests (default 1,000) without a budget, with one, and by the plain algorithm. `… -- waiting [WAITING
//! [DECISIONS]]` makes DECISIONS (default 300) with WAITING requests (default 100,000) in the plan, and asks for the alternatives
//! and relaxations of refused requests. `… -- ends [WAITING]` ends requests in the middle and in front of WAITING ones (default
//! 100,000), and has others use what became free. `… -- bars` makes both at the sizes for which there are bars, and prints which of them
//! are met. Names of lists and orders, such as `Packed EDF`, leave out the others.

#[path = "../../tests/scheduler/plain/adopted.rs"]
mod adopted;
mod ends;
mod lists;
#[path = "../../tests/scheduler/plain/mod.rs"]
mod plain;
#[path = "../shared/mod.rs"]
mod shared;

use lists::{KINDS, Kind, ORDERS, request, settled};
use plain::Plain;
use scheduler::alternatives::AlternativeLimits;
use scheduler::measure::{self, measurement_against_bar};
use scheduler::refusal::Bounds;
use scheduler::schedule::BUDGET;
use scheduler::{Decision, Fraction, Interval, Order, Request, Time};
use shared::{Mix, cpu_ns};

/// Times of decisions, and the answers to the requests.
#[derive(Default)]
struct Tally {
    times: Vec<u64>,
    node_seconds: u128,
    accepted: u32,
    cut_short: u32,
}

impl Tally {
    fn timed<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = cpu_ns();
        let result = work();
        self.times.push(cpu_ns() - start);
        result
    }

    fn count(&mut self, request: &Request, decision: &Decision) {
        match decision {
            Decision::Accepted { .. } => {
                self.accepted += 1;
                self.node_seconds += request.area();
            }
            Decision::Refused { cut_short, .. } => self.cut_short += u32::from(*cut_short),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "times are shown to three digits")]
    fn total_ms(&self) -> f64 {
        self.times.iter().sum::<u64>() as f64 / 1e6
    }

    /// 0 where nothing was timed.
    #[expect(clippy::cast_precision_loss, reason = "times are shown to three digits")]
    fn percentile_ms(&self, per_cent: usize) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = (times.len() * per_cent / 100).min(times.len().saturating_sub(1));
        times.get(at).map_or(0.0, |time| *time as f64 / 1e6)
    }

    #[expect(clippy::cast_precision_loss, reason = "shares are shown to three digits")]
    fn cut_percent(&self) -> f64 {
        100.0 * f64::from(self.cut_short) / self.times.len().max(1) as f64
    }
}

/// Which lists and orders are measured.
struct ListFilter(Vec<String>);

impl ListFilter {
    fn cases(&self) -> impl Iterator<Item = (Kind, &'static str, Order)> {
        let named = |name: &str| self.0.iter().any(|only| only == name);
        let kinds = KINDS.map(|kind| (format!("{kind:?}"), kind));
        let any_kind = !kinds.iter().any(|(name, _)| named(name));
        let any_order = !ORDERS.iter().any(|(name, _)| named(name));
        let kinds = kinds.into_iter().filter(move |(name, _)| any_kind || named(name));
        kinds.flat_map(move |(_, kind)| {
            let orders = ORDERS.into_iter();
            let orders = orders.filter(move |(name, _)| any_order || named(name));
            orders.map(move |(name, order)| (kind, name, order))
        })
    }
}

/// The worst that was seen against a bar.
struct Bar {
    what: String,
    most: f64,
    unit: &'static str,
    seen: f64,
    of: String,
}

impl Bar {
    fn new(what: impl Into<String>, most: f64, unit: &'static str) -> Self {
        Self {
            what: what.into(),
            most,
            unit,
            seen: f64::MIN,
            of: String::new(),
        }
    }

    fn see(&mut self, value: f64, kind: Kind, order: &str) {
        if value > self.seen {
            (self.seen, self.of) = (value, format!("{kind:?} {order}"));
        }
    }
}

/// The last decisions about lists: without a budget, with one, and by the plain algorithm.
#[expect(clippy::cast_precision_loss, reason = "shares are shown to three digits")]
fn lists(only: &ListFilter, waiting: i64, decisions: i64) -> Vec<Bar> {
    let mut bars = vec![
        Bar::new(format!("lists of {waiting}, without a budget"), 2.0, "× plain"),
        Bar::new(format!("lists of {waiting}, within the budget"), 2.0, "× plain"),
        Bar::new(
            format!("lists of {waiting}, node-hours lost to the budget"),
            0.5,
            "% of plain's",
        ),
        Bar::new(
            format!("lists of {waiting}, refusals cut short"),
            1.0,
            "% of decisions",
        ),
    ];
    println!(
        "{:7} {:5} {:>7} {:>6} {:>10} {:>7} {:>9} {:>9} {:>8} {:>7} {:>6}",
        "list",
        "order",
        "waiting",
        "taken",
        "plain ms",
        "ratio",
        "p99 ms",
        "worst ms",
        "budget",
        "nodeh%",
        "cut%"
    );
    let first = (waiting - decisions).max(0);
    for (kind, name, order) in only.cases() {
        let mut mix = Mix(7);
        let mut fast = settled(&mut mix, kind, order, first, waiting);
        let mut budgeted = fast.clone().budgeted(Some(BUDGET));
        let mut plain = Plain::of(&fast, order);
        let before: u128 = plain.waiting.iter().map(|placed| placed.request.area()).sum();
        let [mut slow, mut quick, mut bounded] = [Tally::default(), Tally::default(), Tally::default()];
        for id in first..waiting {
            let request = request(&mut mix, kind, id.cast_unsigned(), waiting, Time(0));
            let decision = slow.timed(|| plain.submit(Time(0), &request));
            slow.count(&request, &decision);
            let same = quick.timed(|| fast.submit(Time(0), &request));
            assert_eq!(same, decision, "{kind:?} {name} decides otherwise");
            let decision = bounded.timed(|| budgeted.submit(Time(0), &request));
            bounded.count(&request, &decision);
        }
        let node_hours =
            100.0 * (before + bounded.node_seconds) as f64 / (before + slow.node_seconds).max(1) as f64;
        let [ratio, budget] = [&quick, &bounded].map(|tally| tally.total_ms() / slow.total_ms());
        for (bar, seen) in bars
            .iter_mut()
            .zip([ratio, budget, 100.0 - node_hours, bounded.cut_percent()])
        {
            bar.see(seen, kind, name);
        }
        println!(
            "{:7} {name:5} {first:>7} {:>6} {:>10.1} {ratio:>7.2} {:>9.2} {:>9.2} {budget:>8.2} {node_hours:>7.2} {:>6.2}",
            format!("{kind:?}"),
            slow.accepted,
            slow.total_ms(),
            bounded.percentile_ms(99),
            bounded.percentile_ms(100),
            bounded.cut_percent(),
        );
    }
    bars
}

/// Decisions within the budget, and the explanations of refusals, with `waiting` requests waiting.
fn waiting(only: &ListFilter, waiting: i64, decisions: i64) -> Vec<Bar> {
    let mut bars = vec![
        Bar::new(
            format!("admission with {waiting} waiting, 99th percentile"),
            10.0,
            "ms",
        ),
        Bar::new(format!("admission with {waiting} waiting, worst"), 50.0, "ms"),
        Bar::new(
            format!("alternatives and relaxations with {waiting} waiting, worst"),
            20.0,
            "ms",
        ),
    ];
    println!(
        "{:7} {:5} {:>7} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "list",
        "order",
        "waiting",
        "accepted",
        "cut%",
        "p50 ms",
        "p99 ms",
        "worst ms",
        "alt p99",
        "alt worst"
    );
    let limits = AlternativeLimits {
        phi_max: Fraction::percent(100),
        count_max: 5,
    };
    for (kind, name, order) in only.cases() {
        let mut mix = Mix(3);
        let mut schedule = settled(&mut mix, kind, order, waiting, waiting).budgeted(Some(BUDGET));
        let [mut tally, mut others] = [Tally::default(), Tally::default()];
        let before = schedule.waiting_count();
        let mut now = Time(0);
        for id in 0..decisions {
            now = now + i64::from(id % 3 == 0);
            let mut newcomer = request(&mut mix, kind, (waiting + id).cast_unsigned(), waiting, now);
            if id % 4 == 3 {
                // Now or never.
                newcomer.deadline = newcomer.ready + newcomer.duration;
            }
            let decision = tally.timed(|| schedule.submit(now, &newcomer));
            tally.count(&newcomer, &decision);
            if matches!(decision, Decision::Refused { .. }) && others.times.len() < 100 {
                let bounds = Bounds {
                    times: Interval::new(now, newcomer.deadline + 30 * newcomer.duration),
                    nodes_min: 1,
                    duration_min: 1,
                };
                others.timed(|| {
                    let alternatives = schedule.alternatives(now, &newcomer, limits);
                    (alternatives, schedule.relaxations(&newcomer, &bounds))
                });
            }
        }
        let [p99, worst] = [99, 100].map(|per_cent| tally.percentile_ms(per_cent));
        let told = others.percentile_ms(100);
        for (bar, seen) in bars.iter_mut().zip([p99, worst, told]) {
            bar.see(seen, kind, name);
        }
        println!(
            "{:7} {name:5} {before:>7} {:>8} {:>6.2} {:>9.2} {p99:>9.2} {worst:>9.2} {:>9.2} {told:>9.2}",
            format!("{kind:?}"),
            tally.accepted,
            tally.cut_percent(),
            tally.percentile_ms(50),
            others.percentile_ms(99),
        );
    }
    bars
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is told how much to do")]
fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let numbers: Vec<i64> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let number = |at: usize, or: i64| numbers.get(at).copied().unwrap_or(or);
    let what = arguments.first().map(String::as_str);
    let only = ListFilter(arguments.clone());
    let bars: Vec<Bar> = match what {
        Some("lists") => lists(&only, number(0, 1_000), number(1, i64::MAX)),
        Some("waiting") => waiting(&only, number(0, 100_000), number(1, 300)),
        Some("ends") => {
            ends::ends(number(0, 100_000));
            Vec::new()
        }
        // All of a list of 10,000 by the plain algorithm takes a minute in each of 35 cases.
        _ => [
            lists(&only, 1_000, 1_000),
            lists(&only, 10_000, number(0, 100)),
            waiting(&only, 10_000, 300),
            waiting(&only, 100_000, 300),
        ]
        .into_iter()
        .flatten()
        .collect(),
    };
    println!();
    for Bar {
        what,
        most,
        unit,
        seen,
        of: bar,
    } in bars
    {
        let what = format!("deciding: {what}, worst in {bar} ({unit})");
        println!(
            "{}",
            measurement_against_bar(&what, measure::Bar::AtMost(most), seen)
        );
    }
}
