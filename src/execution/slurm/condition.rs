//! The condition of the cluster, for prediction: the share of its processors that others leave free, and the number of nodes
//! that are up. Taken from the look at the nodes, so that it costs Slurm nothing.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::agreement::Run;
use crate::execution::lock::lock;
use crate::execution::slurm::executor::SlurmExecutor;
use crate::execution::slurm::snapshot::Snapshot;
use crate::planner::NodeState;
use crate::store::Condition;

/// How long it is taken to be like that: nodes are asked about several times as often.
pub(super) const GOOD_FOR: Duration = Duration::from_mins(1);
/// Millionths in a whole.
const WHOLE: u64 = 1_000_000;

impl SlurmExecutor {
    /// Takes note of the condition of the cluster.
    pub(crate) fn note_condition(&self, present: &Snapshot, is_ours: impl Fn(Run) -> bool) {
        let handed = self.handed_jobs();
        let jobs = present.jobs.iter().filter(|job| !job.state.is_final());
        let ours = jobs.filter(|job| self.is_in_ours(job, &handed, &is_ours));
        // Work of agreements has its nodes to itself.
        let ours: HashSet<usize> = ours
            .flat_map(|job| &job.nodes)
            .filter_map(|name| self.numbers.get(name).copied())
            .collect();
        let condition = condition_of(&present.states, &present.cpus, &ours);
        *lock(&self.seen.condition) = Some((Instant::now(), condition));
    }
}

/// From the states of nodes, the processors that jobs have of each and all that it has, and the nodes that agreements' jobs
/// have. Slurm does not report the traffic of the network.
fn condition_of(states: &[NodeState], cpus: &[(u32, u32)], ours: &HashSet<usize>) -> Condition {
    let (mut up, mut others, mut all) = (0, 0, 0);
    for (node, (state, cpus)) in states.iter().zip(cpus).enumerate() {
        if *state == NodeState::Up {
            up += 1;
            all += u64::from(cpus.1);
            if !ours.contains(&node) {
                others += u64::from(cpus.0.min(cpus.1));
            }
        }
    }
    let free = ((all - others) * WHOLE).checked_div(all);
    Condition {
        free_cpu: free.and_then(|free| i64::try_from(free).ok()),
        bandwidth_in: None,
        bandwidth_out: None,
        nodes_up: Some(up),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_leave_is_the_share_of_processors_on_nodes_that_are_up() {
        let (up, down) = (NodeState::Up, NodeState::Down);
        let of = |states: &[NodeState], cpus: &[(u32, u32)], ours: &[usize]| {
            let condition = condition_of(states, cpus, &ours.iter().copied().collect());
            (condition.free_cpu, condition.nodes_up)
        };
        let cpus = [(2, 4), (4, 4), (0, 4), (4, 4)];
        assert_eq!(of(&[up, up, up, down], &cpus, &[1]), (Some(833_333), Some(3)));
        assert_eq!(of(&[up; 4], &cpus, &[]), (Some(375_000), Some(4)));
        assert_eq!(of(&[down; 4], &cpus, &[]), (None, Some(0)));
    }
}
