//! Why the planner could not start.

use planner::Inconsistent;

/// Why the planner could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The stored data are no valid plan for the configured resources.
    #[error(transparent)]
    Inconsistent(#[from] Inconsistent),
    /// The resources of the configuration could not be taken over.
    #[error("the configured resources cannot be taken over: {0}")]
    Unconfigured(String),
}
