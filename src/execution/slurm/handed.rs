//! Reservations that were handed to the users of their parties: whether anybody uses them.

use std::collections::HashSet;

use scheduler::Time;
use uuid::Uuid;

use super::super::PlannedSlot;
use super::view::JobRow;
use super::{SlurmExecutor, lock, name_of};
use crate::planner::Unused;

/// What is known of the use of one reservation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handed {
    /// Since when this has been looked at, in its slot; a restart of the service begins anew, in favour of the user.
    since: Time,
    /// When it was last looked at.
    seen: Time,
    used: bool,
    warned: bool,
}

impl SlurmExecutor {
    /// Takes note of the reservations that have been handed to users, and of those that have had a job.
    pub(super) fn note_use(&self, slots: &[PlannedSlot], jobs: &[JobRow], now: Time) {
        let used: HashSet<&str> = jobs.iter().filter_map(|job| job.reservation.as_deref()).collect();
        let mut handed = lock(&self.handed);
        let begun = |slot: &&PlannedSlot| slot.begun && !slot.has_job;
        let current: HashSet<Uuid> = slots.iter().filter(begun).map(|slot| slot.agreement).collect();
        handed.retain(|agreement, _| current.contains(agreement));
        for agreement in current {
            let of = handed.entry(agreement).or_insert(Handed {
                since: now,
                seen: now,
                used: false,
                warned: false,
            });
            of.seen = now;
            of.used |= used.contains(name_of(agreement).as_str());
        }
    }

    /// The reservations that nobody has used for long enough, each once for a warning.
    pub(super) fn unused_now(&self) -> Vec<(Uuid, Unused)> {
        let Some(reclaim_after) = self.settings.reclaim_after else {
            return Vec::new();
        };
        let mut unused = Vec::new();
        for (agreement, of) in lock(&self.handed).iter_mut().filter(|(_, of)| !of.used) {
            let wait = of.seen - of.since;
            if wait >= reclaim_after {
                unused.push((*agreement, Unused::Reclaim));
            } else if !of.warned && wait >= reclaim_after / 2 {
                of.warned = true;
                unused.push((*agreement, Unused::Warn));
            }
        }
        unused
    }
}
