//! Execution: from a slot of the plan to work that really runs. [`Executor`] is the seam to the real world, [`local`] runs
//! processes of this machine, [`slurm`] jobs of a cluster, and [`dispatcher`] is the task that makes the plan happen. Each
//! resource has its executor, by its kind, and a lane of its own in the dispatcher, so that an executor that hangs delays no
//! other.
//!
//! If any process is killed at any time, a job is still started at most once, and its end is not lost. So an executor
//! keeps its knowledge of a job outside of this process, durably, before it acts. The service reads it after a restart.

pub mod dispatcher;
mod error;
pub mod executors;
pub mod faults;
pub mod files;
pub mod job;
mod lane;
mod lanes;
pub mod lead;
pub mod local;
pub mod metrics;
mod processors;
pub mod slurm;
pub mod staging;

pub use error::ExecutionError;
pub use job::spec::{JobSpec, PieceSpec, SaveWork, StagedInput};

use std::collections::BTreeMap;
use std::time::Duration;

use domain::agreement::{JobEnd, Run};
use domain::clock::Micros;
use domain::past::Condition;
use domain::resources::{BusyTime, KeptNodes, NodeReport, Unused};
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

/// How long a call may take if its executor says nothing else: a disk or a command that needs longer is in trouble.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The interface to the real world: it runs the jobs of a resource. Its calls may wait for disks and commands: they are
/// made off the async threads, each for at most [`Executor::patience`]; the caller then goes on without the answer and
/// calls again later. No two calls about one agreement are made at a time, also when the first was given up on. All of
/// them are idempotent, and worth another try when they fail.
pub trait Executor: Send + Sync {
    /// Looks at everything that a promise on the resource rests on. Where something is wrong, nothing new is promised there; it
    /// is looked at again.
    fn check(&self) -> Vec<SetupCheck> {
        Vec::new()
    }

    /// The calls that it has made of a cluster's programs since it began.
    fn calls(&self) -> Calls {
        Calls::new()
    }

    /// The cost of its slots for its cluster since it began; none where it has no cluster.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// Whether [`Executor::refusal_of`] may have something to say.
    fn judges_jobs(&self) -> bool {
        self.is_cluster()
    }

    /// Why the resource would refuse a job of this kind whenever it came, in its own words; `None` where it would take it, or where
    /// that cannot be known at the moment. That it has no room now is no reason.
    fn refusal_of(&self, _job: &ProspectiveJob) -> Option<String> {
        None
    }

    /// Takes note of the plan for a resource: all promises there that are not over, in order of start. Called again and
    /// again, soon after the plan has changed and every now and then without; nodes held for agreements that are not
    /// listed any more are to be given back. Only where [`Executor::is_cluster`] says so.
    ///
    /// # Errors
    /// When something that is promised could not be made sure of; a further call tries again.
    fn prepare(&self, _slots: &[PlannedSlot]) -> Result<(), ExecutionError> {
        Ok(())
    }

    /// Takes note of the times when nodes are not to be used, beside its own knowledge: by the word of operators or the
    /// configuration. Valid until the next call, which comes before each [`Executor::prepare`].
    fn leave_out(&self, _nodes: Vec<BusyTime>) {}

    /// The nodes that it keeps for agreements, as of when it was last told of the plan.
    fn kept_nodes(&self) -> Vec<KeptNodes> {
        Vec::new()
    }

    /// The agreements with nodes that were due and are not held, with the begins of their slots, as of the last hand-over of
    /// the plan.
    fn refused(&self) -> Vec<(Uuid, scheduler::Time)> {
        Vec::new()
    }

    /// Up to how many seconds before their begin slots have to be held, where others use the nodes, too; `None` where that is not
    /// so, or not known yet.
    fn reserves_within(&self) -> Option<scheduler::Seconds> {
        None
    }

    /// Up to how many seconds before their begin slots without a job have to be held: their parties are told how to name them.
    fn hands_over_within(&self) -> Option<scheduler::Seconds> {
        self.reserves_within()
    }

    /// The agreements without a job that do not use their nodes, and the treatment of the nodes, as of the last hand-over of
    /// the plan.
    fn unused(&self) -> Vec<(Uuid, Unused)> {
        Vec::new()
    }

    /// Whether the saved work that a job is to go on from is there: for a later slot, the saved work of the slot before
    /// it. Asked before a job is started for the first time.
    ///
    /// # Errors
    /// When that cannot be known at the moment.
    fn can_resume(&self, _job: &JobSpec) -> Result<bool, ExecutionError> {
        Ok(true)
    }

    /// Starts a job, unless it was started before: then nothing happens, in any state of the job.
    ///
    /// # Errors
    /// When it cannot be said that the job will run; a further call decides.
    fn start(&self, job: &JobSpec) -> Result<(), ExecutionError>;

    /// How a job stands. Also sees to it that it is watched over until its end, so it is to be called
    /// again and again while the job runs.
    ///
    /// # Errors
    /// When that cannot be known at the moment.
    fn poll(&self, run: Run) -> Result<JobStatus, ExecutionError>;

    /// How a job has ended by its own record, against every other source; none where the record does not say that it has. Asked
    /// before the job counts as lost with its nodes.
    ///
    /// # Errors
    /// When the record cannot be read at the moment.
    fn recorded_job_end(&self, _run: Run) -> Result<Option<JobEnd>, ExecutionError> {
        Ok(None)
    }

    /// Has a job that runs stop at `end` instead of when it was to until now, durably. Called again and again while it
    /// runs; where that is its end already, nothing happens.
    ///
    /// # Errors
    /// When that could not be arranged; a further call tries again.
    fn keep_until(&self, _run: Run, _end: Micros) -> Result<(), ExecutionError> {
        Ok(())
    }

    /// Sets, durably, whether a running job is told to save its work before its slot ends, even if it was started with
    /// another setting. Called again and again while it runs; where this is set already, nothing happens.
    ///
    /// # Errors
    /// When that could not be arranged; a further call tries again.
    fn save_before_end(&self, _run: Run, _save: Option<SaveWork>) -> Result<(), ExecutionError> {
        Ok(())
    }

    /// Asks a job to stop; [`Executor::poll`] tells when it has. A job that is about to start never does.
    ///
    /// # Errors
    /// When the request could not be left; the job runs on.
    fn stop(&self, run: Run) -> Result<(), ExecutionError>;

    /// Stops the attempts before this run, and puts their records aside when nothing of them runs; answers whether that is so.
    /// Asked before anything else about a run that is not the first attempt.
    ///
    /// # Errors
    /// When that cannot be known at the moment.
    fn end_earlier_attempts(&self, _run: Run) -> Result<bool, ExecutionError> {
        Ok(true)
    }

    /// How the nodes of the resource stand, and when they are not ours. Asked only where [`Executor::is_cluster`] says so.
    ///
    /// # Errors
    /// When this cannot be known at the moment; the knowledge from before then stays valid.
    fn node_states(&self) -> Result<NodeReport, ExecutionError> {
        Ok(NodeReport::default())
    }

    /// The condition of the resource when the states of its nodes were last asked for; none where it is not known, or is old.
    /// Answers at once.
    fn condition(&self) -> Option<Condition> {
        None
    }

    /// Whether the resource is a cluster that others use too: it has to be told of slots in advance, and knows how its
    /// nodes stand.
    fn is_cluster(&self) -> bool {
        false
    }

    /// Whether the files of its jobs are moved by it, and not by us.
    fn moves_files(&self) -> bool {
        false
    }

    /// How long any one call may take.
    fn patience(&self) -> Duration {
        PATIENCE
    }
}
