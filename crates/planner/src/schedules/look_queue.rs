//! The resources that are looked at for agreements that may be able to start earlier.

use std::collections::BTreeMap;

use scheduler::Time;
use scheduler::schedule::Improvement;

use crate::schedules::{Schedules, slots_of_moves};

/// Looking at a resource costs at most this for each agreement that waits on it, until something changes there again. Else, in an order that changes
/// with time, the same agreements would be looked at again every second.
const LOOKS_WORK: u64 = 64;

/// The work that a look may cost in any case: what became free has to be searched also for a single agreement that waits.
const LOOKS_WORK_LEAST: u64 = scheduler::schedule::BUDGET;

/// Resources that are looked at in one slice, and of which it is told that they were.
const NEXT_MAX: usize = 16;

/// Where something may be able to start earlier: resources by their places, each with the work that may be done to look for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LookQueue {
    pub(super) work: BTreeMap<usize, u64>,
    /// The place behind the one that was looked at last.
    pub(super) next: usize,
}

impl LookQueue {
    /// Notes a resource with its number of waiting agreements.
    pub(crate) fn note(&mut self, at: usize, waiting: usize) {
        let work = LOOKS_WORK.saturating_mul(waiting as u64 + 1);
        self.work.insert(at, work.max(LOOKS_WORK_LEAST));
    }

    /// The next resource in turn, and the work that may be done on it.
    pub(crate) fn take(&mut self) -> Option<(usize, u64)> {
        let after = self.work.range(self.next..).next();
        let (at, _) = after.or_else(|| self.work.first_key_value())?;
        let at = *at;
        self.next = at + 1;
        self.work.remove_entry(&at)
    }

    /// The next resources in turn, at most so many.
    pub(crate) fn next_in_turn(&self, most: usize) -> Vec<usize> {
        let (before, after) = (self.work.range(..self.next), self.work.range(self.next..));
        after.chain(before).map(|(at, _)| *at).take(most).collect()
    }

    /// Whether a resource is to be looked at.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.work.contains_key(&at)
    }

    /// Has a resource looked at again, with the rest of the work.
    pub(crate) fn go_on(&mut self, at: usize, work: u64) {
        if work > 0 {
            self.work.insert(at, work);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.work.is_empty()
    }
}

impl Schedules {
    /// Notes that there may be time on a resource that was not free before.
    pub(super) fn queue_look_at_free_time(&mut self, at: usize) {
        let waiting = self
            .get(at)
            .map_or(0, |resource_plan| resource_plan.schedule.waiting_count());
        self.look_queue.note(at, waiting);
    }

    /// Has a waiting request looked at again that may be able to start earlier.
    pub(crate) fn queue_look_again(&mut self, at: usize, number: u64) {
        self.change_schedule(at, |schedule| (schedule.improve_again(number), Vec::new()));
        self.queue_look_at_free_time(at);
    }

    /// Finds the agreements that could start earlier on each resource, after all have been put at their stored places. After
    /// that nothing is looked at until something changes, so the same fault is not found again and again.
    pub(crate) fn reset_look_queue(&mut self) {
        for at in 0..self.places.len() {
            self.change_schedule(at, |schedule| (schedule.find_improvable(), Vec::new()));
        }
        self.look_queue = LookQueue::default();
    }

    /// Notes that there may be free time on every resource.
    pub(crate) fn queue_looks_everywhere(&mut self) {
        for at in 0..self.places.len() {
            self.queue_look_at_free_time(at);
        }
    }

    /// Moves some requests of a resource up that can start earlier; see [`Schedule::improve_some`](scheduler::Schedule::improve_some).
    pub(crate) fn improve_as_looked_at(
        &mut self,
        at: usize,
        now: Time,
        not_before: Time,
        work: u64,
        moves_max: usize,
        may_move: impl FnMut(u64) -> bool,
    ) -> Improvement {
        let improved = self.change_plan(at, |resource_plan| {
            let improved = resource_plan
                .schedule
                .improve_some(now, not_before, work, moves_max, may_move);
            let touched = slots_of_moves(&resource_plan.schedule, &improved.moved);
            (improved, touched)
        });
        improved.unwrap_or_default()
    }

    /// Whether a resource waits to be looked at for agreements that may be able to start earlier.
    pub(crate) fn has_some_to_look_at(&self) -> bool {
        !self.look_queue.is_empty()
    }

    /// The resources that are looked at next.
    pub(crate) fn next_to_look_at(&self) -> Vec<usize> {
        self.look_queue.next_in_turn(NEXT_MAX)
    }

    /// Whether a resource is still to be looked at.
    pub(crate) fn is_to_be_looked_at(&self, at: usize) -> bool {
        self.look_queue.has(at)
    }

    /// The next resource to be looked at, and the work that may be done on it.
    pub(crate) fn take_to_look_at(&mut self) -> Option<(usize, u64)> {
        self.look_queue.take()
    }

    /// Has a resource looked at again, with the rest of the work.
    pub(crate) fn go_on_looking(&mut self, at: usize, work: u64) {
        self.look_queue.go_on(at, work);
    }
}
