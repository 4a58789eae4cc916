//! The states of WS-Agreement 1.0 (section 7) and the moves between them, as total functions.

use scheduler::worded;

worded! {
    /// State of an agreement.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AgreementState {
        /// Offered, not yet decided.
        Pending = "Pending",
        /// Offered, not yet decided, and its initiator wants it no longer.
        PendingAndTerminating = "PendingAndTerminating",
        /// In force.
        Observed = "Observed",
        /// In force, and being ended before its time.
        ObservedAndTerminating = "ObservedAndTerminating",
        /// Decided against.
        Rejected = "Rejected",
        /// Ended in its time.
        Complete = "Complete",
        /// Ended before its time.
        Terminated = "Terminated",
    }
}

impl AgreementState {
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

    /// Moves to `next`; `None` where the specification has no such move.
    pub fn to(self, next: Self) -> Option<Self> {
        self.allows(next).then_some(next)
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

worded! {
    /// State of a service term.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ServiceState {
        /// Its slot has not begun.
        NotReady = "NotReady",
        /// Its slot has begun and it runs nothing.
        Idle = "Idle",
        /// Its job runs.
        Processing = "Processing",
        /// Over.
        Completed = "Completed",
    }
}

impl ServiceState {
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

worded! {
    /// State of a guarantee term.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
    pub enum GuaranteeState {
        /// No data yet, or none ever.
        #[default]
        NotDetermined = "NotDetermined",
        /// Its objective held.
        Fulfilled = "Fulfilled",
        /// Its objective did not hold.
        Violated = "Violated",
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
