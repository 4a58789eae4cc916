//! Which waiting requests are looked at next because they may be able to start earlier as the plan stands.
//!
//! First those that are marked by themselves, in order. Then, by the standing rule, those that can use what became free
//! ([`FreedTime`]): for the earliest opening first, and of the requests the one that starts last. The place that it leaves is late in the
//! plan, where few can use it in turn; in queue order each end would have a chain of others follow. By the published rule requests
//! are marked one by one around what became free.

use super::WaitingList;
use super::free_runs::FreeRuns;
use super::freed_time::{FreedTime, Opening};
use super::starts_by_size::StartsBySize;
use crate::schedule::least_gain::LeastGain;
use crate::schedule::work::Work;
use crate::slot_tree::SlotTree;
use crate::time::Time;

/// The time that became free, and the requests by what they need.
#[derive(Debug, Clone, Default)]
pub(super) struct LooksByFreedTime {
    pub(super) freed: FreedTime,
    pub(super) starts: StartsBySize,
}

/// The state of one look at the requests that may be able to move up.
#[derive(Debug)]
pub(in crate::schedule) struct Looking {
    /// Time from this instant on is used.
    from: Time,
    least_gain: LeastGain,
    /// The runs around the current opening.
    runs: Option<FreeRuns>,
    /// Requests have taken free time since they were searched for: no run is longer, but one may be shorter.
    is_taken: bool,
}

impl Looking {
    /// Has time from an instant on used.
    pub(in crate::schedule) fn new(from: Time, least_gain: LeastGain) -> Self {
        Self {
            from,
            least_gain,
            runs: None,
            is_taken: false,
        }
    }

    /// Notes that a request that was looked at has moved, or has not.
    pub(in crate::schedule) fn note_outcome(&mut self, has_moved: bool) {
        if !has_moved && self.is_taken {
            self.runs = None;
        }
        self.is_taken |= has_moved;
    }

    /// The runs around an opening. What lies behind the part that they are of is left for later.
    fn runs(
        &mut self,
        opening: Opening,
        freed: &mut FreedTime,
        tree: &SlotTree,
        work: &mut Work,
    ) -> &FreeRuns {
        let known = self.runs.take().filter(|runs| runs.are_of(opening));
        let is_known = known.is_some();
        let runs = known.unwrap_or_else(|| {
            let (runs, end) = FreeRuns::around(tree, opening, self.from, work);
            freed.cut_current(end);
            runs
        });
        self.is_taken &= is_known;
        self.runs.insert(runs)
    }
}

impl WaitingList {
    /// The next request that may be able to move up as the plan stands, as far as the work lasts. It is not looked at any more then. None
    /// with work left: there is no other.
    pub(in crate::schedule) fn next_to_improve(
        &mut self,
        looking: &mut Looking,
        tree: &SlotTree,
        work: &mut Work,
    ) -> Option<u32> {
        loop {
            if let Some(handle) = self.next_marked() {
                return Some(handle);
            }
            if !self.look_around_moves_up() {
                return self.next_by_freed_time(looking, tree, work);
            }
        }
    }

    /// The next request that may be able to use what became free. An opening costs in all O(k log n) for its k runs, a look at each group of up
    /// to 4,096 of the n requests, and looks at the blocks and requests of those groups in which one may gain.
    fn next_by_freed_time(&mut self, looking: &mut Looking, tree: &SlotTree, work: &mut Work) -> Option<u32> {
        let LooksByFreedTime { freed, starts } = self.by_freed_time.as_mut()?;
        while !work.is_spent()
            && let Some(opening) = freed.current(looking.from)
        {
            let (least_gain, mut before) = (looking.least_gain, opening.looked_from);
            let runs = looking.runs(opening, freed, tree, work);
            let found = starts.last_that_may_gain(&mut before, runs, work);
            freed.note_look(before);
            match found {
                Some(handle) => {
                    let waiting = self.entries.get(handle as usize).and_then(Option::as_ref);
                    let gains = waiting.is_some_and(|waiting| {
                        runs.lets_gain(waiting, least_gain.of(&waiting.request, waiting.start))
                    });
                    if gains {
                        return Some(handle);
                    }
                }
                None if before > runs.first_position() => return None,
                None => {
                    freed.close();
                    looking.runs = None;
                }
            }
        }
        None
    }
}
