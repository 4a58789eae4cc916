//! The errors of a peer, and the result of what it is asked to do.

use std::time::Duration;

/// Why a peer did not do its task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It was not asked: it fails, or was asked too often.
    #[error("it was not asked: {0}")]
    NotAsked(String),
    /// It refuses, and would if it were asked again.
    #[error("it refuses ({code}): {words}")]
    Refused {
        /// The word of its fault; empty where that has none.
        code: String,
        /// Its reasons.
        words: String,
    },
    /// It is not known whether it has done it: it does not answer, it has a fault of its own, or its answer cannot be read. It can be
    /// asked again under the same key. With it, how long the peer wants to be left alone, where it says that.
    #[error("{0}")]
    Unknown(String, Option<Duration>),
}

impl PeerError {
    /// An answer that cannot be read.
    pub(super) fn rubbish(why: &str) -> Self {
        Self::Unknown(why.to_owned(), None)
    }

    /// No answer came within this time.
    pub(super) fn silent(waited: Duration) -> Self {
        Self::Unknown(
            format!("it does not answer within {} ms", waited.as_millis()),
            None,
        )
    }
}

/// The answer of a peer, or why there is none.
pub(super) type Result<T> = std::result::Result<T, PeerError>;
