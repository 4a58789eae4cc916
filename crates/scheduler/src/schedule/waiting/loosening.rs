//! Which waiting requests may not lie at their first fit any more, because time became free near them or they left their places in order.

use super::{GivenUpPlace, WaitingList, WaitingRequest};
use crate::queue::Key;
use crate::schedule::work::{STRAY, Work};
use crate::time::{Interval, Time};

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

    /// Marks a request that has been tried as the plan stands as not known to lie at its first fit in order: in the plan as it stands it lies at
    /// its earliest place.
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

    /// Marks all as not known to lie at their first fit.
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
        let places: Vec<_> = places
            .into_iter()
            .map(|place| (place.slot, place.nodes))
            .collect();
        self.loosen_around(&places);
    }

    /// Marks all that may be able to start earlier now that so many nodes in each of some intervals are free, or has them looked at as those
    /// that can use it.
    pub(in crate::schedule) fn loosen_around(&mut self, freed: &[(Interval, u32)]) {
        if let Some(looks) = &mut self.by_freed_time {
            for (interval, nodes) in freed {
                looks.freed.add(*interval, *nodes);
            }
            return self.loosen_in_order_around(freed);
        }
        match self.reached_from(freed.iter().map(|(interval, _)| *interval)) {
            None => self.loosen_all(),
            Some(reached) => reached.into_iter().for_each(|near| self.loosen(near)),
        }
    }

    /// Marks all that may not lie at their first fit in order now that nodes in these intervals are free.
    pub(in crate::schedule) fn loosen_in_order_around(&mut self, freed: &[(Interval, u32)]) {
        if self.loose.is_of_all() {
            return;
        }
        match self.reached_from(freed.iter().map(|(interval, _)| *interval)) {
            None => self.loose.add_all(),
            Some(reached) => reached.into_iter().for_each(|near| self.loosen_in_order(near)),
        }
    }

    /// Notes that a request has moved up from a place to a start. By the published rule others that may be able to use the place are looked
    /// at after all that are marked so far: else each of many moves would have the look begin again. Which may not lie at their first fit in
    /// order any more is left to [`Self::loosen_in_order_around`], once for all the places.
    pub(in crate::schedule) fn leave_by_move_up(&mut self, handle: u32, left: &WaitingRequest, to: Time) {
        self.loosen_in_order(handle);
        let slot = left.slot();
        match &mut self.by_freed_time {
            // What it has still is not free.
            Some(looks) => {
                let from = slot.start.max(to + slot.duration());
                looks.freed.add(Interval::new(from, slot.end), left.request.nodes);
            }
            None => self.left_by_moves_up.push(slot),
        }
    }

    /// Has those looked at that may be able to use the places that others have left by moving up; false where there are no such places.
    pub(super) fn look_around_moves_up(&mut self) -> bool {
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
