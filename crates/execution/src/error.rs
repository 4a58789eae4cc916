//! Why an executor could not carry out a call.

use std::path::PathBuf;

use crate::slurm::error::Error;

/// The reason why an executor could not carry out a call.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The system refused; another try may help.
    #[error("{doing} {path}: {source}")]
    System {
        /// The action.
        doing: &'static str,
        /// The file or program.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A record of a job is not as it was written; an operator must look at it.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The record.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// It is not known how a job at another domain stands; another try may help.
    #[error("{0}")]
    Peer(String),
    /// Slurm did not do it; another try may help.
    #[error(transparent)]
    Slurm(#[from] Error),
}

impl ExecutionError {
    /// For `map_err`: names the action and its object.
    pub(super) fn system<E: Into<std::io::Error>>(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            doing,
            path: path.into(),
            source: source.into(),
        }
    }
}
