//! How the nodes of a cluster stand, and which of its reservations and jobs are not ours.
//!
//! Each look also tells the condition of the cluster, for prediction, and the cost of promises to it: the time of reserved nodes,
//! and of nodes that are idle for a slot that has not begun while jobs of others wait. Neither costs Slurm anything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::agreement::Run;
use domain::clock::Clock;
use domain::past::Condition;
use domain::resources::{BusyTime, NodeReport, NodeState};
use scheduler::{Interval, Time};
use task::lock::lock;

use crate::ExecutionError;
use crate::slurm::error::Error;
use crate::slurm::executor::SlurmExecutor;
use crate::slurm::query::{JobKey, JobRow, JobState, NodeRow, ReservationRow};
use crate::slurm::recurring::RecurringReservation;
use crate::slurm::snapshot::Snapshot;

/// Seconds by which the limit of a job that Slurm counts in whole minutes may reach beyond its slot.
const MINUTE: i64 = 60;
/// Seconds that a job is taken to run on that should have ended: Slurm kills late.
const LATE: i64 = 30;
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

impl SlurmExecutor {
    /// How the nodes stand and when they are not ours.
    pub(crate) fn report_nodes(&self) -> Result<NodeReport, ExecutionError> {
        // A reservation that is given back meanwhile has its mark before, one that is made has it after.
        let mut marked = self.marked()?;
        let (asked, round) = (Instant::now(), lock(&self.seen.observed).round);
        let present = Arc::new(self.take_snapshot()?);
        let mut observed = lock(&self.seen.observed);
        if observed.round == round {
            observed.put(asked, Arc::clone(&present));
        }
        drop(observed);
        marked.extend(self.marked()?);
        let is_ours = |id| marked.contains(&id);
        self.note_condition(&present, is_ours);
        self.note_cost(&present, is_ours, asked);
        Ok(NodeReport {
            busy: self.foreign(&present, is_ours, Time::MAX),
            states: present.states.clone(),
            reasons: present.reasons.clone(),
        })
    }

    /// Whether a job is one of ours, or runs or ran in our reservations.
    pub(crate) fn is_job_ours(
        &self,
        job: &JobRow,
        handed: &HashSet<JobKey>,
        is_ours: impl Fn(Run) -> bool,
    ) -> bool {
        let reservation = job.reservation.as_deref();
        let id = reservation.and_then(|name| self.run_of_name(name));
        let was_handed = || job.key().is_some_and(|key| handed.contains(&key));
        id.is_some_and(is_ours) || was_handed() || self.has_submitted(job)
    }

    /// Whether this service has submitted a job: any user may give a job such a name.
    fn has_submitted(&self, job: &JobRow) -> bool {
        let submitted = || {
            let id = self.run_of_name(&job.name)?;
            let spec = self.job_folder(id).spec().ok()??;
            self.owner_of(&spec.party).ok()
        };
        submitted().is_some_and(|owner| owner.user == job.user)
    }

