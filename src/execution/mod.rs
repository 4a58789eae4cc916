//! Execution: from a slot of the plan to work that really runs. [`Executor`] is the seam to the real world, [`local`] runs
//! processes of this machine, and [`dispatcher`] is the task that makes the plan happen.
//!
//! Whatever is killed, and whenever: a job is started at most once, and its end is not lost. What an executor knows of a
//! job it therefore keeps outside of this process, durably, before it acts; the service that comes back reads it.

pub mod dispatcher;
pub mod folder;
pub mod launch;
pub mod local;
mod process;
pub mod supervisor;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agreement::JobEnd;
use crate::clock::Micros;

/// What an executor is told about a job: everything that it needs, so that it can be followed when the configuration
/// has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The agreement that it serves, and its identity: there is never more than one job of an agreement.
    pub agreement: Uuid,
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// Its arguments, checked against the catalogue.
    pub arguments: Vec<String>,
    /// The files that it reads, by absolute path; it finds them in its working folder by their names.
    pub inputs: Vec<PathBuf>,
    /// Nodes that it may use.
    pub nodes: u32,
    /// When it is stopped, in microseconds of the wall clock.
    pub slot_end: Micros,
    /// Bytes kept of each of its two outputs; what it writes beyond is dropped.
    pub output_limit: u64,
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStatus {
    /// Nobody has asked for it.
    NotStarted,
    /// It runs or is about to.
    Running {
        /// When its process started, once it has.
        started: Option<Micros>,
    },
    /// It is over, and nothing of it runs any more.
    Ended(JobEnd),
}

/// The seam to the real world. Its calls may wait for disks and commands: they are made off the async threads. All of
/// them are idempotent, and worth another try when they fail.
pub trait Executor: Send + Sync {
    /// Starts a job, unless it was started before: then nothing happens, whatever became of it.
    ///
    /// # Errors
    /// When it cannot be said that the job will run; a further call decides.
    fn start(&self, job: &JobSpec) -> Result<(), ExecutionError>;

    /// How the job of an agreement stands. Also sees to it that it is watched over until its end, so it is to be called
    /// again and again while the job runs.
    ///
    /// # Errors
    /// When that cannot be known at the moment.
    fn follow(&self, agreement: Uuid) -> Result<JobStatus, ExecutionError>;

    /// Asks a job to stop; [`Executor::follow`] tells when it has. A job that is about to start never does.
    ///
    /// # Errors
    /// When the request could not be left; the job runs on.
    fn stop(&self, agreement: Uuid) -> Result<(), ExecutionError>;
}

/// Why an executor could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The system refused; another try may help.
    #[error("{doing} {path}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The file or program.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A record of a job is not what was written; somebody must look at it.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl ExecutionError {
    /// For `map_err`: says what was being done, and to what.
    fn system<E: Into<std::io::Error>>(
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
