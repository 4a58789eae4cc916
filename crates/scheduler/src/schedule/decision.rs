//! The decision about a request, and the moves that it makes.

use crate::refusal::Reason;
use crate::request::Placement;
use crate::time::Time;

/// An accepted request got a new place inside its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// The request's id.
    pub id: u64,
    /// Its start so far.
    pub from: Time,
    /// Its start from now on.
    pub to: Time,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It has a place.
    Accepted {
        /// Where.
        placement: Placement,
        /// The requests that moved to make room, by id.
        moved: Vec<Move>,
    },
    /// It has none; nothing was changed.
    Refused {
        /// Why.
        reason: Reason,
        /// The budget was spent before every way to let it in was tried.
        cut_short: bool,
    },
}
