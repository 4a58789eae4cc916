//! The lists of requests that decisions are measured on.

use crate::shared::Mix;
use scheduler::{Order, Request, Schedule, SlotTree, Time};

pub(crate) const CAPACITY: u32 = 128;
const DAY: i64 = 86_400;

pub(crate) const ORDERS: [(&str, Order); 7] = [
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
pub(crate) enum Kind {
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

pub(crate) const KINDS: [Kind; 5] = [Kind::Spread, Kind::Packed, Kind::Equal, Kind::Mixed, Kind::Urgent];

/// The `id`-th of `count` requests of a kind, made at `now`.
pub(crate) fn request(mix: &mut Mix, kind: Kind, id: u64, count: i64, now: Time) -> Request {
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

/// A plan of the first `waiting` of `count` requests, each at its first fit in order, and without the work that a decision may do.
pub(crate) fn settled(mix: &mut Mix, kind: Kind, order: Order, waiting: i64, count: i64) -> Schedule {
    let mut requests: Vec<Request> = (0..waiting.cast_unsigned())
        .map(|id| request(mix, kind, id, count, Time(0)))
        .collect();
    requests.sort_by_cached_key(|request| order.key(request, Time(0)));
    let mut tree = SlotTree::new(CAPACITY);
    let mut schedule = Schedule::new(CAPACITY, order);
    schedule.advance(Time(0));
    for request in requests {
        if let Some(start) = tree.earliest_fit(request.nodes, request.duration, request.window()) {
            tree.reserve(request.slot(start), request.nodes).expect("it fits");
            schedule.restore(&request, start).expect("it fits");
        }
    }
    schedule.find_improvable();
    schedule
}
