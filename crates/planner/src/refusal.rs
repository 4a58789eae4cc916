//! Why a request has no place, and what it could have instead.

use domain::agreement::Money;
use scheduler::refusal::Relaxation;
use scheduler::{Interval, Reason};
use uuid::Uuid;

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
    /// The subject of its line in the audit trail, where it is noted there.
    pub noted: Option<Uuid>,
}

/// A refusal with nothing else to offer.
pub(super) fn bare_refusal(reason: Reason, binding: impl Into<String>) -> Refusal {
    Refusal {
        reason,
        binding: binding.into(),
        cut_short: false,
        alternatives: Vec::new(),
        relaxations: Vec::new(),
        lowest_budget: None,
        noted: None,
    }
}

/// The refusal of more than a party may have or ask.
pub(super) fn quota_exceeded(binding: impl Into<String>) -> Refusal {
    bare_refusal(Reason::QuotaExceeded, binding)
}

/// The reason that came nearer to a place.
pub(super) fn nearer_refusal_reason(one: Reason, other: Reason) -> Reason {
    let steps = |reason: &Reason| match reason {
        Reason::ResourceNotOffered => 0,
        Reason::SizeExceedsCapacity => 1,
        Reason::WindowContradictory => 2,
        Reason::WindowInThePast => 3,
        _ => 4,
    };
    if steps(&one) >= steps(&other) { one } else { other }
}

/// A refusal without alternatives as it is stored.
pub(crate) fn refusal_in_short(refusal: &Refusal) -> String {
    serde_json::json!({
        "reason": refusal.reason.word(),
        "bindingConstraint": refusal.binding,
        "alternatives": [],
        "relaxations": [],
    })
    .to_string()
}
