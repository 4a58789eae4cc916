//! Replays a sequence of placements on a plan and measures each phase, so that plans of different make can be compared on
//! the same operations.
//!
//! The clocks are arguments, as all time is here: `bespeak-lab bench planner` passes the real ones.

use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};
use std::hint::black_box;

/// Rows of the query file that are asked without being placed.
pub const QUERY_ROWS: std::ops::Range<usize> = 0..10_000;
/// Rows of the query file that replace a live reservation.
const CHURN_ROWS: std::ops::Range<usize> = 20_000..30_000;
/// The most reservations removed and added in bulk.
const BULK_MAX: usize = 10_000;
/// Operations between two looks at the CPU clock, which is a system call.
const BUDGET_STRIDE: usize = 64;
/// One operation of this many is timed by itself; timing all would cost as much as the fastest operations.
const SAMPLE_STRIDE: usize = 8;

/// The bound that a measurement has to meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar {
    /// More is better.
    AtLeast(f64),
    /// Less is better.
    AtMost(f64),
}

/// A row of a table in Markdown: the measurement, its bar, the value seen, and whether the value meets the bar. A value that is no
/// number does not: nothing was measured. `scripts/bars` collects the rows of all benchmarks.
///
/// ```
/// use scheduler::measure::{Bar, measurement_against_bar};
/// assert_eq!(measurement_against_bar("admission, worst (ms)", Bar::AtMost(50.0), 10.74), "| admission, worst (ms) | ≤ 50 | 10.7 | met |");
/// assert_eq!(measurement_against_bar("offers, × pgbench", Bar::AtLeast(1.0), 0.344), "| offers, × pgbench | ≥ 1 | 0.344 | **missed** |");
/// ```
pub fn measurement_against_bar(what: &str, bar: Bar, seen: f64) -> String {
    let (sign, bound, is_met) = match bar {
        Bar::AtLeast(bound) => ('≥', bound, seen >= bound),
        Bar::AtMost(bound) => ('≤', bound, seen <= bound),
    };
    let verdict = if is_met { "met" } else { "**missed**" };
    let digits = match seen.abs() {
        small if small < 1.0 => 3,
        one_digit if one_digit < 10.0 => 2,
        _ => 1,
    };
    format!("| {what} | {sign} {bound} | {seen:.digits$} | {verdict} |")
}

/// The object of a measurement: a plan that finds room and keeps reservations.
pub trait MeasuredPlan {
    /// See [`SlotTree::earliest_fit`].
    fn earliest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time>;
    /// Takes nodes that are known to be free.
    fn reserve(&mut self, interval: Interval, nodes: u32);
    /// Gives back nodes that are known to be in use.
    fn release(&mut self, interval: Interval, nodes: u32);
    /// The bytes allocated.
    fn memory_bytes(&self) -> usize;
}

impl MeasuredPlan for SlotTree {
    fn earliest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time> {
        SlotTree::earliest_fit(self, nodes, duration, window)
    }

    fn reserve(&mut self, interval: Interval, nodes: u32) {
        let done = SlotTree::reserve(self, interval, nodes);
        debug_assert_eq!(done, Ok(()), "the replay reserves only slots that fit");
    }

    fn release(&mut self, interval: Interval, nodes: u32) {
        let done = SlotTree::release(self, interval, nodes);
        debug_assert_eq!(done, Ok(()), "the replay releases its own slots");
    }

    fn memory_bytes(&self) -> usize {
        SlotTree::memory_bytes(self)
    }
}

/// One row of the request or the query file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The request's own number.
    pub id: u64,
    /// Ready time as a fraction of the ready window, in units of 2⁻³².
    pub ready: u32,
    /// Nodes asked for.
    pub nodes: u32,
    /// Seconds asked for.
    pub duration: Seconds,
    /// Which live reservation it replaces in the churn, as a fraction of their number, in units of 2⁻³².
    pub victim: u32,
}

/// The extent of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredExtent {
    /// Placements end by this second.
    pub horizon: Seconds,
    /// Ready times are spread over this many seconds from the start.
    pub ready_window: Seconds,
}

impl MeasuredExtent {
    fn window(self, row: &Row) -> Interval {
        let ready = (i128::from(row.ready) * i128::from(self.ready_window)) >> 32;
        // The product is less than 2³² times the window, so it fits again; a window of no size has all ready at 0.
        let ready = i64::try_from(ready).unwrap_or(0);
        Interval::new(Time(ready), Time(self.horizon))
    }
}

/// The clocks of a measurement, each in nanoseconds from any origin.
pub struct Clocks<'a> {
    /// CPU time of this thread.
    pub cpu: &'a dyn Fn() -> u64,
    /// A clock that is cheap to read, for single operations.
    pub wall: &'a dyn Fn() -> u64,
    /// CPU time after which a phase ends, if any.
    pub budget: Option<u64>,
}

/// The time and the operations of one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// `load`, `query_random`, `query_now`, `release`, `reserve` or `churn`.
    pub name: &'static str,
    /// Operations done.
    pub operations: usize,
    /// CPU nanoseconds for all of them.
    pub cpu_ns: u64,
    /// Median of the timed operations, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile of the timed operations, in nanoseconds.
    pub p99_ns: u64,
}

