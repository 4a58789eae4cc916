//! Reservations that were handed to the users of their parties: whether they are used, and the jobs that run in them.
//!
//! Slurm forgets an ended reservation at once, and kills the jobs in it some time later; meanwhile they look like other
//! jobs, which may go on until their limits. So they are remembered until they are gone.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use domain::resources::Unused;
use task::lock::lock;
use uuid::Uuid;

use crate::PlannedSlot;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::job_row::{JobKey, JobRow, JobState};

/// The most that counts between two looks, twice as long as there is between them where nothing holds them up: a
/// machine may have slept meanwhile, or the service waited for its database.
const LOOK_MAX: Duration = Duration::from_secs(20);

/// Takes note, at an instant, of the reservations that have been handed to users and are held now, and of reservations
/// that have had a job.
pub(crate) fn note_use_after_handover(
    cluster: &SlurmCluster,
    slots: &[PlannedSlot],
    is_held: impl Fn(&PlannedSlot) -> bool,
    jobs: &[JobRow],
    at: Instant,
) {
    let blind = cluster.seen.blind.swap(false, Ordering::Relaxed);
    let mut handed = lock(&cluster.seen.handed);
    let begun = || slots.iter().filter(|slot| slot.begun && !slot.has_job);
    let current: HashSet<Uuid> = begun().map(|slot| slot.run.agreement).collect();
    let alive = jobs.iter().filter(|job| !job.state.is_final());
    let alive: HashSet<JobKey> = alive.filter_map(JobRow::key).collect();
    handed.retain(|agreement, handed| {
        handed.over = !current.contains(agreement);
        !handed.over || handed.jobs.iter().any(|job| alive.contains(job))
    });
    for slot in begun() {
        let one_use = handed.entry(slot.run.agreement).or_default();
        let seen = one_use.seen.filter(|_| !blind);
        one_use.unused += seen.map_or(Duration::ZERO, |seen| at.duration_since(seen).min(LOOK_MAX));
        one_use.seen = is_held(slot).then_some(at);
        let name = cluster.name_of_run(slot.run);
        for job in jobs.iter().filter(|job| job.reservation.as_ref() == Some(&name)) {
            one_use.used = true;
            one_use.jobs.extend(job.key());
        }
    }
}

/// The jobs that run on in reservations that are over.
pub(crate) fn jobs_left_over_after_handover<'a>(
    cluster: &SlurmCluster,
    jobs: &'a [JobRow],
) -> Vec<&'a JobRow> {
    let handed = lock(&cluster.seen.handed);
    let is_left = |job: &&JobRow| {
        let mut over = handed.values().filter(|handed| handed.over);
        let key = job.key().filter(|_| job.state == JobState::Running);
        key.is_some_and(|key| over.any(|over| over.jobs.contains(&key)))
    };
    jobs.iter().filter(is_left).collect()
}

/// The jobs that run in reservations that were handed to users, or have run there and are about to end.
pub(crate) fn jobs_after_handover(cluster: &SlurmCluster) -> HashSet<JobKey> {
    lock(&cluster.seen.handed)
        .values()
        .flat_map(|handed| handed.jobs.iter().cloned())
        .collect()
}

/// The reservations that were unused for long enough, each once for a warning.
pub(crate) fn unused_after_handover(cluster: &SlurmCluster) -> Vec<(Uuid, Unused)> {
    let reclaim_after = cluster.settings.reclaim_after.map(u64::try_from);
    let Some(Ok(reclaim_after)) = reclaim_after else {
        return Vec::new();
    };
    let reclaim_after = Duration::from_secs(reclaim_after);
    let mut unused = Vec::new();
    for (agreement, one_use) in lock(&cluster.seen.handed)
        .iter_mut()
        .filter(|(_, one_use)| !one_use.used && !one_use.over)
    {
        // No user loses a reservation without a warning: a late warning leaves as much time as one in time.
        if !one_use.warned && one_use.unused >= reclaim_after / 2 {
            one_use.warned = true;
            one_use.unused = reclaim_after / 2;
            unused.push((*agreement, Unused::Warn));
        } else if one_use.unused >= reclaim_after {
            unused.push((*agreement, Unused::Reclaim));
        }
    }
    unused
}

#[cfg(test)]
mod tests;
