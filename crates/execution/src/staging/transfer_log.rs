//! What is written down of the files that are moved for a job, while they are.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use domain::clock::Micros;

use crate::ExecutionError;
use crate::job::folder::Folder;
use crate::job::staging_record::{DirectionRecord, FileProgress, StagingDirection, StagingRecord};

/// Why a file has not been moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Its party's, and for good.
    Theirs(String),
    /// Of the other end or the way there, and maybe over by the next try.
    Passing(String),
    /// Of this service: no fault of the party.
    Ours(String),
}

impl From<io::Error> for Trouble {
    fn from(why: io::Error) -> Self {
        Self::Ours(why.to_string())
    }
}

/// The record of the files that go one way, with its folder.
#[derive(Debug)]
pub(super) struct TransferLog {
    folder: Folder,
    way: StagingDirection,
    record: StagingRecord,
    /// Until when the time on the way is in the record.
    since: Instant,
}

impl TransferLog {
    pub(super) fn of(folder: Folder, way: StagingDirection, record: StagingRecord) -> Self {
        let since = Instant::now();
        Self {
            folder,
            way,
            record,
            since,
        }
    }

    pub(super) fn direction(&mut self) -> &mut DirectionRecord {
        self.record.way_mut(self.way)
    }

    pub(super) fn party(&self) -> &str {
        &self.record.party
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How far a file of the order has come.
    pub(super) fn file(&mut self, at: usize) -> &mut FileProgress {
        // It was put there with the order's files, which `at` is an index of.
        &mut self.direction().files[at]
    }

    /// Bytes that the other files have.
    pub(super) fn beside(&mut self, at: usize) -> u64 {
        let own = self.file(at).bytes;
        self.direction().bytes().saturating_sub(own)
    }

    /// Where one is put until the whole of it is there.
    pub(super) fn part(&mut self, at: usize) -> PathBuf {
        let name = self.file(at).name.clone();
        self.folder.part(&name)
    }

    /// Begins to count the time on the way.
    pub(super) fn on_the_way(&mut self) {
        self.since = Instant::now();
    }

    /// Writes down how far a file has come, durably, and counts the time on the way until now.
    pub(super) async fn note(&mut self, at: usize, bytes: u64) -> Result<(), Trouble> {
        let took = Micros::try_from(self.since.elapsed().as_micros()).unwrap_or(Micros::MAX);
        self.since = Instant::now();
        self.direction().took += took;
        self.file(at).bytes = bytes;
        self.keep().await
    }

    /// Writes down all of it, durably.
    pub(super) async fn keep(&self) -> Result<(), Trouble> {
        let (folder, record) = (self.folder.clone(), self.record.clone());
        let kept = task::spawn_blocking(move || folder.put_staging(&record)).await;
        match kept {
            Ok(kept) => kept.map_err(|why: ExecutionError| Trouble::Ours(why.to_string())),
            Err(cut_off) => Err(Trouble::Ours(cut_off.to_string())),
        }
    }
}
