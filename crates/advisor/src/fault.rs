//! Why a command cannot be carried out.

use std::fmt::Display;
use std::path::Path;

/// Wrong options, or a file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

impl Fault {
    /// The fault of a file.
    pub fn of(path: &Path, why: impl Display) -> Self {
        Self(format!("{}: {why}", path.display()))
    }
}