    pub(crate) fn take_snapshot(&self) -> Result<Snapshot, Error> {
        let nodes = self.slurm.nodes(&self.settings.partition)?;
        let is_new = nodes.iter().any(|row| is_unheard_of(&row.state))
            && self.slurm.controller_start()? + HEARD_WITHIN > Clock::system().now();
        let nodes: HashMap<&str, &NodeRow> = nodes.iter().map(|row| (row.name.as_str(), row)).collect();
        let (mut states, mut cpus, mut reasons) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (number, name) in self.settings.nodes.iter().enumerate() {
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
        let reservations = self.slurm.reservations()?;
        Ok(Snapshot {
            states,
            cpus,
            reasons,
            held: self.by_slot(&reservations),
            reservations,
            jobs: self.jobs_now()?,
            now: Clock::system().now(),
        })
    }

    /// When nodes are others', as far as that begins before `until`: their reservations, and the jobs that run outside of ours.
    pub(crate) fn foreign(
        &self,
        present: &Snapshot,
        is_ours: impl Fn(Run) -> bool,
        until: Time,
    ) -> Vec<BusyTime> {
        let ours = |name: &str| self.run_of_name(name).is_some_and(&is_ours);
        let handed = self.handed_jobs();
        // Our own jobs end with their slots by themselves.
        let is_foreign = |job: &&JobRow| job.is_on_nodes() && !self.is_job_ours(job, &handed, &is_ours);
        let reservations = present
            .reservations
            .iter()
            .filter(|row| !ours(&row.name) && !self.is_dedicated(row))
            .flat_map(|row| {
                let times = self.times_of(row).into_iter();
                // A job of ours in front of it has a limit in whole minutes, which may not reach into it.
                times.map(move |time| (&row.nodes, time.start - MINUTE, time.end))
            });
        let jobs = present.jobs.iter().filter(is_foreign).map(|job| {
            let end = job.end.unwrap_or(Time::MAX).max(present.now + LATE);
            (&job.nodes, present.now, end)
        });
        let mut busy = Vec::new();
        for (nodes, start, end) in reservations.chain(jobs).filter(|(_, start, _)| *start < until) {
            let interval = Interval::new(start, (end + self.settings.turnaround).min(Time::MAX));
            busy.extend(self.numbers_of(nodes).map(|node| BusyTime {
                // Far fewer nodes than that are in the settings.
                node: u32::try_from(node).unwrap_or(u32::MAX),
                interval,
            }));
        }
        busy
    }

    /// When a reservation of others has its nodes, now and later.
    fn times_of(&self, row: &ReservationRow) -> Vec<Interval> {
        if row.floats {
            // It lies as far ahead at any time, so nothing that reaches beyond its begin can run later either. In whole minutes, so
            // that the plan does not change with every look.
            let start = Time(row.interval.start.seconds().div_euclid(MINUTE) * MINUTE);
            return vec![Interval::new(start, Time::MAX)];
        }
        let Some(repeats) = row.repeats else {
            return vec![row.interval];
        };
        let recurring = RecurringReservation {
            present: row.interval,
            repeats,
            may_end_early: row.may_end_early,
            zone: &self.settings.time_zone,
        };
        let mut times = recurring.times();
        // Where all slots are reserved at once, Slurm is asked before they are promised.
        let within = *lock(&self.seen.reserves_within);
        if let Some(lead) = within.filter(|within| *within < Time::MAX.seconds()) {
            for time in times.iter_mut().skip(1) {
                *time = recurring.as_foreseen(*time, lead);
            }
        }
        times
    }

    /// Takes note of the condition of the cluster.
    fn note_condition(&self, present: &Snapshot, is_ours: impl Fn(Run) -> bool) {
        let handed = self.handed_jobs();
        let jobs = present.jobs.iter().filter(|job| !job.state.is_final());
        let ours = jobs.filter(|job| self.is_job_ours(job, &handed, &is_ours));
        // Work of agreements has its nodes to itself.
        let ours: HashSet<usize> = self.numbers_of(ours.flat_map(|job| &job.nodes)).collect();
        let condition = condition_of_nodes(&present.states, &present.cpus, &ours);
        *lock(&self.seen.condition) = Some((Instant::now(), condition));
    }

    /// Counts the time since the last look at the nodes, as if it had been all along as it is now.
    fn note_cost(&self, present: &Snapshot, is_ours: impl Fn(Run) -> bool, at: Instant) {
        let mut costs = lock(&self.seen.costs);
        let since = costs.0.replace(at).map(|before| at.duration_since(before));
        let Some(time) = since.map(|since| since.min(LOOK_MAX)) else {
            return;
        };
        let (mut reserved, mut held_free) = (HashSet::new(), HashSet::new());
        for row in &present.reservations {
            let is_slot = self.run_of_name(&row.name).is_some_and(&is_ours);
            let nodes = self.numbers_of(&row.nodes);
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
}

/// The meaning of Slurm's word about a node. A controller that has just started has not heard of its idle nodes for some
/// seconds: that is no failure of theirs. A node that does not answer keeps its work until Slurm calls it down. A node with an
/// unknown word gets no new work.
fn state_of_node(row: &NodeRow, controller_is_new: bool) -> NodeState {
    match row.state.as_str() {
        word if is_unheard_of(word) && !controller_is_new => NodeState::Down,
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
fn is_unheard_of(word: &str) -> bool {
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
    use crate::slurm::recurring::Recurrence;
    use crate::slurm::tests::executor;

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
    fn reservations_of_others_take_their_nodes_whenever_they_come_again_and_for_ever_where_they_float_or_do_not_end()
     {
        let (_data, executor) = executor();
        let hour = 3_600;
        let row = |end: Time| ReservationRow {
            name: "others".into(),
            interval: Interval::new(Time(36_010), end),
            nodes: vec!["n1".into(), "elsewhere".into()],
            users: "root".into(),
            overlaps: false,
            repeats: None,
            floats: false,
            may_end_early: false,
        };
        let busy = |row: ReservationRow, until: Time| {
            let present = Snapshot {
                now: Time(36_000),
                held: BTreeMap::new(),
                reservations: vec![row],
                jobs: Arc::default(),
                states: vec![NodeState::Up],
                cpus: vec![(0, 4)],
                reasons: BTreeMap::new(),
            };
            let busy = executor.foreign(&present, |_| false, until);
            assert!(busy.iter().all(|busy| busy.node == 0));
            busy.into_iter().map(|busy| busy.interval).collect::<Vec<_>>()
        };
        let interval_of = |start: i64, end: i64| Interval::new(Time(start), Time(end));
        let short = Time(36_100);
        assert_eq!(busy(row(short), Time::MAX), [interval_of(35_950, 36_100)]);
        let hourly = ReservationRow {
            repeats: Some(Recurrence::Hourly),
            ..row(short)
        };
        assert_eq!(
            busy(hourly.clone(), Time(35_950 + 2 * hour)),
            [
                interval_of(35_950, 36_100),
                interval_of(35_950 + hour, 36_100 + hour)
            ]
        );
        assert!(busy(hourly, Time::MAX).len() > 24 * 7);
        let floating = ReservationRow {
            floats: true,
            ..row(short)
        };
        assert_eq!(
            busy(floating, Time::MAX),
            [Interval::new(Time(35_940), Time::MAX)]
        );
        assert_eq!(
            busy(row(Time::MAX), Time::MAX),
            [Interval::new(Time(35_950), Time::MAX)]
        );
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
