//! A waiting request leaves for another resource, so that a newcomer finds a place here.

use super::trial::Obstacle;
use super::{RequestPlace, Schedule};
use crate::request::Request;
use crate::time::Time;

impl Schedule {
    /// The waiting requests that `request` would leave without a place if it went before them in order, by algorithm 1: the ones
    /// behind which it is put in turn. Empty where it displaces no other, or finds no place whichever requests leave. Changes
    /// nothing.
    pub fn displaced(&mut self, now: Time, request: &Request) -> Vec<u64> {
        self.begin_decision(now);
        let mut displaced = Vec::new();
        if request.impossible(self.tree.capacity(), self.now).is_some() {
            return displaced;
        }
        let mut work = self.work();
        self.freshen();
        let mut newcomer = self.newcomer(request, &mut work);
        loop {
            match self.attempt(&mut work).run(Some(&newcomer), None) {
                Err(Obstacle::Waiting { key, placed }) => {
                    displaced.push(key.id());
                    newcomer.go_behind(key, placed);
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
        let RequestPlace::Waiting(_) = self.by_id.get(&id)? else {
            return None;
        };
        let waiting = self.waiting_at(id);
        self.leave(id)?;
        waiting
    }
}
