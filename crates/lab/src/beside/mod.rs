//! Promised slots beside a batch queue: the cost of reserved nodes for the jobs of the queue.
//!
//! A cluster of named nodes runs batch jobs by EASY backfilling (Lifka, 1995; Mu'alem and Feitelson, 2001). Jobs are served in
//! order of submission. A later job may go first only where, by the limits of all jobs, it does not delay the first of the queue.
//! Jobs end before their limits as the log says. Beside them, nodes are reserved for promised slots, each a number of seconds
//! before it begins (the lead), as Bespeak has Slurm do. A reserved node takes no batch job with a limit that reaches into the
//! slot; so it may idle before the slot.
//!
//! The model leaves out three things: Slurm looks at its queue every few seconds and not at once, counts limits in whole minutes,
//! and sorts jobs by priorities. Jobs have whole nodes here.

mod demand;
mod queue;
#[cfg(test)]
mod tests;

use scheduler::Seconds;

use advisor::workload::Job;

pub use demand::{Demand, DemandScale};
pub(crate) use queue::run_jobs_beside_promises;

/// A job of the batch queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchJob {
    /// When it is submitted, in seconds.
    pub(crate) submit: Seconds,
    /// Seconds that it runs, from 1 up to its limit.
    pub(crate) run: Seconds,
    /// Seconds that it may run, which is all that the queue knows.
    pub(crate) limit: Seconds,
    /// Nodes, at least 1.
    pub(crate) nodes: u32,
}

impl BatchJob {
    /// A job of a log. Where the log knows no limit, the limit is the run time; a job that ran longer than its limit is ended at
    /// its limit, as Slurm does.
    pub(crate) fn of(job: &Job) -> Self {
        let limit = job.estimate.filter(|limit| *limit >= 1).unwrap_or(job.run);
        Self {
            submit: job.submit,
            run: job.run.min(limit),
            limit,
            nodes: job.nodes,
        }
    }
}

/// A promised slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// When it begins, in seconds.
    pub start: Seconds,
    /// Its length in seconds, at least 1.
    pub duration: Seconds,
    /// Nodes, at least 1.
    pub nodes: u32,
}

impl Promise {
    /// When it ends.
    pub(crate) fn end(&self) -> Seconds {
        self.start + self.duration
    }
}

/// Which of the nodes that could be reserved for a slot are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeChoice {
    /// Those of the lowest numbers.
    Lowest,
    /// Those with the least time between their last known work (a running job up to its limit, or another slot) and the slot;
    /// where that is equal, those of the lowest numbers.
    BestFit,
    /// Nodes out of this many of the highest numbers, which batch jobs never use.
    Dedicated(u32),
}

/// A cluster and how its nodes are reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Nodes.
    pub(crate) nodes: u32,
    /// Seconds from the reservation of a slot's nodes to its begin.
    pub(crate) lead: Seconds,
    /// Which nodes are reserved.
    pub(crate) choice: NodeChoice,
    /// From when on, and up to when, node-seconds are counted.
    pub(crate) measured: (Seconds, Seconds),
}

/// The outcomes of jobs and promises. Node-seconds are those of the measured time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct QueueOutcome {
    /// Node-seconds in which nodes that batch jobs may use did nothing while a job waited.
    pub(crate) idle_waiting: i64,
    /// Those of them in which the node was reserved for a later slot.
    pub(crate) idle_reserved: i64,
    /// Node-seconds in which dedicated nodes did nothing, whether a job waited or not.
    pub(crate) idle_dedicated: i64,
    /// Node-seconds of batch jobs.
    pub(crate) batch: i64,
    /// Node-seconds of promised slots that were held.
    pub(crate) held: i64,
    /// When each job began, and on which nodes; `None` for one that is larger than the part of the cluster that it may use.
    pub(crate) jobs: Vec<Option<PlacedJob>>,
    /// The outcome of each promise.
    pub(crate) promises: Vec<PromiseOutcome>,
}

/// Where a job ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedJob {
    /// When it began, in seconds.
    pub(crate) start: Seconds,
    /// Its nodes.
    pub(crate) nodes: Vec<u32>,
}

/// The outcome of a promise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PromiseOutcome {
    /// Too few nodes could be reserved when the lead began; the others were looked for up to the slot's begin.
    pub(crate) late: bool,
    /// The nodes that it had; none where there were too few at its begin too, and the promise could not be held.
    pub(crate) nodes: Vec<u32>,
}
