//! Why a program of Slurm failed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The most characters of a program's message that are passed on.
pub(super) const SAID_MAX: usize = 500;

/// The reason why a program of Slurm failed, by the action to take. Of two values, the first is the name of the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Error {
    /// The controller cannot be reached: nothing was done, and nothing is known.
    #[error("Slurm's controller cannot be reached: {0}")]
    Down(String),
    /// No answer in time, which is in seconds: whether it was done is not known.
    #[error("{0} has not answered within {1} seconds")]
    Slow(Cow<'static, str>, u64),
    /// It said no, and why in its own words.
    #[error("{0} refuses: {1}")]
    Refused(Cow<'static, str>, String),
    /// Its answer was invalid, or it ended by a signal; its message.
    #[error("{0} cannot be understood: {1}")]
    Unknown(Cow<'static, str>, String),
    /// It cannot be run at all, by the system's error.
    #[error("{0} cannot be run: {1}")]
    Missing(Cow<'static, str>, String),
}

impl Error {
    /// The outcome under which the call is counted.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Down(_) => "down",
            Self::Slow(..) => "slow",
            Self::Refused(..) => "refused",
            Self::Unknown(..) | Self::Missing(..) => "failed",
        }
    }
}

/// An answer that the program should not give.
pub(super) fn error_of_answer_not_understood(program: &'static str, said: &str) -> Error {
    Error::Unknown(program.into(), said.chars().take(SAID_MAX).collect())
}
