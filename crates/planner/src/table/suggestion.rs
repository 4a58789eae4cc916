//! What the plan suggests that the provider proposes.

use domain::agreement::{Agreement, ProposalReason};
use scheduler::Interval;
use uuid::Uuid;

use crate::table::Table;

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

impl Table {
    /// Notes something to propose, once the batch is stored.
    pub(crate) fn note_suggestion(&mut self, suggestion: Suggestion) {
        if self.suggested.len() < SUGGESTIONS_MAX {
            self.suggested.push(suggestion);
        }
    }

    /// Whether one more move may be proposed.
    pub(crate) fn may_suggest_a_move(&self, most: usize) -> bool {
        let a_move = |suggestion: &&Suggestion| suggestion.reason == ProposalReason::BetterFit;
        let waiting = self.suggested.iter().filter(a_move);
        most > 0 && self.moves + waiting.count() < most
    }

    /// Proposes nothing in place of an agreement.
    pub(crate) fn forget_suggestions_about(&mut self, agreement: Uuid) {
        self.suggested
            .retain(|suggested| suggested.agreement.id != agreement);
    }

    /// Takes what is suggested that the provider proposes.
    pub(crate) fn take_suggestions(&mut self) -> Vec<Suggestion> {
        std::mem::take(&mut self.suggested)
    }
}
