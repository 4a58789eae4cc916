//! Files of jobs: the inputs that parties upload, and the folders that jobs leave.

pub mod cluster_records;
pub mod inputs;
pub mod job_folders;
pub(super) mod known_file;
mod mirror;
mod party_folders;
pub(super) mod tree;
pub(super) mod walk;

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;

use domain::clock::{MICROS_PER_SECOND, Micros};

/// A file of a party or of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was last written to.
    pub modified: Micros,
}

impl FileEntry {
    pub(super) fn new(name: String, meta: &Metadata) -> Self {
        let modified = meta.mtime().saturating_mul(MICROS_PER_SECOND);
        Self {
            name,
            bytes: meta.len(),
            modified: modified.saturating_add(meta.mtime_nsec() / 1_000).max(0),
        }
    }
}

/// The result of an access to a file; none where it is not there.
pub(super) fn if_file_is_there<T>(result: Result<T, impl Into<io::Error>>) -> io::Result<Option<T>> {
    match result.map_err(Into::into) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
