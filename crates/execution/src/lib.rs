//! Execution: from a slot of the plan to work that really runs. [`Executor`] is the seam to the real world, [`local_executor`] runs
//! processes of this machine, [`slurm`] jobs of a cluster, and [`dispatcher`] is the task that makes the plan happen. Each
//! resource has its executor, by its kind, and a lane of its own in the dispatcher, so that an executor that hangs delays no
//! other.
//!
//! If any process is killed at any time, a job is still started at most once, and its end is not lost. So an executor
//! keeps its knowledge of a job outside of this process, durably, before it acts. The service reads it after a restart.

pub mod dispatcher;
mod error;
mod executor;
pub mod executors;
pub mod faults;
pub mod files;
pub mod hosts;
pub mod job;
mod lane;
mod lanes;
pub mod lead;
pub mod local_executor;
pub mod metrics;
mod planned_slot;
mod processors;
pub mod programs;
mod shared_executor;
pub mod slurm;
pub mod staging;

pub use error::ExecutionError;
pub use executor::{Executor, PATIENCE};
pub use job::spec::{JobSpec, PieceSpec, SaveWork, StagedInput};
pub use planned_slot::PlannedSlot;

use std::collections::BTreeMap;
use std::time::Duration;

use domain::agreement::JobEnd;
use domain::clock::Micros;
use scheduler::Seconds;
use serde::Serialize;

/// Something that a promise on a resource rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupCheck {
    /// The part that was checked.
    pub what: &'static str,
    /// How it was found.
    #[serde(flatten)]
    pub found: CheckResult,
}

/// How something was found, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "found", content = "words", rename_all = "camelCase")]
pub enum CheckResult {
    /// As it has to be.
    Good(String),
    /// It could not be looked at.
    Unknown(String),
    /// So that nothing can be promised.
    Wrong(String),
}

/// The numbers of calls, by program and outcome: `done`, `refused`, `down`, `slow` or `failed`.
pub type Calls = BTreeMap<(&'static str, &'static str), u64>;

/// The time of nodes that slots have cost a cluster, one hour of two nodes being two hours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// In reservations that had begun.
    pub reserved: Duration,
    /// Idle in front of reservations, or dedicated to them, while jobs of others waited.
    pub idled: Duration,
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStatus {
    /// It was not asked for.
    NotStarted,
    /// It runs or is about to.
    Running {
        /// When its process started, once it has.
        started: Option<Micros>,
    },
    /// It is over, and nothing of it runs any more.
    Ended(JobEnd),
}

/// A job that may be promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProspectiveJob {
    /// The party that it would belong to.
    pub party: String,
    /// The application of the catalogue that it would run.
    pub application: String,
    /// Nodes.
    pub nodes: u32,
    /// Seconds that its slot would last.
    pub seconds: Seconds,
    /// Whether it may run on this machine only if it is isolated: its application is not trusted.
    pub is_isolated: bool,
}
