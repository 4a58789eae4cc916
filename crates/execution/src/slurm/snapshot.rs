//! Slurm's nodes, reservations and jobs at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use domain::agreement::Run;
use domain::resources::NodeState;
use scheduler::Time;

use crate::slurm::job_row::JobRow;
use crate::slurm::query::ReservationRow;

/// The reservations of a resource, by the slots that they are named after.
pub(crate) type HeldReservations = BTreeMap<Run, ReservationRow>;

/// Slurm's data at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) now: Time,
    pub(crate) reservations: Vec<ReservationRow>,
    /// The reservations that are named after slots.
    pub(crate) held: HeldReservations,
    pub(crate) jobs: Arc<Vec<JobRow>>,
    /// By the node's number.
    pub(crate) states: Vec<NodeState>,
    /// Processors that jobs have, and all, by the node's number.
    pub(crate) cpus: Vec<(u32, u32)>,
    pub(crate) reasons: BTreeMap<u32, String>,
}

/// The last look at a cluster since anything of ours was changed there.
#[derive(Debug, Default)]
pub(crate) struct LastSnapshot {
    last: Option<(Instant, Arc<Snapshot>)>,
    /// How often changes were begun.
    pub(crate) round: u64,
}

impl LastSnapshot {
    /// Forgets the data seen, also by looks that are under way: they are about to change.
    pub(crate) fn begin(&mut self) {
        self.last = None;
        self.round += 1;
    }

    pub(crate) fn put(&mut self, asked: Instant, present: Arc<Snapshot>) {
        self.last = Some((asked, present));
    }

    /// The data seen, and when they were asked for.
    pub(crate) fn last(&self) -> Option<(Instant, Arc<Snapshot>)> {
        self.last.clone()
    }
}
