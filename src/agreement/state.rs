//! The states of WS-Agreement 1.0 (section 7) and the moves between them, as total functions.

use std::fmt;

/// State of an agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgreementState {
    /// Offered, not yet decided.
    Pending,
    /// Offered, not yet decided, and its initiator wants it no longer.
    PendingAndTerminating,
    /// In force.
    Observed,
    /// In force, and being ended before its time.
    ObservedAndTerminating,
    /// Decided against.
    Rejected,
    /// Ended in its time.
    Complete,
    /// Ended before its time.
    Terminated,
}

/// A move that the specification does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an agreement in state {from} cannot become {to}")]
pub struct IllegalTransition {
    /// Where it stands.
    pub from: AgreementState,
    /// Where it was to go.
    pub to: AgreementState,
}

impl AgreementState {
    /// Every state, in the order of the specification.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::PendingAndTerminating,
        Self::Observed,
        Self::ObservedAndTerminating,
        Self::Rejected,
        Self::Complete,
        Self::Terminated,
    ];

    /// The word of the specification.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::PendingAndTerminating => "PendingAndTerminating",
            Self::Observed => "Observed",
            Self::ObservedAndTerminating => "ObservedAndTerminating",
            Self::Rejected => "Rejected",
            Self::Complete => "Complete",
            Self::Terminated => "Terminated",
        }
    }

    /// The state that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether nothing can follow.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Rejected | Self::Complete | Self::Terminated)
    }

    /// Whether the specification has a move from here to `next`.
    pub fn allows(self, next: Self) -> bool {
        match self {
            Self::Pending => matches!(
                next,
                Self::Observed | Self::Rejected | Self::PendingAndTerminating
            ),
            Self::Observed => matches!(next, Self::Complete | Self::ObservedAndTerminating),
            Self::PendingAndTerminating | Self::ObservedAndTerminating => {
                matches!(next, Self::Terminated | Self::Complete)
            }
            Self::Rejected | Self::Complete | Self::Terminated => false,
        }
    }

    /// Moves to `next`.
    ///
    /// # Errors
    /// [`IllegalTransition`] where the specification has no such move.
    pub fn to(self, next: Self) -> Result<Self, IllegalTransition> {
        if self.allows(next) {
            Ok(next)
        } else {
            Err(IllegalTransition { from: self, to: next })
        }
    }

    /// The state after its initiator asks for termination; `None` where that changes nothing any more.
    pub fn terminating(self) -> Option<Self> {
        match self {
            Self::Pending => Some(Self::PendingAndTerminating),
            Self::Observed => Some(Self::ObservedAndTerminating),
            _ => None,
        }
    }
}

impl fmt::Display for AgreementState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// State of a service term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceState {
    /// Its slot has not begun.
    NotReady,
    /// Its slot has begun and it runs nothing.
    Idle,
    /// Its job runs.
    Processing,
    /// Over.
    Completed,
}

impl ServiceState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::NotReady, Self::Idle, Self::Processing, Self::Completed];

    /// The word that is stored: that of the specification, with the inner state in place of Ready.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotReady => "NotReady",
            Self::Idle => "Idle",
            Self::Processing => "Processing",
            Self::Completed => "Completed",
        }
    }

    /// The state that a stored word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether the slot has begun and is not over.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Idle | Self::Processing)
    }

    /// Whether the specification has a move from here to `next`.
    pub fn allows(self, next: Self) -> bool {
        match self {
            Self::NotReady => next != Self::NotReady,
            Self::Idle | Self::Processing => !matches!(next, Self::NotReady) && next != self,
            Self::Completed => false,
        }
    }
}

/// State of a guarantee term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub enum GuaranteeState {
    /// No data yet, or none ever.
    #[default]
    NotDetermined,
    /// Its objective held.
    Fulfilled,
    /// Its objective did not hold.
    Violated,
}

impl GuaranteeState {
    /// The word of the specification.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotDetermined => "NotDetermined",
            Self::Fulfilled => "Fulfilled",
            Self::Violated => "Violated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_states_allow_nothing_and_every_other_state_leads_to_one() {
        for state in AgreementState::ALL {
            let nexts: Vec<_> = AgreementState::ALL
                .into_iter()
                .filter(|next| state.allows(*next))
                .collect();
            assert_eq!(state.is_final(), nexts.is_empty(), "{state}");
        }
    }

    #[test]
    fn words_name_their_states() {
        for state in AgreementState::ALL {
            assert_eq!(AgreementState::from_word(state.word()), Some(state));
        }
        for state in ServiceState::ALL {
            assert_eq!(ServiceState::from_word(state.word()), Some(state));
        }
        assert_eq!(AgreementState::from_word("observed"), None);
    }

    #[test]
    fn termination_goes_through_the_terminating_states_only() {
        for state in AgreementState::ALL {
            if let Some(next) = state.terminating() {
                assert!(state.allows(next), "{state} → {next}");
                assert!(next.allows(AgreementState::Terminated));
            } else {
                assert!(state.is_final() || state.allows(AgreementState::Terminated));
            }
        }
    }
}
