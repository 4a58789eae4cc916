//! Deciding in time: admission beside the plain algorithm on lists of many kinds, and alone where much waits.
//!
//! `cargo bench -p scheduler --bench deciding -- [lists [WAITING [SECONDS]]] [waiting [WAITING [DECISIONS]]]` decides whole lists
//! of WAITING requests (default 1,000), as far as the plain algorithm comes in SECONDS of processor time (default 5), and
//! then about DECISIONS more (default 300) with so many waiting (default 100,000).

#[path = "../../tests/plain/mod.rs"]
mod plain;

use plain::Plain;
use rustix::time::{ClockId, clock_gettime};
use scheduler::alternatives::Limits;
use scheduler::{Decision, Fraction, Order, Request, Schedule, SlotTree, Time};

const CAPACITY: u32 = 128;
const DAY: i64 = 86_400;
/// The work that the service lets a decision do.
const BUDGET: u64 = scheduler::admission::BUDGET;
const ORDERS: [(&str, Order); 7] = [
    ("FIFO", Order::Fifo),
    ("RAND", Order::Shuffle { seed: 1 }),
    ("BJF", Order::Bjf),
    ("LFF", Order::Lff),
    ("EDF", Order::Edf),
    ("MDF", Order::Mdf),
    ("BRF", Order::Brf),
];

/// How the requests of a list are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Ready times all over the horizon, windows longer by up to 20 durations.
    Spread,
    /// Ready now, due in 30 to 60 days, 95 % of the first 30 days asked for.
    Packed,
    /// One size, one duration, one window, 130 % asked for.
    Equal,
    /// Packed, from a minute to three days, one of five years among them.
    Mixed,
    /// Packed, a fifth due within hours.
    Urgent,
}

const KINDS: [Kind; 5] = [Kind::Spread, Kind::Packed, Kind::Equal, Kind::Mixed, Kind::Urgent];

/// CPU nanoseconds of this thread.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).cast_unsigned()
}

/// Well-mixed numbers below a bound (splitmix64).
struct Mix(u64);

impl Mix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is at least 1.
    fn below(&mut self, bound: i64) -> i64 {
        let product = u128::from(self.next()) * u128::from(bound.cast_unsigned());
        i64::try_from(product >> 64).expect("below an i64")
    }
}

/// The `id`-th of `count` requests of a kind, made at `now`.
fn request(mix: &mut Mix, kind: Kind, id: u64, count: i64, now: Time) -> Request {
    // Node-seconds that the resource has in 30 days, for each request.
    let share = i64::from(CAPACITY) * 30 * DAY / count;
    let nodes = match kind {
        Kind::Equal => 8,
        Kind::Spread => mix.below(64) + 1,
        _ => mix.below(16) + 1,
    };
    let mean = (share * 95 / 100 * 2 / 17).max(4);
    let duration = match kind {
        Kind::Spread => mix.below(64_741) + 60,
        Kind::Packed | Kind::Urgent => mean / 2 + mix.below(mean),
        Kind::Equal => (share * 13 / 10 / 8).max(1),
        Kind::Mixed if id == 17 => 5 * 365 * DAY,
        // Even over orders of magnitude, up to three days where few share the resource.
        Kind::Mixed => (60 << mix.below(13)).min(3 * DAY).min(mean * 4),
    };
    let (ready, slack) = match kind {
        Kind::Spread => {
            let horizon = count * 32_400 * 325 / 10 * 100 / (i64::from(CAPACITY) * 70);
            (mix.below(horizon), duration * mix.below(2_000) / 100)
        }
        Kind::Equal => (0, 30 * DAY - duration),
        Kind::Urgent if mix.below(5) == 0 => (0, mix.below(6 * 3_600)),
        _ => (0, (30 * DAY + mix.below(30 * DAY) - duration).max(0)),
    };
    Request {
        id,
        submitted: now,
        ready: now + ready,
        deadline: now + (ready + duration + slack),
        duration,
        nodes: u32::try_from(nodes).expect("small"),
        revenue: (mix.below(1_000) + 1).cast_unsigned(),
    }
}

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

    #[expect(clippy::cast_precision_loss, reason = "times are shown to three digits")]
    fn percentile_ms(&self, per_cent: usize) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times[(times.len() * per_cent / 100).min(times.len() - 1)] as f64 / 1e6
    }
}

