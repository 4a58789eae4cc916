//! Why a request cannot be placed, from a closed list, so that a program can distinguish every refusal.

mod relaxations;

pub use relaxations::{Bounds, Relaxation};

crate::worded! {
    /// The reason of a refusal.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Reason {
        /// No resource has the nodes free for the duration anywhere in the window.
        NoCapacityInWindow = "NO_CAPACITY_IN_WINDOW",
        /// More nodes than any resource has.
        SizeExceedsCapacity = "SIZE_EXCEEDS_CAPACITY",
        /// The window is shorter than the duration.
        WindowContradictory = "WINDOW_CONTRADICTORY",
        /// The window ends too soon from now for the duration.
        WindowInThePast = "WINDOW_IN_THE_PAST",
        /// The window reaches beyond the horizon of the provider.
        HorizonExceeded = "HORIZON_EXCEEDED",
        /// The party has used up its quota.
        QuotaExceeded = "QUOTA_EXCEEDED",
        /// Every possible placement costs more than the budget.
        BudgetTooLow = "BUDGET_TOO_LOW",
        /// No resource has the attributes asked for.
        ResourceNotOffered = "RESOURCE_NOT_OFFERED",
        /// The provider's policy forbids it.
        PolicyDenied = "POLICY_DENIED",
    }
}
