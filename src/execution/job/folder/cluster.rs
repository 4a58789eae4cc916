//! Notes about a job that runs on a cluster.

use std::path::{Path, PathBuf};

use super::{ExecutionError, Folder};
use crate::clock::Micros;

pub(super) const SHARED: &str = "shared.json";
pub(super) const COPIED: &str = "copied.json";
pub(super) const PUT_OFF: &str = "put-off.json";

impl Folder {
    /// Notes, durably, that the job has another folder, on a disk that nodes of a cluster share; the first note stays.
    pub(crate) fn note_shared(&self, path: &Path) -> Result<(), ExecutionError> {
        self.write_once(SHARED, &path).map(drop)
    }

    /// The job's other folder, there or not; none where it never had one.
    pub(crate) fn shared(&self) -> Result<Option<PathBuf>, ExecutionError> {
        self.read(SHARED)
    }

    /// Notes, durably, for how long the job's inputs were copied; the first note stays.
    pub(crate) fn note_copied(&self, took: Micros) -> Result<(), ExecutionError> {
        self.write_once(COPIED, &took).map(drop)
    }

    /// For how long the job's inputs were copied; none where they were not.
    pub(crate) fn copied(&self) -> Result<Option<Micros>, ExecutionError> {
        self.read(COPIED)
    }

    /// Notes, durably, that the job's own user has had it wait for something else than its nodes.
    pub(crate) fn note_put_off(&self) -> Result<(), ExecutionError> {
        if self.was_put_off() {
            return Ok(());
        }
        self.write_once(PUT_OFF, &true).map(drop)
    }

    /// Whether that has been noted.
    pub(crate) fn was_put_off(&self) -> bool {
        self.path().join(PUT_OFF).exists()
    }
}
