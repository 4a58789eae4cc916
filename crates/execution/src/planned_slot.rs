//! A placement that the plan has for a resource, and the names of its reservations.

use domain::agreement::Run;
use scheduler::Interval;
use uuid::Uuid;

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
