//! The reason why a command is not carried out, and the alternatives of its requester.

use scheduler::refusal::Relaxation;
use scheduler::{Interval, Reason};

use super::Lost;
use crate::agreement::Money;
use crate::store::Idempotent;

/// A slot outside the window of an offer that it could have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlternativeSlot {
    /// Where it lies.
    pub slot: Interval,
    /// On how many nodes, where the offer leaves the size open.
    pub nodes: Option<u32>,
}

/// Why an offer has no place, and the nearest places that there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {binding}", reason.word())]
pub struct Refusal {
    /// The reason, from the closed list.
    pub reason: Reason,
    /// The constraint that binds, in words.
    pub binding: String,
    /// Whether the search for a place was cut short: a longer one might have found one.
    pub cut_short: bool,
    /// Slots outside the window that it could have, the nearest first.
    pub alternatives: Vec<AlternativeSlot>,
    /// The smallest changes that would have been accepted.
    pub relaxations: Vec<Relaxation>,
    /// The lowest budget that would have done, where it was the budget that did not.
    pub lowest_budget: Option<Money>,
}

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The plan has no place for it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// There is no such agreement, or it is another party's.
    #[error("there is no such agreement")]
    NotFound,
    /// The agreement's state does not allow it.
    #[error("the agreement is {0}")]
    Conflict(&'static str),
    /// The agreement is not in a version that the request was made for.
    #[error("the agreement has changed")]
    Changed,
    /// The offer cannot be accepted any more.
    #[error(transparent)]
    Lost(Lost),
    /// The tree of offers does not allow it.
    #[error("{0}")]
    Stale(&'static str),
    /// The request's idempotency key came before; this is the answer of that time.
    #[error("the idempotency key has been used")]
    Repeated(Box<Idempotent>),
    /// Nothing was stored, as far as is known; worth another try.
    #[error("the service cannot store decisions at the moment")]
    Unavailable,
}
