//! Execution: from a slot of the plan to work that really runs. [`Executor`] is the seam to the real world, [`local`] runs
//! processes of this machine, [`slurm`] jobs of a cluster, and [`dispatcher`] is the task that makes the plan happen. Each
//! resource has its executor, by its kind, and a lane of its own in the dispatcher, so that one that hangs holds nobody
//! else.
//!
//! Whatever is killed, and whenever: a job is started at most once, and its end is not lost. What an executor knows of a
//! job it therefore keeps outside of this process, durably, before it acts; the service that comes back reads it.

mod began;
pub mod dispatcher;
mod figures;
pub mod files;
pub mod folder;
mod lane;
pub mod launch;
pub mod limits;
pub mod local;
mod process;
pub mod retention;
pub mod shortage;
pub mod slurm;
pub mod supervisor;
mod tree;
pub mod trouble;

pub use figures::{Calls, Cost, expose};

use std::path::PathBuf;
use std::time::Duration;

use scheduler::{Interval, Seconds};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agreement::JobEnd;
use crate::catalogue::{CheckpointSignal, JobLimits};
use crate::clock::{MICROS_PER_SECOND, Micros};
use crate::planner::{BusyTime, KeptNodes, NodeReport, Unused};
use crate::store::Condition;

/// Something that a promise on a resource rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub what: &'static str,
    /// How it was found.
    #[serde(flatten)]
    pub found: Found,
}

/// How something was found, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "found", content = "words", rename_all = "camelCase")]
pub enum Found {
    /// As it has to be.
    Good(String),
    /// It could not be looked at.
    Unknown(String),
    /// So that nothing can be promised.
    Wrong(String),
}

/// What an executor is told about a job: everything that it needs, so that it can be followed when the configuration
/// has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The agreement that it serves. There is never more than one job of an agreement, or of a piece of its work, at a time.
    pub agreement: Uuid,
    /// The party that it belongs to.
    pub party: String,
    /// The application of the catalogue that it runs; empty where that was not written down.
    #[serde(default)]
    pub application: String,
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
    /// What else it may have; what is `None` is not limited.
    #[serde(default)]
    pub limits: JobLimits,
    /// Which piece of the agreement's work it does; none where it was to do all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<PieceSpec>,
    /// How often work of the agreement was lost before: each time has a job of its own.
    #[serde(default)]
    pub restarts: u32,
}

/// What a job is told about the piece of work that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceSpec {
    /// Its number, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// How it is told to save its work before its slot ends, as was known when it was started: the last piece was not. It may
    /// change while it runs ([`Executor::save_before_end`]).
    pub save: Option<SaveWork>,
}

/// How a job is told to save its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveWork {
    /// By this signal,
    pub signal: CheckpointSignal,
    /// so many microseconds before its slot ends.
    pub grace: Micros,
}

/// The identity of a job: never is one started twice, unless its work was lost and its template has that run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId {
    /// The agreement that it serves.
    pub agreement: Uuid,
    /// Which piece of the agreement's work it does, from 1.
    pub piece: u32,
}

impl From<Uuid> for JobId {
    /// The job of an agreement whose work is done in one piece.
    fn from(agreement: Uuid) -> Self {
        Self { agreement, piece: 1 }
    }
}

impl JobSpec {
    /// Its identity.
    pub fn id(&self) -> JobId {
        JobId {
            agreement: self.agreement,
            piece: self.piece.map_or(1, |piece| piece.number),
        }
    }
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

/// A placement that the plan has for a resource, as its executor is told of it in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedSlot {
    /// The agreement, whose identity the slot bears wherever it is kept.
    pub agreement: Uuid,
    /// The piece of the agreement's work that it is for, from 1.
    pub piece: u32,
    /// How often work of the agreement was lost before.
    pub restarts: u32,
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
    /// The agreement whose slot gives way to it once the request is granted, and stays as it is until then: what is reserved for
    /// this one beside that one's nodes is to make it whole.
    pub replaces: Option<Uuid>,
    /// Whether a job is to be run in it; otherwise the nodes themselves are what was promised.
    pub has_job: bool,
    /// The application of the catalogue that the job runs; empty without a job.
    pub application: String,
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
}

/// How long a call may take if its executor says nothing else: a disk or a command that needs longer is in trouble.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long before it has to save its work a piece is started at the latest, in microseconds: what would do less than that is
/// not worth the danger that it saves nothing. The script of a cluster's jobs has it in milliseconds.
const WORTH_STARTING: Micros = MICROS_PER_SECOND;

/// The seam to the real world: what runs the jobs of a resource. Its calls may wait for disks and commands: they are made
/// off the async threads, each for at most [`Executor::patience`]; the caller then goes on without the answer and calls
/// again later. No two calls about one agreement are made at a time, also when the first was given up on. All of them are
/// idempotent, and worth another try when they fail.
pub trait Executor: Send + Sync {
    /// Looks at everything that a promise on the resource rests on. Where something is wrong, nothing new is promised there; it
    /// is looked at again.
    fn check(&self) -> Vec<Check> {
        Vec::new()
    }

    /// The calls that it has made of a cluster's programs since it began.
    fn calls(&self) -> Vec<Calls> {
        Vec::new()
    }

    /// What its slots have cost its cluster since it began; none where it has no cluster.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// Why the resource would refuse a job of this kind whenever it came, in its own words; `None` where it would take it, or where
    /// that cannot be known at the moment. That it has no room now is no reason.
    fn refusal_of(&self, job: &ProspectiveJob) -> Option<String> {
        let _ = job;
        None
    }

