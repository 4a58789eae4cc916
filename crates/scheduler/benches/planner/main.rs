//! The slot tree beside a sorted vector and an ordered map on the same operations, in one process.
//!
//! `cargo bench -p scheduler --bench planner -- [N [REGIMES [alone]]]` prints a table of operations per CPU second, N reservations
//! (default 100,000) in three regimes: L (pure size), W (wide overlap) and B (a packed backlog). All three must give the
//! same starts. The line `look` is a bare range lookup in a `BTreeMap` of N keys.

mod peers;
#[path = "../shared/mod.rs"]
mod shared;

use peers::{OrderedMap, SortedVec};
use rustix::time::ClockId;
use scheduler::SlotTree;
use scheduler::measure::{
    Bar, Clocks, MeasuredExtent, MeasuredPlan, QUERY_ROWS, Replay, Row, measure_replay,
    measurement_against_bar,
};
use shared::{Mix, cpu_ns, nanoseconds};
use std::collections::BTreeMap;

/// Range lookups per CPU second in an ordered map of `count` keys, at times spread over `horizon`: the cost of one descent.
#[expect(clippy::cast_precision_loss, reason = "a rate is shown to three digits")]
fn lookups(count: u32, horizon: i64) -> f64 {
    let mut mix = Mix(3);
    let mut time = || mix.below(horizon);
    let map: BTreeMap<i64, u32> = (0..count).map(|k| (time(), k)).collect();
    // As many as there are queries, on caches as cold.
    let times: Vec<i64> = QUERY_ROWS.map(|_| time()).collect();
    let begin = cpu_ns();
    let found = times
        .iter()
        .filter(|t| map.range(**t..).next().is_some_and(|(_, k)| *k != u32::MAX))
        .count();
    let ns = cpu_ns() - begin;
    // The answers must be used, or an optimiser might leave the questions out.
    assert!(found <= times.len());
    times.len() as f64 * 1e9 / ns.max(1) as f64
}

fn rows(count: u32, seed: u64) -> Vec<Row> {
    let mut mix = Mix(seed);
    (0..u64::from(count))
        .map(|id| Row {
            id,
            ready: (mix.next() >> 32) as u32,
            nodes: (mix.next() % 64) as u32 + 1,
            duration: i64::from((mix.next() % 64_741) as u32) + 60,
            victim: (mix.next() >> 32) as u32,
        })
        .collect()
}

fn run(mut plan: impl MeasuredPlan, requests: &[Row], queries: &[Row], extent: MeasuredExtent) -> Replay {
    let clocks = Clocks {
        cpu: &cpu_ns,
        wall: &|| nanoseconds(ClockId::Monotonic),
        budget: Some(3_000_000_000),
    };
    measure_replay(&mut plan, requests, queries, extent, &clocks)
}

/// How often each regime is measured.
const ROUNDS: usize = 5;

/// By how much the tree has to be faster in a regime: the phase, the other plan, the factor.
fn bars_of(regime: &str) -> [(&'static str, &'static str, f64); 3] {
    let (query, change) = match regime {
        "L" => (1.0, 1.5),
        "W" => (2.0, 5.0),
        _ => (20.0, 1.0),
    };
    [
        ("query_random", "vec", query),
        ("reserve", "map", change),
        ("release", "map", change),
    ]
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is told how much to do")]
fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let count: u32 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(100_000);
    let only = arguments.next().unwrap_or_else(|| "LWB".into());
    let alone = arguments.next().is_some();
    let requests = rows(count, 1);
    let queries = rows(30_000, 2);
    let horizon = i64::from(count) * 12_960;
    let pure = MeasuredExtent {
        horizon,
        ready_window: horizon - 604_800,
    };
    let wide = MeasuredExtent {
        horizon: 7_776_000,
        ready_window: 7_776_000 - 604_800,
    };
    let packed = MeasuredExtent {
        horizon,
        ready_window: 0,
    };
    let regimes = [
        ("L", 128, pure),
        ("W", (128 * count).div_ceil(600), wide),
        ("B", 128, packed),
    ];
    println!(
        "{:3} {:5} {:>13} {:>13} {:>13} {:>13} {:>13} {:>13} {:>7}",
        "", "", "load", "query_random", "query_now", "release", "reserve", "churn", "bytes"
    );
    for (name, capacity, extent) in regimes {
        if !only.contains(name) {
            continue;
        }
        // In turn, as a phase of a few milliseconds says little by itself.
        let rounds: Vec<_> = (0..if alone { 1 } else { ROUNDS })
            .map(|_| {
                let mut plans = vec![("tree", run(SlotTree::new(capacity), &requests, &queries, extent))];
                if !alone {
                    plans.push(("vec", run(SortedVec::new(capacity), &requests, &queries, extent)));
                    plans.push(("map", run(OrderedMap::new(capacity), &requests, &queries, extent)));
                }
                plans
            })
            .collect();
        let starts = &rounds[0][0].1.starts;
        for (plan, replay) in rounds.iter().flatten() {
            let rates: Vec<String> = replay
                .phases
                .iter()
                .map(|p| format!("{:>13.0}", p.rate()))
                .collect();
            println!(
                "{name:3} {plan:5} {} {:>7}",
                rates.join(" "),
                replay.memory_bytes / replay.live.max(1)
            );
            let same = starts.iter().zip(&replay.starts).all(|(a, b)| a == b);
            assert!(same, "{plan} places otherwise");
        }
        for (phase, peer, bar) in bars_of(name) {
            let rate = |plans: &[(&str, Replay)], plan: &str| {
                let (_, replay) = plans.iter().find(|(one_plan, _)| *one_plan == plan)?;
                Some(
                    replay
                        .phases
                        .iter()
                        .find(|one_phase| one_phase.name == phase)?
                        .rate(),
                )
            };
            let ratio = |plans: &Vec<_>| Some(rate(plans, "tree")? / rate(plans, peer)?);
            let mut ratios: Vec<f64> = rounds.iter().filter_map(ratio).collect();
            ratios.sort_by(f64::total_cmp);
            if let Some(median) = ratios.get(ratios.len() / 2) {
                let what = format!("tree: {name} {phase}, × {peer}, median of {}", ratios.len());
                println!("{}", measurement_against_bar(&what, Bar::AtLeast(bar), *median));
            }
        }
        if name == "L" && !alone {
            println!("{name:3} {:5} {:>27.0}", "look", lookups(count, horizon));
        }
    }
}
