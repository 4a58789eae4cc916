//! What the plan suggests that the provider proposes.

use domain::agreement::{Agreement, ProposalReason};
use scheduler::Interval;

/// Suggestions that wait to be made offers of: as many as agreements are likely to break at once; more are forgotten.
pub const SUGGESTIONS_MAX: usize = 1_024;

/// Something to propose.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// The agreement that it would take the place of, as it stands.
    pub agreement: Agreement,
    /// Why.
    pub reason: ProposalReason,
    /// Where on its resource it would lie; none for wherever it can.
    pub slot: Option<Interval>,
}

impl Suggestion {
    /// Any place instead of an agreement that could not be kept and is over.
    pub fn instead_of(agreement: Agreement) -> Self {
        Self {
            agreement,
            reason: ProposalReason::Broken,
            slot: None,
        }
    }
}