/// Whole lists: the fast one without a budget, the same with one, and the plain one.
#[expect(clippy::cast_precision_loss, reason = "shares are shown to three digits")]
fn lists(waiting: i64, seconds: u64) {
    println!(
        "{:7} {:5} {:>6} {:>6} {:>10} {:>7} {:>9} {:>9} {:>8} {:>7} {:>6}",
        "list",
        "order",
        "count",
        "taken",
        "plain ms",
        "ratio",
        "p99 ms",
        "worst ms",
        "budget",
        "nodeh%",
        "cut%"
    );
    for kind in KINDS {
        for (name, order) in ORDERS {
            let mut mix = Mix(7);
            let mut plain = Plain::new(CAPACITY, order, None);
            let mut fast = Schedule::new(CAPACITY, order);
            let mut budgeted = Schedule::new(CAPACITY, order).budgeted(Some(BUDGET));
            let [mut slow, mut quick, mut bounded] = [Tally::default(), Tally::default(), Tally::default()];
            let mut spent = 0;
            for id in 0..waiting.cast_unsigned() {
                let request = request(&mut mix, kind, id, waiting, Time(0));
                let decision = slow.timed(|| plain.submit(Time(0), &request));
                slow.count(&request, &decision);
                let same = quick.timed(|| fast.submit(Time(0), &request));
                assert_eq!(same, decision, "{kind:?} {name} decides otherwise");
                let decision = bounded.timed(|| budgeted.submit(Time(0), &request));
                bounded.count(&request, &decision);
                spent += slow.times.last().copied().unwrap_or(0);
                if spent > seconds * 1_000_000_000 {
                    break;
                }
            }
            println!(
                "{:7} {name:5} {:>6} {:>6} {:>10.1} {:>7.2} {:>9.2} {:>9.2} {:>8.2} {:>7.2} {:>6.2}",
                format!("{kind:?}"),
                slow.times.len(),
                slow.accepted,
                slow.total_ms(),
                quick.total_ms() / slow.total_ms(),
                bounded.percentile_ms(99),
                bounded.percentile_ms(100),
                bounded.total_ms() / slow.total_ms(),
                100.0 * bounded.node_seconds as f64 / slow.node_seconds as f64,
                100.0 * f64::from(bounded.cut_short) / slow.times.len() as f64,
            );
        }
    }
}

/// A plan of so many requests, each at its first fit in order.
fn settled(mix: &mut Mix, kind: Kind, order: Order, waiting: i64) -> Schedule {
    let count = waiting.cast_unsigned();
    let mut requests: Vec<Request> = (0..count)
        .map(|id| request(mix, kind, id, waiting, Time(0)))
        .collect();
    requests.sort_by_cached_key(|request| order.key(request, Time(0)));
    let mut tree = SlotTree::new(CAPACITY);
    let mut schedule = Schedule::new(CAPACITY, order).budgeted(Some(BUDGET));
    schedule.advance(Time(-1));
    for request in requests {
        if let Some(start) = tree.earliest_fit(request.nodes, request.duration, request.window()) {
            tree.reserve(request.slot(start), request.nodes).expect("it fits");
            schedule.restore(&request, start).expect("it fits");
        }
    }
    schedule.settle();
    schedule
}

/// Decisions, and refusals with alternatives, with so many waiting.
#[expect(clippy::cast_precision_loss, reason = "shares are shown to three digits")]
fn waiting(waiting: i64, decisions: u64) {
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
    let limits = Limits {
        phi_max: Fraction::percent(100),
        count_max: 5,
    };
    for kind in KINDS {
        for (name, order) in ORDERS {
            let mut mix = Mix(3);
            let mut schedule = settled(&mut mix, kind, order, waiting);
            let [mut tally, mut others] = [Tally::default(), Tally::default()];
            let before = schedule.waiting_count();
            let mut now = Time(0);
            for id in 0..decisions {
                now = now + i64::from(id % 3 == 0);
                let mut newcomer = request(&mut mix, kind, waiting.cast_unsigned() + id, waiting, now);
                if id % 4 == 3 {
                    // Now or never.
                    newcomer.deadline = newcomer.ready + newcomer.duration;
                }
                let decision = tally.timed(|| schedule.submit(now, &newcomer));
                tally.count(&newcomer, &decision);
                if matches!(decision, Decision::Refused { .. }) && others.times.len() < 100 {
                    others.timed(|| schedule.alternatives(now, &newcomer, limits));
                }
            }
            if others.times.is_empty() {
                others.times.push(0);
            }
            println!(
                "{:7} {name:5} {before:>7} {:>8} {:>6.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
                format!("{kind:?}"),
                tally.accepted,
                100.0 * f64::from(tally.cut_short) / decisions as f64,
                tally.percentile_ms(50),
                tally.percentile_ms(99),
                tally.percentile_ms(100),
                others.percentile_ms(99),
                others.percentile_ms(100),
            );
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is told how much to do")]
fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let what = arguments.first().map(String::as_str);
    let number = |at: usize, or: i64| arguments.get(at).and_then(|a| a.parse().ok()).unwrap_or(or);
    if what != Some("waiting") {
        lists(number(1, 1_000), number(2, 5).cast_unsigned());
    }
    if what != Some("lists") {
        waiting(number(1, 100_000), number(2, 300).cast_unsigned());
    }
}
