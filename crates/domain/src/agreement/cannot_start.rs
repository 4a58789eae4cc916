//! Why a job can never be started.

use serde::{Deserialize, Serialize};

/// Why a job can never be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CannotStart {
    /// The catalogue does not have its application any more.
    NoApplication,
    /// It was to go on from the saved work of the piece before it, and this is gone.
    NothingSaved,
}

impl CannotStart {
    /// In words for its party.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoApplication => "its application is no longer offered",
            Self::NothingSaved => "what the piece before it had saved is gone",
        }
    }
}
