//! A waiting request leaves for another resource, so that a newcomer finds a place here.

use super::trial::Obstacle;
use super::{Place, Schedule};
use crate::request::Request;
use crate::time::{Interval, Time};

impl Schedule {
    /// The waiting requests that `request` would leave without a place if it went before them in order, by algorithm 1: the
    /// ones behind which it is put one after the other. Empty where it needs nobody's place, or finds none whoever leaves.
    /// Changes nothing.
    pub fn displaced(&mut self, now: Time, request: &Request) -> Vec<u64> {
        self.begin(now);
        let mut displaced = Vec::new();
        if request.impossible(self.tree.capacity(), self.now).is_some() {
            return displaced;
        }
        let mut behind = self.order.key(request, self.now);
        loop {
            match self.remembering(|plan, memory| plan.attempt(Some(request), behind, None, memory)) {
                Ok(_) | Err(Obstacle::Newcomer) => return displaced,
                Err(Obstacle::Waiting { key, .. }) => {
                    displaced.push(key.id());
                    behind = key;
                }
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
        // Those whom this reaches may start earlier now, and nobody has looked.
        let reached = (slot.start - self.duration_max, 0)..(slot.end + self.slack_max, u32::MAX);
        let reached: Vec<u32> = self.by_start.range(reached).map(|(_, h)| *h).collect();
        for h in reached {
            self.loosen(h);
        }
        Some((waiting.request, waiting.start))
    }

    /// Takes out a request whose slot has begun, and leaves all others where they are; answers with its start. `None` where no
    /// such request runs.
    pub fn recall(&mut self, id: u64) -> Option<Time> {
        let Place::Running(end) = *self.by_id.get(&id)? else {
            return None;
        };
        self.by_id.remove(&id);
        let placement = self.take_running(end, id)?;
        let rest = Interval::new(self.now, end);
        if !rest.is_empty() {
            self.free(rest, placement.nodes);
            self.memory.clear();
            self.loose = self.handles().map(|(h, waiting)| (waiting.key, h)).collect();
        }
        Some(placement.slot.start)
    }
}
