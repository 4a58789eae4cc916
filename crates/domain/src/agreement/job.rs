//! The work of an agreement: its job, the files that are moved for it, and its end as an executor saw it.

use scheduler::Seconds;
use serde::{Deserialize, Serialize};

use super::staging::declared_staging_bytes;
use super::{BroughtFiles, RunOutcome, Source, StagedFile, StagingEnd, is_zero};
use crate::clock::Micros;

/// The work of an agreement: an application of the provider's catalogue and its arguments, already checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Name in the catalogue.
    pub application: String,
    /// Version in the catalogue, where it declares one.
    pub version: Option<String>,
    /// The arguments, in the order that the catalogue declares.
    pub arguments: Vec<String>,
    /// How many jobs it has had before: each was lost, or was never started in its slot. The next one runs from the start, or
    /// from the work that the piece before has saved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// How many of them were never started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u32,
    /// Seconds of its slots that are over, by which it was begun late in them: the provider was late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: Seconds,
    /// Seconds by which its present run was begun late in its slot, while that is not over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_in_slot: Seconds,
    /// The files that are moved for it, in the order in which they were named, each name once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staging: Vec<StagedFile>,
    /// Bytes of the uploaded files that it names, as they were when it was offered. On this machine they are only linked; on a
    /// cluster they are copied to its disk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uploaded_bytes: u64,
    /// The files that were brought for its present run, once its process has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<BroughtFiles>,
}

impl Job {
    /// The job as it was before anything of it was lost.
    #[must_use]
    pub fn first_time(&self) -> Self {
        Self {
            restarts: 0,
            missed: 0,
            late: 0,
            late_in_slot: 0,
            brought: None,
            ..self.clone()
        }
    }

    /// The files that are fetched from addresses before it starts, with their addresses.
    pub fn fetched(&self) -> impl Iterator<Item = (&StagedFile, &str)> {
        self.staging.iter().filter_map(|file| match &file.source {
            Some(Source::Address(address)) => Some((file, address.as_str())),
            _ => None,
        })
    }

    /// The names of the uploaded files that it is given under names of their own.
    pub fn uploads(&self) -> impl Iterator<Item = &str> {
        self.staging.iter().filter_map(|file| match &file.source {
            Some(Source::Upload(name)) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The files that are sent to addresses once it has completed, with their addresses.
    pub fn sent(&self) -> impl Iterator<Item = (&StagedFile, &str)> {
        self.staging
            .iter()
            .filter_map(|file| Some((file, file.target.as_deref()?)))
    }

    /// Bytes that are to be fetched from addresses before it starts, as far as its party has declared them; none where it has not.
    /// Files that it has uploaded are not among them: [`Job::uploaded_bytes`].
    pub fn input_bytes(&self) -> Option<u64> {
        declared_staging_bytes(self.fetched())
    }

    /// The same of the bytes that are to be sent to addresses once it has completed.
    pub fn output_bytes(&self) -> Option<u64> {
        declared_staging_bytes(self.sent())
    }
}

/// How the job of an agreement ended, as its executor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// How.
    pub outcome: RunOutcome,
    /// When its process started, where it did; where files were brought for it, when that began.
    pub started: Option<Micros>,
    /// When it ended, and its files were sent, where that was to be; of a lost one, when that was found.
    pub ended: Micros,
    /// Bytes of its input files.
    pub input_bytes: u64,
    /// Bytes kept of its outputs.
    pub output_bytes: u64,
    /// Whether it wrote more than was kept, or may have, since its supervisor was killed.
    pub truncated: bool,
    /// For how long its inputs were copied to where it ran, where they were.
    #[serde(default)]
    pub transfer_in: Micros,
    /// For how long its outputs were copied from there.
    #[serde(default)]
    pub transfer_out: Micros,
    /// Bytes that were copied in that time to where it ran.
    #[serde(default)]
    pub moved_in: u64,
    /// Bytes that were copied in that time from there.
    #[serde(default)]
    pub moved_out: u64,
    /// Seconds of its slot that were over when it began, as a peer tells it that has run it; 0 of all others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: Seconds,
    /// What became of its files, where some were to be moved. The record of its end has nothing of that.
    #[serde(skip)]
    pub staging: Option<Box<StagingEnd>>,
}

impl JobEnd {
    /// One without files.
    pub const fn new(outcome: RunOutcome, started: Option<Micros>, ended: Micros) -> Self {
        Self {
            outcome,
            started,
            ended,
            input_bytes: 0,
            output_bytes: 0,
            truncated: false,
            transfer_in: 0,
            transfer_out: 0,
            moved_in: 0,
            moved_out: 0,
            late: 0,
            staging: None,
        }
    }
}
