//! The cost of promises to the cluster: the time of reserved nodes, and of nodes that are idle for a slot that has not
//! begun while jobs of others wait.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::agreement::Run;
use crate::execution::lock::lock;
use crate::execution::slurm::executor::SlurmExecutor;
use crate::execution::slurm::query::JobState;
use crate::execution::slurm::snapshot::Snapshot;
use crate::planner::NodeState;

/// The most that counts between two looks: the state in a longer pause is not known.
const LOOK_MAX: Duration = Duration::from_secs(30);

impl SlurmExecutor {
    /// Counts the time since the last look at the nodes, as if it had been all along as it is now.
    pub(crate) fn note_cost(&self, present: &Snapshot, is_ours: impl Fn(Run) -> bool, at: Instant) {
        let mut costs = lock(&self.seen.costs);
        let since = costs.0.replace(at).map(|before| at.duration_since(before));
        let Some(time) = since.map(|since| since.min(LOOK_MAX)) else {
            return;
        };
        let (mut reserved, mut held_free) = (HashSet::new(), HashSet::new());
        for row in &present.reservations {
            let is_slot = self.id_of(&row.name).is_some_and(&is_ours);
            let nodes = row.nodes.iter().filter_map(|name| self.numbers.get(name));
            if is_slot && row.interval.start <= present.now {
                reserved.extend(nodes);
            } else if is_slot || self.is_dedicated(row) {
                held_free.extend(nodes);
            }
        }
        let others_wait = present
            .jobs
            .iter()
            .any(|job| job.state == JobState::Waiting && !job.put_off && job.reservation.is_none());
        let is_idle = |node: usize| {
            let (allocated, _) = present.cpus.get(node).copied().unwrap_or_default();
            allocated == 0 && present.states.get(node) == Some(&NodeState::Up)
        };
        let idle = held_free.difference(&reserved).filter(|node| is_idle(**node));
        let idle = idle.count();
        let times = |nodes: usize| time * u32::try_from(nodes).unwrap_or(u32::MAX);
        costs.1.reserved += times(reserved.len());
        if others_wait {
            costs.1.idled += times(idle);
        }
    }
}
