//! The use of a cluster's nodes by others: reservations and jobs that are not ours.

use domain::agreement::Run;
use domain::resources::BusyTime;
use scheduler::{Interval, Time};
use task::lock::lock;

use crate::slurm::cluster::SlurmCluster;
use crate::slurm::job_row::JobRow;
use crate::slurm::jobs::ownership::is_job_ours;
use crate::slurm::query::ReservationRow;
use crate::slurm::recurring::RecurringReservation;
use crate::slurm::reservations::dedicated::is_dedicated;
use crate::slurm::reservations::handover::jobs_after_handover;
use crate::slurm::snapshot::Snapshot;

/// Seconds by which the limit of a job that Slurm counts in whole minutes may reach beyond its slot.
const MINUTE: i64 = 60;
/// Seconds that a job is taken to run on that should have ended: Slurm kills late.
const LATE: i64 = 30;

/// When nodes are others', as far as that begins before `until`: their reservations, and the jobs that run outside of ours.
pub(crate) fn foreign_use(
    cluster: &SlurmCluster,
    present: &Snapshot,
    is_ours: impl Fn(Run) -> bool,
    until: Time,
) -> Vec<BusyTime> {
    let ours = |name: &str| cluster.run_of_name(name).is_some_and(&is_ours);
    let handed = jobs_after_handover(cluster);
    // Our own jobs end with their slots by themselves.
    let is_foreign = |job: &&JobRow| job.is_on_nodes() && !is_job_ours(cluster, job, &handed, &is_ours);
    let reservations = present
        .reservations
        .iter()
        .filter(|row| !ours(&row.name) && !is_dedicated(cluster, row))
        .flat_map(|row| {
            let times = times_of_foreign_use(cluster, row).into_iter();
            // A job of ours in front of it has a limit in whole minutes, which may not reach into it.
            times.map(move |time| (&row.nodes, time.start - MINUTE, time.end))
        });
    let jobs = present.jobs.iter().filter(is_foreign).map(|job| {
        let end = job.end.unwrap_or(Time::MAX).max(present.now + LATE);
        (&job.nodes, present.now, end)
    });
    let mut busy = Vec::new();
    for (nodes, start, end) in reservations.chain(jobs).filter(|(_, start, _)| *start < until) {
        let interval = Interval::new(start, (end + cluster.settings.turnaround).min(Time::MAX));
        busy.extend(cluster.numbers_of(nodes).map(|node| BusyTime {
            // Far fewer nodes than that are in the settings.
            node: u32::try_from(node).unwrap_or(u32::MAX),
            interval,
        }));
    }
    busy
}

/// When a reservation of others has its nodes, now and later.
fn times_of_foreign_use(cluster: &SlurmCluster, row: &ReservationRow) -> Vec<Interval> {
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
        zone: &cluster.settings.time_zone,
    };
    let mut times = recurring.times();
    // Where all slots are reserved at once, Slurm is asked before they are promised.
    let within = *lock(&cluster.seen.reserves_within);
    if let Some(lead) = within.filter(|within| *within < Time::MAX.seconds()) {
        for time in times.iter_mut().skip(1) {
            *time = recurring.as_foreseen(*time, lead);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use domain::resources::NodeState;

    use super::*;
    use crate::slurm::recurring::Recurrence;
    use crate::slurm::tests::cluster;

    #[test]
    fn reservations_of_others_take_their_nodes_whenever_they_come_again_and_for_ever_where_they_float_or_do_not_end()
     {
        let (_data, cluster) = cluster();
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
            let busy = foreign_use(&cluster, &present, |_| false, until);
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
}
