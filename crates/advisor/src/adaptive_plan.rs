//! Planning of adaptive requests on one resource: requests with shapes to choose from that may run in pieces.
//!
//! Two policies are published (adaptive requests, section 3.3), both with conservative backfilling. First in, first out places a
//! request once. Missing deadline first places all waiting requests again at each submission, nearest to missing its deadline
//! first; pieces that have started stay. Placing again may choose other sizes and other cuts, and so may leave an accepted
//! request without a place. Then the old plan stands and the newcomer is tried in the rest of it: an accepted request is never
//! lost.

use std::collections::BTreeMap;

use scheduler::moldable::{Shapes, WHOLE_PPM};
use scheduler::preemptive::{Piece, Preemption};
use scheduler::pricing::PricedUsage;
use scheduler::{Interval, Reason, SlotTree, Time};

/// The most searches of the plan to place one request once. At about a microsecond each this bounds the time that one requester
/// can make all others wait.
pub const SEARCHES_MAX: u64 = 100_000;

/// A request with its shapes, its cuts and its window.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptiveRequest {
    id: u64,
    window: Interval,
    shapes: Shapes,
    preemption: Preemption,
}

impl AdaptiveRequest {
    /// Number `id` of the submissions, for a place inside `window` (from the ready time T^r up to the deadline D). `None` where
    /// sizes and cuts together allow too many combinations: placing the request could take more than [`SEARCHES_MAX`] searches.
    /// One of them should be coarser.
    pub fn new(id: u64, window: Interval, shapes: Shapes, preemption: Preemption) -> Option<Self> {
        let is_possible = preemption.searches_max(shapes.len()) <= SEARCHES_MAX;
        is_possible.then_some(Self {
            id,
            window,
            shapes,
            preemption,
        })
    }

    /// Number of the submission.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// From the ready time T^r up to the deadline D.
    pub fn window(&self) -> Interval {
        self.window
    }

    /// The sizes with their durations.
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// The cuts.
    pub fn preemption(&self) -> &Preemption {
        &self.preemption
    }

    /// What it uses that is charged, where it was submitted at `submitted` and runs in `pieces`.
    pub fn usage(&self, submitted: Time, pieces: &[Piece]) -> PricedUsage {
        let area =
            |piece: &Piece| u128::from(piece.nodes) * u128::from(piece.interval.duration().unsigned_abs());
        let completion = pieces.last().map_or(submitted, |piece| piece.interval.end);
        PricedUsage {
            node_seconds: pieces.iter().map(area).sum(),
            completion: completion - submitted,
            fastest: self.shapes.largest().1,
            deadline: self.window.end - submitted,
            preemptive: self.preemption.pieces_max() > 1,
            shapes: self.preemption.flexibility(self.shapes.len()),
        }
    }

    fn place(&self, slots: &SlotTree, now: Time, started: &[Piece]) -> Option<Vec<Piece>> {
        let window = Interval::new(self.window.start.max(now), self.window.end);
        self.preemption.place(slots, &self.shapes, started, window)
    }

    /// The place in the queue of missing deadline first: D − CT less the usage time at R^max that the work after the
    /// `started` pieces needs, then the number of the submission. CT is the same for all and left out; in millionths of a
    /// second, so exact.
    fn urgency(&self, started: &[Piece]) -> (i128, u64) {
        let done_ppm: u32 = started.iter().map(|piece| piece.work_ppm).sum();
        let (_, usage) = self.shapes.largest();
        let remaining = i128::from(usage) * i128::from(WHOLE_PPM.saturating_sub(done_ppm));
        let deadline = i128::from(self.window.end.0) * i128::from(WHOLE_PPM);
        (deadline - remaining, self.id)
    }

    /// Why not even an empty resource of `capacity` nodes can hold it, if so.
    fn impossible(&self, capacity: u32, now: Time) -> Option<Reason> {
        let empty = SlotTree::new(capacity);
        if self.place(&empty, now, &[]).is_some() {
            None
        } else if self.shapes.smallest().0 > capacity {
            Some(Reason::SizeExceedsCapacity)
        } else if self.place(&empty, self.window.start, &[]).is_some() {
            Some(Reason::WindowInThePast)
        } else {
            Some(Reason::WindowContradictory)
        }
    }
}

/// The effect of a new request on the waiting ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// First in, first out: they stay where they are.
    Fifo,
    /// Missing deadline first: they are all placed again, in that order.
    MissingDeadlineFirst,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdaptiveDecision {
    /// It has a place.
    Accepted {
        /// Where, in order of time.
        pieces: Vec<Piece>,
        /// The other requests with changes of their later pieces, by id.
        moved: Vec<u64>,
    },
    /// It has none; nothing was changed.
    Refused {
        /// Why.
        reason: Reason,
    },
}

/// An accepted request and its pieces in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Booking {
    /// As submitted.
    pub request: AdaptiveRequest,
    /// The pieces, those already started first.
    pub pieces: Vec<Piece>,
}

impl Booking {
    /// How many pieces have started by `now`; they no longer move.
    fn started(&self, now: Time) -> usize {
        self.pieces.partition_point(|piece| piece.interval.start <= now)
    }
}

