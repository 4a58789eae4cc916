//! A waiting request leaves for another resource, so that a newcomer finds a place here.

use super::trial::{Newcomer, Obstacle};
use super::{Place, Schedule};
use crate::request::Request;
use crate::time::{Interval, Time};

impl Schedule {
    /// The waiting requests that `request` would leave without a place if it went before them in order, by algorithm 1: the ones
    /// behind which it is put in turn. Empty where it displaces no other, or finds no place whichever requests leave. Changes
    /// nothing.
    pub fn displaced(&mut self, now: Time, request: &Request) -> Vec<u64> {
        self.begin(now);
        let mut displaced = Vec::new();
        if request.impossible(self.tree.capacity(), self.now).is_some() {
            return displaced;
        }
        let mut behind = self.waiting.order().key(request, self.now);
        let mut work = self.work();
        if self.waiting.is_stale() {
            self.waiting.freshen(self.now);
            self.memory.clear();
        }
        let standing = self.attempt(&mut work).standing_fit(request);
        let mut newcomer = Newcomer::new(request, standing, self.now);
        loop {
            match self.attempt(&mut work).run(Some(&newcomer), behind, None) {
                Err(Obstacle::Waiting { key, placed }) => {
                    displaced.push(key.id());
                    behind = key;
                    newcomer.not_before = placed;
                }
                Ok(trial) => {
                    trial.take_back(&mut self.tree);
                    return displaced;
                }
                Err(Obstacle::Newcomer | Obstacle::Spent) => return displaced,
            }
        }
    }

    /// Takes a waiting request out and leaves all others where they are; answers with it, its window as fixed by now, and its
    /// start. [`Schedule::restore`] puts it back. `None` where no such request waits.
    pub fn withdraw(&mut self, id: u64) -> Option<(Request, Time)> {
        let Place::Waiting(h) = *self.by_id.get(&id)? else {
            return None;
        };
        self.by_id.remove(&id);
        let waiting = self.take(h)?;
        let slot = waiting.slot();
        self.free(slot, waiting.request.nodes);
        // The requests that this reaches may start earlier now, and have not been tried yet.
        self.waiting.loosen_around(slot);
        Some((waiting.request, waiting.start))
    }

    /// Takes out a request after its slot has begun, and leaves all others where they are; answers with its start. `None` where
    /// no such request runs.
    pub fn recall(&mut self, id: u64) -> Option<Time> {
        let Place::Running(end) = *self.by_id.get(&id)? else {
            return None;
        };
        self.by_id.remove(&id);
        let placement = self.take_running(end, id)?;
        let rest = Interval::new(self.now, end);
        if !rest.is_empty() {
            self.free(rest, placement.nodes);
            self.waiting.loosen_around(rest);
        }
        Some(placement.slot.start)
    }
}
