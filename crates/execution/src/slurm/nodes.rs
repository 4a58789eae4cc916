//! How the nodes of a cluster stand.
//!
//! Each look also tells the condition of the cluster, for prediction, and the cost of promises to it: the time of reserved nodes,
//! and of nodes that are idle for a slot that has not begun while jobs of others wait. Neither costs Slurm anything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::agreement::Run;
use domain::clock::Clock;
use domain::past::Condition;
use domain::resources::{NodeReport, NodeState};
use scheduler::Time;
use task::lock::lock;

use crate::ExecutionError;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::Error;
use crate::slurm::foreign_use::foreign_use;
use crate::slurm::job_row::JobState;
use crate::slurm::jobs::ownership::is_job_ours;
use crate::slurm::query::{NodeRow, query_controller_start, query_nodes, query_reservations};
use crate::slurm::reservations::dedicated::is_dedicated;
use crate::slurm::reservations::handover::jobs_after_handover;
use crate::slurm::reservations::marks::marked_runs;
use crate::slurm::snapshot::Snapshot;

/// Seconds after its start within which a controller hears from each node that is there: it asks all of them at once.
const HEARD_WITHIN: i64 = 60;
/// The reason for the state of a node of which Slurm gives none.
const SILENT: &str = "it does not respond";
/// How long the condition is taken to be like that: nodes are asked about several times as often.
pub(super) const CONDITION_GOOD_FOR: Duration = Duration::from_mins(1);
/// Millionths in a whole.
const WHOLE: u64 = 1_000_000;
/// The most time that is counted as a cost between two looks: the state in a longer pause is not known.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// How the nodes stand and when they are not ours.
pub(crate) fn report_nodes(cluster: &SlurmCluster) -> Result<NodeReport, ExecutionError> {
    // A reservation that is given back meanwhile has its mark before, one that is made has it after.
    let mut marked = marked_runs(&cluster.marks)?;
    let (asked, round) = (Instant::now(), lock(&cluster.seen.observed).round);
    let present = Arc::new(look_at_nodes(cluster)?);
    let mut observed = lock(&cluster.seen.observed);
    if observed.round == round {
        observed.put(asked, Arc::clone(&present));
    }
    drop(observed);
    marked.extend(marked_runs(&cluster.marks)?);
    let is_ours = |id| marked.contains(&id);
    note_condition_of_nodes(cluster, &present, is_ours);
    note_cost_of_nodes(cluster, &present, is_ours, asked);
    Ok(NodeReport {
        busy: foreign_use(cluster, &present, is_ours, Time::MAX),
        states: present.states.clone(),
        reasons: present.reasons.clone(),
    })
}

/// Looks at the nodes, the reservations and the jobs of a cluster.
pub(crate) fn look_at_nodes(cluster: &SlurmCluster) -> Result<Snapshot, Error> {
    let nodes = query_nodes(&cluster.slurm, &cluster.settings.partition)?;
    let is_new = nodes.iter().any(|row| is_node_unheard_of(&row.state))
        && query_controller_start(&cluster.slurm)? + HEARD_WITHIN > Clock::system().now();
    let nodes: HashMap<&str, &NodeRow> = nodes.iter().map(|row| (row.name.as_str(), row)).collect();
    let (mut states, mut cpus, mut reasons) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (number, name) in cluster.settings.nodes.iter().enumerate() {
        let row = nodes.get(name.as_str());
        let state = row.map_or(NodeState::Down, |row| state_of_node(row, is_new));
        states.push(state);
        cpus.push(row.map_or((0, 0), |row| row.cpus));
        if state != NodeState::Up {
            let reason = row.map_or_else(
                || Some("it is not in the partition".to_owned()),
                |row| row.reason.clone().or(row.silent.then(|| SILENT.to_owned())),
            );
            // Far fewer nodes than that are in the settings.
            reasons.extend(u32::try_from(number).ok().zip(reason));
        }
    }
    let reservations = query_reservations(&cluster.slurm)?;
    Ok(Snapshot {
        states,
        cpus,
        reasons,
        held: cluster.held_reservations(&reservations),
        reservations,
        jobs: cluster.jobs_now()?,
        now: Clock::system().now(),
    })
}

/// Takes note of the condition of the cluster.
fn note_condition_of_nodes(cluster: &SlurmCluster, present: &Snapshot, is_ours: impl Fn(Run) -> bool) {
    let handed = jobs_after_handover(cluster);
    let jobs = present.jobs.iter().filter(|job| !job.state.is_final());
    let ours = jobs.filter(|job| is_job_ours(cluster, job, &handed, &is_ours));
    // Work of agreements has its nodes to itself.
    let ours: HashSet<usize> = cluster.numbers_of(ours.flat_map(|job| &job.nodes)).collect();
    let condition = condition_of_nodes(&present.states, &present.cpus, &ours);
    *lock(&cluster.seen.condition) = Some((Instant::now(), condition));
}

