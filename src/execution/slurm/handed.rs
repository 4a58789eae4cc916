//! Reservations that were handed to the users of their parties: whether anybody uses them, and what runs in them.
//!
//! Slurm forgets an ended reservation at once, and kills the jobs in it some time later; meanwhile they look like anybody's
//! jobs, which may go on until their limits. So they are remembered by their numbers until they are gone.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use scheduler::{Seconds, Time};
use uuid::Uuid;

use super::super::PlannedSlot;
use super::view::{JobRow, JobState};
use super::{SlurmExecutor, lock};
use crate::planner::Unused;

/// What is known of the use of one reservation.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    /// Seconds of its slot in which Slurm was seen to have no job in it; a restart of the service begins anew, and time in
    /// which Slurm could not be asked does not count, in favour of the user.
    unused: Seconds,
    /// When it was last looked at.
    seen: Time,
    warned: bool,
    /// The jobs that were seen in it, by their numbers; they outlast it.
    jobs: HashSet<String>,
    over: bool,
}

impl SlurmExecutor {
    /// Takes note of the reservations that have been handed to users, and of those that have had a job.
    pub(super) fn note_use(&self, slots: &[PlannedSlot], jobs: &[JobRow], now: Time) {
        let blind = self.blind.swap(false, Ordering::Relaxed);
        let mut handed = lock(&self.handed);
        let begun = |slot: &&PlannedSlot| slot.begun && !slot.has_job;
        let current: HashSet<Uuid> = slots.iter().filter(begun).map(|slot| slot.agreement).collect();
        let alive: HashSet<&String> = jobs
            .iter()
            .filter(|job| !job.state.is_final())
            .map(|job| &job.id)
            .collect();
        handed.retain(|agreement, of| {
            of.over = !current.contains(agreement);
            !of.over || of.jobs.iter().any(|job| alive.contains(job))
        });
        for agreement in current {
            let of = handed.entry(agreement).or_insert(Handed {
                unused: 0,
                seen: now,
                warned: false,
                jobs: HashSet::new(),
                over: false,
            });
            if !blind {
                of.unused += (now - of.seen).max(0);
            }
            of.seen = now;
            let name = self.name_of(agreement);
            let inside = jobs.iter().filter(|job| job.reservation.as_ref() == Some(&name));
            of.jobs.extend(inside.map(|job| job.id.clone()));
        }
    }

    /// The jobs that run on in reservations that are over.
    pub(super) fn left_over<'a>(&self, jobs: &'a [JobRow]) -> Vec<&'a JobRow> {
        let handed = lock(&self.handed);
        let is_left = |job: &&JobRow| {
            let mut over = handed.values().filter(|of| of.over);
            job.state == JobState::Running && over.any(|of| of.jobs.contains(&job.id))
        };
        jobs.iter().filter(is_left).collect()
    }

    /// The jobs that run in reservations that were handed to users, or have run there and are about to end.
    pub(super) fn handed_jobs(&self) -> HashSet<String> {
        lock(&self.handed)
            .values()
            .flat_map(|of| of.jobs.iter().cloned())
            .collect()
    }

    /// The reservations that nobody has used for long enough, each once for a warning.
    pub(super) fn unused_now(&self) -> Vec<(Uuid, Unused)> {
        let Some(reclaim_after) = self.settings.reclaim_after else {
            return Vec::new();
        };
        let mut unused = Vec::new();
        for (agreement, of) in lock(&self.handed)
            .iter_mut()
            .filter(|(_, of)| of.jobs.is_empty() && !of.over)
        {
            if of.unused >= reclaim_after {
                unused.push((*agreement, Unused::Reclaim));
            } else if !of.warned && of.unused >= reclaim_after / 2 {
                of.warned = true;
                unused.push((*agreement, Unused::Warn));
            }
        }
        unused
    }
}
