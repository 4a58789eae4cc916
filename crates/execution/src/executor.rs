//! The seam to the real world: what an executor does, as the dispatcher sees it.

use std::time::Duration;

use domain::agreement::{JobEnd, Run};
use domain::clock::Micros;
use domain::past::Condition;
use domain::resources::{BusyTime, KeptNodes, NodeReport, Unused};
use uuid::Uuid;

use crate::{
    Calls, Cost, ExecutionError, JobSpec, JobStatus, PlannedSlot, ProspectiveJob, SaveWork, SetupCheck,
};

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
