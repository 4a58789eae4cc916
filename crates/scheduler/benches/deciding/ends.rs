//! The effects of an end: the work, the moves, and by how much the waiting requests start earlier.

use crate::shared::{Mix, cpu_ns};
use scheduler::schedule::{DecisionRule, LeastGain};
use scheduler::{Decision, Fraction, Order, Request, Schedule, Time};

const CAPACITY: u32 = 128;
const DAY: i64 = 86_400;
/// As much work as a slice of the service does.
const SLICE_WORK: u64 = scheduler::schedule::BUDGET / 4;
const SLICE_MOVES: usize = 64;

/// A reservation of all nodes for ten hours, and behind it requests for 1 to 8 nodes, 5 to 20 minutes, within 60 days.
fn backlog(waiting: i64) -> Schedule {
    let least = LeastGain {
        seconds: 60,
        of_wait: Fraction::percent(1),
    };
    let schedule = Schedule::new(CAPACITY, Order::Mdf).deciding(DecisionRule::Standing);
    let mut schedule = schedule.gaining(least);
    let mut mix = Mix(5);
    for id in 0..=waiting.cast_unsigned() {
        let (nodes, duration, deadline) = match id {
            0 => (i64::from(CAPACITY), 36_000, 36_001),
            _ => (mix.below(8) + 1, 300 + mix.below(901), 60 * DAY),
        };
        let request = Request {
            id,
            submitted: Time(0),
            ready: Time(1),
            deadline: Time(deadline),
            duration,
            nodes: u32::try_from(nodes).expect("small"),
            revenue: 0,
        };
        let decided = schedule.submit(Time(0), &request);
        assert!(matches!(decided, Decision::Accepted { .. }), "{decided:?}");
    }
    use_free_time(&mut schedule, u64::MAX);
    schedule
}

/// The work and the moves of some slices.
#[derive(Default)]
struct Slices {
    count: u64,
    worst_ns: u64,
    ns: u64,
    work: u64,
    moves: usize,
}

fn use_free_time(schedule: &mut Schedule, slice: u64) -> Slices {
    let mut slices = Slices::default();
    loop {
        let begin = cpu_ns();
        let improved = schedule.improve_some(Time(0), Time::MIN, slice, SLICE_MOVES, |_| true);
        let ns = cpu_ns() - begin;
        slices.count += 1;
        slices.ns += ns;
        slices.worst_ns = slices.worst_ns.max(ns);
        slices.work += improved.work;
        slices.moves += improved.moved.len();
        if improved.done {
            return slices;
        }
    }
}

/// The mean start of all that wait.
#[expect(clippy::cast_precision_loss, reason = "it is shown to a few digits")]
fn mean_start(schedule: &Schedule) -> f64 {
    let starts = schedule
        .placements()
        .map(|placement| placement.slot.start.seconds());
    starts.sum::<i64>() as f64 / schedule.waiting_count().max(1) as f64
}

/// Ends requests with `waiting` waiting, and uses what became free: those that can use it, and all in order as by the published rule.
#[expect(clippy::cast_precision_loss, reason = "times are shown to three digits")]
pub(crate) fn ends(waiting: i64) {
    let full = backlog(waiting);
    println!(
        "{:9} {:9} {:>6} {:>12} {:>9} {:>9} {:>7} {:>9} {:>12}",
        "rule", "ended", "ends", "work/end", "ms/end", "worst ms", "slices", "moves/end", "mean start"
    );
    for rule in [DecisionRule::Standing, DecisionRule::Published] {
        let mut schedule = full.clone().deciding(rule);
        use_free_time(&mut schedule, u64::MAX);
        for (what, count) in [("middle", 20), ("front", 1)] {
            let mut all = Slices::default();
            for nth in 0..count {
                let by_start: Vec<u64> = schedule.placements().map(|placement| placement.id).collect();
                let id = match what {
                    "middle" => by_start[by_start.len() / 2 + 7 * nth],
                    _ => 0,
                };
                schedule.vacate(Time(0), id);
                let slices = use_free_time(&mut schedule, SLICE_WORK);
                all.count += slices.count;
                all.ns += slices.ns;
                all.worst_ns = all.worst_ns.max(slices.worst_ns);
                all.work += slices.work;
                all.moves += slices.moves;
            }
            println!(
                "{:9} {what:9} {count:>6} {:>12} {:>9.2} {:>9.2} {:>7} {:>9.1} {:>12.1}",
                rule.word(),
                all.work / count as u64,
                all.ns as f64 / 1e6 / count as f64,
                all.worst_ns as f64 / 1e6,
                all.count,
                all.moves as f64 / count as f64,
                mean_start(&schedule),
            );
        }
    }
}
