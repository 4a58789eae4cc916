//! The reason why a command failed, and its exit status.

use std::fmt::Display;
use std::process::ExitCode;

use store::backup::CopyError;

/// The reason why a command failed, by its exit status for a script.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Refused, not found, or a finding of `verify`.
    #[error("{0}")]
    Refused(String),
    /// Wrong usage, configuration or document.
    #[error("{0}")]
    Usage(String),
    /// The service or the store cannot be reached, or cannot answer now.
    #[error("{0}")]
    Unavailable(String),
    /// No key, or a wrong one.
    #[error("{0}")]
    NotAllowed(String),
}

impl Failure {
    /// The failure of what cannot be reached or used now.
    pub(crate) fn unavailable<E: Display>(why: E) -> Self {
        Self::Unavailable(why.to_string())
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Refused(_) => 1,
            Self::Usage(_) => 2,
            Self::Unavailable(_) => 3,
            Self::NotAllowed(_) => 4,
        })
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        use store::Error;
        match error {
            Error::Address(_) => Self::Usage(error.to_string()),
            Error::Conflict(_) | Error::Corrupt(_) | Error::Damaged(_) | Error::Schema(_) => {
                Self::Refused(error.to_string())
            }
            Error::Unavailable(_)
            | Error::Unknown { .. }
            | Error::LeaseHeld(_)
            | Error::LeaseLost
            | Error::Database(_) => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<access::Error> for Failure {
    fn from(error: access::Error) -> Self {
        use access::Error;
        match error {
            Error::Store(error) => error.into(),
            Error::Invalid(what) => Self::Usage(what),
            Error::LastOfOperators => Self::Refused(error.to_string()),
            Error::File { .. } | Error::Random(_) => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<CopyError> for Failure {
    fn from(why: CopyError) -> Self {
        match why {
            CopyError::Store(why) => why.into(),
            CopyError::Text(_) => Self::Unavailable(why.to_string()),
            CopyError::Damaged(_) | CopyError::NotEmpty(_) | CopyError::Inconsistent(_) => {
                Self::Refused(why.to_string())
            }
        }
    }
}