    /// Takes note of what the plan has for a resource: everything that was promised there and is not over, in order of
    /// start. Called again and again, soon after the plan has changed and every now and then without; what is held
    /// for agreements that are not listed any more is to be given back. Only where [`Executor::is_cluster`] says so.
    ///
    /// # Errors
    /// When something that is promised could not be made sure of; a further call tries again.
    fn prepare(&self, slots: &[PlannedSlot]) -> Result<(), ExecutionError> {
        let _ = slots;
        Ok(())
    }

    /// Takes note of when nodes are not to be used, besides what it knows itself: operators have said so, or the
    /// configuration has. Holds until it is told anew, and is told before each [`Executor::prepare`].
    fn leave_out(&self, nodes: Vec<BusyTime>) {
        let _ = nodes;
    }

    /// The nodes that it keeps for agreements, as of when it was last told of the plan.
    fn kept_nodes(&self) -> Vec<KeptNodes> {
        Vec::new()
    }

    /// The agreements whose nodes were due and are not held, with the begins of their slots, as of when it was last told of the
    /// plan.
    fn refused(&self) -> Vec<(Uuid, scheduler::Time)> {
        Vec::new()
    }

    /// Up to how many seconds before their begin slots have to be held, where others use the nodes, too; `None` where that is not
    /// so, or not known yet.
    fn reserves_within(&self) -> Option<scheduler::Seconds> {
        None
    }

    /// The agreements without a job whose nodes nobody uses, and what is to become of those, as of when it was last told of
    /// the plan.
    fn unused(&self) -> Vec<(Uuid, Unused)> {
        Vec::new()
    }

    /// Whether what a job is to go on from is there: for a later piece of work, what the piece before it has saved. Asked before
    /// a job is started for the first time.
    ///
    /// # Errors
    /// When that cannot be known at the moment.
    fn can_go_on(&self, job: &JobSpec) -> Result<bool, ExecutionError> {
        let _ = job;
        Ok(true)
    }

    /// Starts a job, unless it was started before: then nothing happens, whatever became of it.
    ///
    /// # Errors
    /// When it cannot be said that the job will run; a further call decides.
    fn start(&self, job: &JobSpec) -> Result<(), ExecutionError>;

    /// How a job stands. Also sees to it that it is watched over until its end, so it is to be called
    /// again and again while the job runs.
    ///
    /// # Errors
    /// When that cannot be known at the moment.
    fn poll(&self, job: JobId) -> Result<JobStatus, ExecutionError>;

    /// How a job has ended by its own record, against every other source; none where the record does not say that it has. Asked
    /// before the job counts as lost with its nodes.
    ///
    /// # Errors
    /// When the record cannot be read at the moment.
    fn recorded_end(&self, job: JobId) -> Result<Option<JobEnd>, ExecutionError> {
        let _ = job;
        Ok(None)
    }

    /// Has a job that runs stop at `end` instead of when it was to until now, durably. Called again and again while it
    /// runs; where that is its end already, nothing happens.
    ///
    /// # Errors
    /// When that could not be arranged; a further call tries again.
    fn keep_until(&self, job: JobId, end: Micros) -> Result<(), ExecutionError> {
        let _ = (job, end);
        Ok(())
    }

    /// Has a job that runs be told to save its work before its slot ends, or not be told, durably, whatever it was started
    /// with. Called again and again while it runs; where that is so already, nothing happens.
    ///
    /// # Errors
    /// When that could not be arranged; a further call tries again.
    fn save_before_end(&self, job: JobId, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        let _ = (job, save);
        Ok(())
    }

    /// Asks a job to stop; [`Executor::poll`] tells when it has. A job that is about to start never does.
    ///
    /// # Errors
    /// When the request could not be left; the job runs on.
    fn stop(&self, job: JobId) -> Result<(), ExecutionError>;

    /// Sees to it that nothing runs of the jobs of this identity that there were before their work had been lost so often, and
    /// that their records are out of the way; answers whether that is so. Asked before anything else about a job of an
    /// agreement whose work was lost before.
    ///
    /// # Errors
    /// When that cannot be known at the moment.
    fn make_way(&self, job: JobId, restarts: u32) -> Result<bool, ExecutionError> {
        let _ = (job, restarts);
        Ok(true)
    }

    /// How the nodes of the resource stand, and when they are not ours. Asked only where [`Executor::is_cluster`] says so.
    ///
    /// # Errors
    /// When that cannot be known at the moment; what was known before then holds on.
    fn node_states(&self) -> Result<NodeReport, ExecutionError> {
        Ok(NodeReport::default())
    }

    /// What the resource was like when it was last asked how its nodes stand; none where that is not known, or is old. Answers
    /// at once.
    fn condition(&self) -> Option<Condition> {
        None
    }

    /// Whether the resource is a cluster that others use too: it has to be told of slots in advance, and knows how its
    /// nodes stand.
    fn is_cluster(&self) -> bool {
        false
    }

    /// How long any one call may take.
    fn patience(&self) -> Duration {
        PATIENCE
    }
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
    /// Slurm did not do it; another try may help.
    #[error(transparent)]
    Slurm(#[from] slurm::Error),
}

impl ExecutionError {
    /// Whether the machine lacked something that it may have again later ([`shortage`]).
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::System { source, .. } if shortage::is_shortage(source))
    }

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
