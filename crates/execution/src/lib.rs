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
mod processors;
pub mod programs;
mod shared_executor;
pub mod slurm;
pub mod staging;

pub use error::ExecutionError;
pub use executor::{Executor, PATIENCE};
pub use job::spec::{JobSpec, PieceSpec, SaveWork, StagedInput};

use std::collections::BTreeMap;
use std::time::Duration;

use domain::agreement::{JobEnd, Run};
use domain::clock::Micros;
use scheduler::{Interval, Seconds};
use serde::Serialize;
use uuid::Uuid;

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

/// More slots than an agreement ever has: its work is cut at millionths.
const SLOTS_MAX: u32 = 1_000_001;
/// The most reservations that a slot has beside the slots that it is to replace.
const PARTS_MAX: u32 = 32;

/// A placement that the plan has for a resource, as its executor is told of it in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedSlot {
    /// The run that it is for. Its reservation has the name of the run.
    pub run: Run,
    /// The party that it belongs to.
    pub party: String,
    /// Nodes.
    pub nodes: u32,
    /// From its start to its completion; it may move until it has begun.
    pub interval: Interval,
    /// Numbers of the nodes that it was given when it began; none before.
    pub given: Vec<u32>,
    /// Whether it has begun.
    pub begun: bool,
    /// Whether a request waits for its nodes.
    pub is_awaited: bool,
    /// The agreement that gives way with its slot once the request is granted, and stays as it is until then: the
    /// reservations for this one add the nodes and times that it lacks.
    pub replaces: Option<Uuid>,
    /// Whether a job is to be run in it; otherwise the nodes themselves are promised.
    pub has_job: bool,
    /// The application of the catalogue that the job runs; empty without a job.
    pub application: String,
}

impl PlannedSlot {
    /// The names of all its reservations. A slot that is to replace others may have several while it waits; all but one have
    /// the names of slots that no agreement has.
    pub(crate) fn reservations(&self) -> impl Iterator<Item = Run> + use<> {
        let (run, count) = (self.run, if self.replaces.is_some() { PARTS_MAX } else { 1 });
        (0..count).map(move |part| Run {
            slot: run.slot + part * SLOTS_MAX,
            ..run
        })
    }
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
