//! Which agreements were moved into free time of late.

use std::collections::{BTreeSet, HashMap, VecDeque};

use scheduler::{Seconds, Time};
use uuid::Uuid;

const HOUR: Seconds = 3_600;

/// Which agreements were moved of late, and when those are looked at again that were moved too often.
#[derive(Debug, Clone, Default)]
pub(crate) struct MovedUp {
    /// The last moves of each, as many as are counted.
    pub(super) times: HashMap<Uuid, VecDeque<Time>>,
    /// Resource and number.
    pub(super) again: BTreeSet<(Time, usize, u64)>,
}

impl MovedUp {
    /// From when on an agreement may be moved that may be moved so often in an hour.
    pub(crate) fn next_move_time(&self, agreement: Uuid, moves_per_hour: usize) -> Option<Time> {
        let times = self.times.get(&agreement)?;
        let oldest = times.len().checked_sub(moves_per_hour)?;
        times.get(oldest).map(|at| *at + HOUR)
    }

    pub(crate) fn note(&mut self, agreement: Uuid, now: Time) {
        let times = self.times.entry(agreement).or_default();
        times.retain(|at| *at + HOUR > now);
        times.push_back(now);
    }

    /// Forgets an agreement that is over.
    pub(crate) fn forget(&mut self, agreement: Uuid) {
        self.times.remove(&agreement);
    }
}