impl Phase {
    /// Operations per CPU second.
    #[expect(clippy::cast_precision_loss, reason = "a rate is given to three digits")]
    pub fn rate(&self) -> f64 {
        self.operations as f64 * 1e9 / self.cpu_ns.max(1) as f64
    }
}

/// The result of a replay.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The start of each request of the load, in file order; `None` where it was refused.
    pub starts: Vec<Option<Time>>,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// Live reservations after the load.
    pub live: usize,
    /// Bytes of the plan at that time.
    pub memory_bytes: usize,
}

/// Loads `requests` in order at their earliest fit, then queries, removes and adds in bulk, and replaces.
pub fn measure_replay(
    plan: &mut impl MeasuredPlan,
    requests: &[Row],
    queries: &[Row],
    extent: MeasuredExtent,
    clocks: &Clocks,
) -> Replay {
    let mut starts = Vec::with_capacity(requests.len());
    let mut live: Vec<(u64, Interval, u32)> = Vec::with_capacity(requests.len());
    let place = |plan: &mut _, row: &Row| {
        let start = MeasuredPlan::earliest_fit(plan, row.nodes, row.duration, extent.window(row))?;
        let interval = Interval::of(start, row.duration);
        MeasuredPlan::reserve(plan, interval, row.nodes);
        Some((row.id, interval, row.nodes))
    };
    let mut phases = vec![measure_phase_of_replay("load", requests.len(), clocks, |k| {
        let placed = place(plan, &requests[k]);
        starts.push(placed.map(|(_, interval, _)| interval.start));
        live.extend(placed);
    })];
    let (count, memory_bytes) = (live.len(), plan.memory_bytes());

    let rows = queries
        .get(QUERY_ROWS)
        .unwrap_or(&queries[..queries.len().min(QUERY_ROWS.end)]);
    for (name, at_once) in [("query_random", false), ("query_now", true)] {
        phases.push(measure_phase_of_replay(name, rows.len(), clocks, |k| {
            let row = &rows[k];
            let ready = if at_once { 0 } else { row.ready };
            let window = extent.window(&Row { ready, ..*row });
            // The answer must be used, or an optimiser might leave the question out.
            black_box(plan.earliest_fit(row.nodes, row.duration, window));
        }));
    }

    let mut bulk: Vec<usize> = (0..live.len()).collect();
    bulk.sort_by_key(|k| live[*k].0);
    bulk.truncate((requests.len() / 10).min(BULK_MAX));
    let release = measure_phase_of_replay("release", bulk.len(), clocks, |k| {
        plan.release(live[bulk[k]].1, live[bulk[k]].2);
    });
    let released = release.operations;
    let reserve = measure_phase_of_replay("reserve", released, clocks, |k| {
        plan.reserve(live[bulk[k]].1, live[bulk[k]].2);
    });
    for k in &bulk[reserve.operations..released] {
        plan.reserve(live[*k].1, live[*k].2);
    }

    let rows = queries
        .get(CHURN_ROWS.start..CHURN_ROWS.end.min(queries.len()))
        .unwrap_or_default();
    let mut numbered: Vec<Option<(u64, Interval, u32)>> = live.into_iter().map(Some).collect();
    let churn = measure_phase_of_replay("churn", rows.len(), clocks, |k| {
        let row = &rows[k];
        // Less than the number of live reservations.
        let first = ((u64::from(row.victim) * numbered.len() as u64) >> 32) as usize;
        let next = (first..numbered.len())
            .chain(0..first)
            .find(|v| numbered[*v].is_some());
        let Some((number, (_, interval, nodes))) = next.and_then(|v| Some((v, numbered[v]?))) else {
            return;
        };
        plan.release(interval, nodes);
        numbered[number] = place(plan, row);
    });
    phases.extend([release, reserve, churn]);
    Replay {
        starts,
        phases,
        live: count,
        memory_bytes,
    }
}

/// Does operations `0..count` until the budget is used up.
fn measure_phase_of_replay(
    name: &'static str,
    count: usize,
    clocks: &Clocks,
    mut operation: impl FnMut(usize),
) -> Phase {
    let mut samples = Vec::with_capacity(count / SAMPLE_STRIDE + 1);
    let begin = (clocks.cpu)();
    let mut operations = 0;
    while operations < count {
        if operations % BUDGET_STRIDE == BUDGET_STRIDE - 1
            && clocks
                .budget
                .is_some_and(|budget| (clocks.cpu)() - begin > budget)
        {
            break;
        }
        if operations % SAMPLE_STRIDE == 0 {
            let start = (clocks.wall)();
            operation(operations);
            samples.push((clocks.wall)() - start);
        } else {
            operation(operations);
        }
        operations += 1;
    }
    let cpu_ns = (clocks.cpu)() - begin;
    samples.sort_unstable();
    let percentile = |p: usize| samples.get(samples.len() * p / 100).copied().unwrap_or(0);
    Phase {
        name,
        operations,
        cpu_ns,
        p50_ns: percentile(50),
        p99_ns: percentile(99),
    }
}