/// The accepted adaptive requests of one resource.
///
/// Time is an argument of every call and never goes back: an earlier time counts as the latest one.
///
/// ```
/// use advisor::adaptive_plan::{AdaptiveDecision, AdaptiveRequest, AdaptivePlan, Policy};
/// use scheduler::moldable::Shapes;
/// use scheduler::preemptive::Preemption;
/// use scheduler::{Interval, Time};
/// let mut plan = AdaptivePlan::new(4, Policy::MissingDeadlineFirst);
/// let submit = |plan: &mut AdaptivePlan, id, nodes, seconds, deadline| {
///     let window = Interval::new(Time(0), Time(deadline));
///     let shapes = Shapes::rigid(nodes, seconds).expect("a possible shape");
///     let request = AdaptiveRequest::new(id, window, shapes, Preemption::NONE).expect("one search");
///     plan.submit(Time(0), request)
/// };
/// submit(&mut plan, 0, 4, 100, 1_000);
/// submit(&mut plan, 1, 4, 100, 1_000);
/// // The second one has not started, so it makes way for a request with less time left.
/// let decision = submit(&mut plan, 2, 4, 100, 200);
/// assert!(matches!(decision, AdaptiveDecision::Accepted { moved, .. } if moved == [1]));
/// ```
#[derive(Debug, Clone)]
pub struct AdaptivePlan {
    slots: SlotTree,
    policy: Policy,
    now: Time,
    bookings: BTreeMap<u64, Booking>,
}

impl AdaptivePlan {
    /// A resource of `capacity` nodes with nothing accepted.
    ///
    /// # Panics
    /// If `capacity` exceeds [`scheduler::slot_tree::MAX_CAPACITY`].
    pub fn new(capacity: u32, policy: Policy) -> Self {
        Self {
            slots: SlotTree::new(capacity),
            policy,
            now: Time::MIN + 1,
            bookings: BTreeMap::new(),
        }
    }

    /// Decides about `request` at `now`. One placement per waiting request with missing deadline first, a single one with
    /// first in, first out; each up to [`Preemption::searches_max`] searches.
    ///
    /// # Panics
    /// If a request of this id waits or runs.
    pub fn submit(&mut self, now: Time, request: AdaptiveRequest) -> AdaptiveDecision {
        self.advance(now);
        let id = request.id;
        assert!(!self.bookings.contains_key(&id), "request {id} is in the plan");
        if let Some(reason) = request.impossible(self.slots.capacity(), self.now) {
            return AdaptiveDecision::Refused { reason };
        }
        let pieces = Vec::new();
        self.bookings.insert(id, Booking { request, pieces });
        let moved = match self.policy {
            Policy::Fifo => None,
            Policy::MissingDeadlineFirst => self.place_anew(),
        };
        let Some(moved) = moved.or_else(|| self.place_in_what_is_left(id)) else {
            self.bookings.remove(&id);
            let reason = Reason::NoCapacityInWindow;
            return AdaptiveDecision::Refused { reason };
        };
        let pieces = self.pieces(id).to_vec();
        AdaptiveDecision::Accepted { pieces, moved }
    }

    /// Lets time pass: pieces that have started no longer move, and completed requests are forgotten.
    fn advance(&mut self, now: Time) {
        if now <= self.now {
            return;
        }
        self.now = now;
        self.slots.forget(now);
        self.bookings
            .retain(|_, booking| booking.pieces.last().is_some_and(|last| last.interval.end > now));
    }

    /// The accepted requests that have not completed, by id.
    pub fn bookings(&self) -> impl Iterator<Item = &Booking> + '_ {
        self.bookings.values()
    }

    /// The pieces of a request in order of time; none once it has completed.
    pub fn pieces(&self, id: u64) -> &[Piece] {
        self.bookings.get(&id).map_or(&[], |booking| &booking.pieces)
    }

    /// The free nodes over time.
    pub fn slots(&self) -> &SlotTree {
        &self.slots
    }

    fn place_in_what_is_left(&mut self, id: u64) -> Option<Vec<u64>> {
        let booking = self.bookings.get_mut(&id)?;
        booking.pieces = booking.request.place(&self.slots, self.now, &[])?;
        occupy_adaptive_pieces(&mut self.slots, &booking.pieces);
        Some(Vec::new())
    }

    /// Places all waiting requests from nothing, nearest to missing its deadline first. The ids of the requests with changed
    /// places; `None` where one finds no place, and then nothing is changed.
    fn place_anew(&mut self) -> Option<Vec<u64>> {
        let before = self.clone();
        let mut queue = Vec::new();
        for booking in self.bookings.values_mut() {
            let started = booking.started(self.now);
            // A request in the plan without pieces is the newcomer.
            if started < booking.pieces.len() || started == 0 {
                free_adaptive_pieces(&mut self.slots, &booking.pieces.split_off(started));
                queue.push(booking.request.urgency(&booking.pieces));
            }
        }
        queue.sort_unstable();
        for (_, id) in queue {
            let booking = self.bookings.get_mut(&id)?;
            let Some(pieces) = booking.request.place(&self.slots, self.now, &booking.pieces) else {
                *self = before;
                return None;
            };
            occupy_adaptive_pieces(&mut self.slots, &pieces);
            booking.pieces.extend(pieces);
        }
        let places = before.bookings.iter().zip(self.bookings.values());
        let moved = places.filter(|((_, old), new)| !old.pieces.is_empty() && old.pieces != new.pieces);
        Some(moved.map(|((id, _), _)| *id).collect())
    }
}

/// Takes nodes that are known to be free.
fn occupy_adaptive_pieces(slots: &mut SlotTree, pieces: &[Piece]) {
    for piece in pieces {
        let done = slots.reserve(piece.interval, piece.nodes);
        debug_assert_eq!(done, Ok(()), "a piece is placed where it fits");
    }
}

/// Gives back nodes that are known to be in use.
fn free_adaptive_pieces(slots: &mut SlotTree, pieces: &[Piece]) {
    for piece in pieces {
        let done = slots.release(piece.interval, piece.nodes);
        debug_assert_eq!(done, Ok(()), "a piece gives back the nodes that it took");
    }
}
