//! The state of an agreement (GFD.192, section 7), and the moves from one to the next.

use crate::xml::service_values;

service_values! {
    /// State of an agreement.
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
