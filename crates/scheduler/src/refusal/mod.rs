//! Why a request cannot be placed, from a closed list, so that a program can distinguish every refusal.

mod relaxations;

pub use relaxations::{Bounds, Relaxation};

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No resource has the nodes free for the duration anywhere in the window.
    NoCapacityInWindow,
    /// More nodes than any resource has.
    SizeExceedsCapacity,
    /// The window is shorter than the duration.
    WindowContradictory,
    /// The window ends too soon from now for the duration.
    WindowInThePast,
    /// The window reaches beyond the horizon of the provider.
    HorizonExceeded,
    /// The party has used up its quota.
    QuotaExceeded,
    /// Every possible placement costs more than the budget.
    BudgetTooLow,
    /// No resource has the attributes asked for.
    ResourceNotOffered,
    /// The provider's policy forbids it.
    PolicyDenied,
}

impl Reason {
    /// Each of them.
    pub const ALL: [Self; 9] = [
        Self::NoCapacityInWindow,
        Self::SizeExceedsCapacity,
        Self::WindowContradictory,
        Self::WindowInThePast,
        Self::HorizonExceeded,
        Self::QuotaExceeded,
        Self::BudgetTooLow,
        Self::ResourceNotOffered,
        Self::PolicyDenied,
    ];

    /// The reason with a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }

    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoCapacityInWindow => "NO_CAPACITY_IN_WINDOW",
            Self::SizeExceedsCapacity => "SIZE_EXCEEDS_CAPACITY",
            Self::WindowContradictory => "WINDOW_CONTRADICTORY",
            Self::WindowInThePast => "WINDOW_IN_THE_PAST",
            Self::HorizonExceeded => "HORIZON_EXCEEDED",
            Self::QuotaExceeded => "QUOTA_EXCEEDED",
            Self::BudgetTooLow => "BUDGET_TOO_LOW",
            Self::ResourceNotOffered => "RESOURCE_NOT_OFFERED",
            Self::PolicyDenied => "POLICY_DENIED",
        }
    }
}
