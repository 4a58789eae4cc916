//! `[trail]` of the configuration: where the signed heads of the audit trail are kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ranges::table;

/// Names below the data folder where the configuration names no others.
const HEADS: &str = "trail-heads";
const KEY: &str = "trail.key";
/// The file of the data folder with the last line that the service knows to be stored.
const END: &str = "trail-end";

table! {
    "trail"
    /// The table as written.
    pub(in crate::cli) struct Trail {
        /// The file of signed heads.
        heads: Option<PathBuf> = None;
        /// The file of the key that signs them.
        key: Option<PathBuf> = None;
        /// How often a head is signed, in seconds.
        interval_seconds: u64 = 60, 1..=86_400;
    }
}

impl Trail {
    /// The file of signed heads.
    pub(in crate::cli) fn heads_file(&self, data_dir: &Path) -> PathBuf {
        self.heads.clone().unwrap_or_else(|| data_dir.join(HEADS))
    }

    /// The file of the key that signs them.
    pub(in crate::cli) fn key_file(&self, data_dir: &Path) -> PathBuf {
        self.key.clone().unwrap_or_else(|| data_dir.join(KEY))
    }

    /// The file with the last line that the service of a data folder knows to be stored.
    pub(in crate::cli) fn end_file(data_dir: &Path) -> PathBuf {
        data_dir.join(END)
    }

    /// How often a head is signed.
    pub(in crate::cli) fn interval(&self) -> Duration {
        Duration::from_secs(self.interval_seconds)
    }
}
