//! Which waiting requests may not lie at their first fit any more, because time became free near them or they left their places in order.

use super::{GivenUpPlace, WaitingList};
use crate::queue::Key;
use crate::schedule::work::{STRAY, Work};
use crate::time::Interval;

/// Requests that are looked at to mark them one by one as not lying at their first fit: where there are more, all are marked.
const LOOSENED_MAX: u64 = 4_096;
/// Places that were given up and are not known to be taken again: where there are more, the requests around them are marked.
const GIVEN_UP_MAX: usize = 64;

impl WaitingList {
    /// Marks a request as not known to lie at its first fit, unless it lies at the beginning of its window: it cannot start earlier,
    /// and its place is free of all others in the plan.
    pub(in crate::schedule) fn loosen(&mut self, handle: u32) {
        self.loosen_in_order(handle);
        if let Some(key) = self.key_if_late(handle) {
            self.unseen.add(key, handle);
        }
    }

    /// The same of a request that has been tried as the plan stands: it lies at its earliest place there.
    pub(in crate::schedule) fn loosen_in_order(&mut self, handle: u32) {
        if let Some(key) = self.key_if_late(handle) {
            self.loose.add(key, handle);
        }
    }

    /// The key of a request that does not lie at the beginning of its window.
    fn key_if_late(&self, handle: u32) -> Option<Key> {
        let waiting = self.get(handle)?;
        (waiting.start > waiting.request.ready).then_some(waiting.key)
    }

    /// Takes the marks from a request that leaves its place in the queue.
    pub(super) fn unmark(&mut self, handle: u32, key: Key) {
        self.loose.remove(key, handle);
        self.unseen.remove(key, handle);
    }

    /// The same of all.
    pub(in crate::schedule) fn loosen_all(&mut self) {
        self.loose.add_all();
        self.unseen.add_all();
    }

    /// Notes that a place was given up. Requests are marked around it before marks are looked at ([`Self::mark_around_given_up`]), unless
    /// another one takes it before.
    pub(in crate::schedule) fn give_up(&mut self, place: GivenUpPlace) {
        self.given_up.push(place);
        if self.given_up.len() > GIVEN_UP_MAX {
            self.mark_around_given_up();
        }
    }

    /// Notes that a place was taken. Where it had been given up by a request that `stood_before` says went before, all others lie as well as
    /// they did.
    pub(in crate::schedule) fn take_up(
        &mut self,
        (slot, nodes): (Interval, u32),
        stood_before: impl Fn(Option<Key>) -> bool,
    ) {
        let same =
            |place: &GivenUpPlace| place.slot == slot && place.nodes == nodes && stood_before(place.key);
        if let Some(at) = self.given_up.iter().position(same) {
            self.given_up.swap_remove(at);
        }
    }

    /// Marks requests around the places that were given up and not taken again.
    pub(in crate::schedule) fn mark_around_given_up(&mut self) {
        let places = std::mem::take(&mut self.given_up);
        self.loosen_around(places.into_iter().map(|place| place.slot));
    }

    /// The places that were given up and not taken again, as far as no requests are marked around them.
    pub(in crate::schedule) fn given_up(&self) -> &[GivenUpPlace] {
        &self.given_up
    }

    /// The same of all that may be able to start earlier now that something in one of `freed` is free.
    pub(in crate::schedule) fn loosen_around(&mut self, freed: impl IntoIterator<Item = Interval>) {
        let Some(reached) = self.reached_from(freed) else {
            return self.loosen_all();
        };
        for handle in reached {
            self.loosen(handle);
        }
    }

    /// Notes that a request has moved up from a place. Others may be able to use it, and are looked at after all that are unseen so far:
    /// else each of many moves would have the look begin again.
    pub(in crate::schedule) fn leave_by_move_up(&mut self, handle: u32, place: Interval) {
        self.loosen_in_order(handle);
        match self.reached_from([place]) {
            None => self.loose.add_all(),
            Some(reached) => reached.into_iter().for_each(|near| self.loosen_in_order(near)),
        }
        self.left_by_moves_up.push(place);
    }

    /// Has those looked at that may be able to use the places that others have left by moving up; false where there are no such places.
    pub(in crate::schedule) fn look_around_moves_up(&mut self) -> bool {
        let places = std::mem::take(&mut self.left_by_moves_up);
        if places.is_empty() {
            return false;
        }
        match self.reached_from(places) {
            None => self.unseen.add_all(),
            Some(reached) => reached.into_iter().for_each(|near| self.loosen(near)),
        }
        true
    }

    /// The requests that may be able to start earlier now that something in one of `freed` is free; `None` where they are many.
    fn reached_from(&self, freed: impl IntoIterator<Item = Interval>) -> Option<Vec<u32>> {
        let mut work = Work::of(STRAY * LOOSENED_MAX);
        let mut reached: Vec<u32> = Vec::new();
        for interval in freed {
            reached.extend(self.requests_near(interval, &mut work).map(|(handle, _)| handle));
            if work.is_spent() {
                return None;
            }
        }
        reached.sort_unstable();
        reached.dedup();
        Some(reached)
    }
}
