//! A request to one resource, and its place.

use crate::refusal::Reason;
use crate::time::{Interval, Seconds, Time};

/// A piece of a resource: `nodes` for `duration` somewhere inside [`ready`, `deadline`).
///
/// The three kinds of papers 000 and 001 differ by their window alone: strict start and completion (the window is as long
/// as the duration), relaxed start with strict completion (ready at once), flexible interval (a longer window).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Number of the submission; the earlier one goes first where an order leaves two requests equal.
    pub id: u64,
    /// When it was submitted.
    pub submitted: Time,
    /// Ready time T^r: the earliest start.
    pub ready: Time,
    /// Deadline D: the latest completion.
    pub deadline: Time,
    /// Duration T^e in seconds, at least 1.
    pub duration: Seconds,
    /// Nodes R, at least 1.
    pub nodes: u32,
    /// The revenue that the provider expects from it, in any unit that all requests of a resource share.
    pub revenue: u64,
}

impl Request {
    /// Where a placement may lie.
    pub fn window(&self) -> Interval {
        Interval::new(self.ready, self.deadline)
    }

    /// Where a placement decided at `now` may lie.
    pub fn window_at(&self, now: Time) -> Interval {
        Interval::new(self.ready.max(now), self.deadline)
    }

    /// Slack Δ at `now`: how far a placement can still be moved. Negative when it is too late.
    pub fn slack(&self, now: Time) -> Seconds {
        self.deadline - self.ready.max(now) - self.duration
    }

    /// Whether only one start is possible.
    pub fn is_rigid(&self) -> bool {
        self.deadline - self.ready == self.duration
    }

    /// Node-seconds.
    pub fn area(&self) -> u128 {
        u128::from(self.nodes) * u128::from(self.duration.unsigned_abs())
    }

    /// The same request for exactly the slot from `start`.
    #[must_use]
    pub fn fixed_to(&self, start: Time) -> Self {
        Self {
            ready: start,
            deadline: start + self.duration,
            ..*self
        }
    }

    /// The interval that it occupies from `start`.
    pub fn slot(&self, start: Time) -> Interval {
        Interval::of(start, self.duration)
    }

    /// Its placement from `start`.
    pub(crate) fn placed(&self, start: Time) -> Placement {
        Placement {
            id: self.id,
            slot: self.slot(start),
            nodes: self.nodes,
        }
    }

    /// Why no plan of a resource of `capacity` nodes can hold it, if so.
    pub fn impossible(&self, capacity: u32, now: Time) -> Option<Reason> {
        if self.duration < 1 || self.nodes < 1 || self.deadline - self.ready < self.duration {
            Some(Reason::WindowContradictory)
        } else if self.nodes > capacity {
            Some(Reason::SizeExceedsCapacity)
        } else if self.slack(now) < 0 {
            Some(Reason::WindowInThePast)
        } else {
            None
        }
    }
}

/// Where a request was put: a number of nodes for an interval. Which nodes is decided at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The request's id.
    pub id: u64,
    /// From its start T^s to its completion T^c.
    pub slot: Interval,
    /// Nodes.
    pub nodes: u32,
}