/// Counts the time since the last look at the nodes, as if it had been all along as it is now.
fn note_cost_of_nodes(
    cluster: &SlurmCluster,
    present: &Snapshot,
    is_ours: impl Fn(Run) -> bool,
    at: Instant,
) {
    let mut costs = lock(&cluster.seen.costs);
    let since = costs.0.replace(at).map(|before| at.duration_since(before));
    let Some(time) = since.map(|since| since.min(LOOK_MAX)) else {
        return;
    };
    let (mut reserved, mut held_free) = (HashSet::new(), HashSet::new());
    for row in &present.reservations {
        let is_slot = cluster.run_of_name(&row.name).is_some_and(&is_ours);
        let nodes = cluster.numbers_of(&row.nodes);
        if is_slot && row.interval.start <= present.now {
            reserved.extend(nodes);
        } else if is_slot || is_dedicated(cluster, row) {
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
    let idle = held_free
        .difference(&reserved)
        .filter(|node| is_idle(**node))
        .count();
    let times = |nodes: usize| time * u32::try_from(nodes).unwrap_or(u32::MAX);
    costs.1.reserved += times(reserved.len());
    if others_wait {
        costs.1.idled += times(idle);
    }
}

/// The meaning of Slurm's word about a node. A controller that has just started has not heard of its idle nodes for some
/// seconds: that is no failure of theirs. A node that does not answer keeps its work until Slurm calls it down. A node with an
/// unknown word gets no new work.
fn state_of_node(row: &NodeRow, controller_is_new: bool) -> NodeState {
    match row.state.as_str() {
        word if is_node_unheard_of(word) && !controller_is_new => NodeState::Down,
        "down" | "error" | "future" | "inval" | "powered_down" | "power_down" | "powering_down" => {
            NodeState::Down
        }
        _ if row.silent => NodeState::Drained,
        "idle" | "allocated" | "mixed" | "completing" | "reserved" | "planned" | "maint" | "blocked"
        | "unknown" | "unk" => NodeState::Up,
        _ => NodeState::Drained,
    }
}

/// Whether a word says that the controller has not heard of a node since it began.
fn is_node_unheard_of(word: &str) -> bool {
    matches!(word, "unknown" | "unk")
}

/// From the states of nodes, the processors that jobs have of each and all that it has, and the nodes that agreements' jobs
/// have. Slurm does not report the traffic of the network.
fn condition_of_nodes(states: &[NodeState], cpus: &[(u32, u32)], ours: &HashSet<usize>) -> Condition {
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
        nodes_up: Some(up),
        ..Condition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_does_not_answer_takes_nothing_new_and_one_that_is_never_heard_of_is_down() {
        let row = |state: &str, silent| NodeRow {
            name: "n1".into(),
            state: state.into(),
            silent,
            cpus: (0, 4),
            reason: None,
        };
        let [up, drained, down] = [NodeState::Up, NodeState::Drained, NodeState::Down];
        // Each as an old controller and as a new one says it.
        for (state, silent, old, new) in [
            ("idle", false, up, up),
            ("idle", true, drained, drained),
            ("mixed", true, drained, drained),
            ("down", true, down, down),
            ("drained", false, drained, drained),
            ("unknown", false, down, up),
            ("unknown", true, down, drained),
            ("no_such_word", false, drained, drained),
        ] {
            let row = row(state, silent);
            assert_eq!(
                [state_of_node(&row, false), state_of_node(&row, true)],
                [old, new],
                "{row:?}"
            );
        }
    }

    #[test]
    fn what_others_leave_is_the_share_of_processors_on_nodes_that_are_up() {
        let (up, down) = (NodeState::Up, NodeState::Down);
        let condition_of = |states: &[NodeState], cpus: &[(u32, u32)], ours: &[usize]| {
            let condition = condition_of_nodes(states, cpus, &ours.iter().copied().collect());
            (condition.free_cpu, condition.nodes_up)
        };
        let cpus = [(2, 4), (4, 4), (0, 4), (4, 4)];
        assert_eq!(
            condition_of(&[up, up, up, down], &cpus, &[1]),
            (Some(833_333), Some(3))
        );
        assert_eq!(condition_of(&[up; 4], &cpus, &[]), (Some(375_000), Some(4)));
        assert_eq!(condition_of(&[down; 4], &cpus, &[]), (None, Some(0)));
    }
}
