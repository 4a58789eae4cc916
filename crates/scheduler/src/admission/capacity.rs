//! A resource grows or shrinks: nodes are added, drained or lost.

use super::trial::Trial;
use super::{Move, Schedule};
use crate::queue::Key;
use crate::request::Placement;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Time};

impl Schedule {
    /// Gives the resource `capacity` nodes from `now` on.
    ///
    /// A plan that fits the new capacity stands; on a larger resource the waiting requests then move up. Otherwise the
    /// waiting requests are placed again, in order, each at its first fit.
    ///
    /// # Errors
    /// The accepted requests that find no place, running ones first; nothing is changed then. Whoever wants the change
    /// all the same ends or moves those first.
    ///
    /// # Panics
    /// If `capacity` exceeds [`crate::slot_tree::MAX_CAPACITY`].
    pub fn set_capacity(&mut self, now: Time, capacity: u32) -> Result<Vec<Move>, Vec<Placement>> {
        self.advance(now);
        let mut tree = SlotTree::new(capacity);
        tree.forget(self.now);
        let ahead = Interval::new(self.now, Time::MAX - 1);
        let stands = self.tree.capacity() - self.tree.min_free(ahead) <= capacity;
        let mut homeless: Vec<Placement> = self
            .running
            .values()
            .filter(|p| p.slot.end > self.now && tree.reserve(p.slot, p.nodes).is_err())
            .copied()
            .collect();
        let mut queue: Vec<_> = self.handles().map(|(h, w)| (w.key, h, w)).collect();
        queue.sort_unstable_by_key(|(key, ..)| *key);
        let mut starts = Vec::with_capacity(queue.len());
        for (_, h, waiting) in queue {
            let request = waiting.request;
            let window = if stands {
                waiting.slot()
            } else {
                request.window_at(self.now)
            };
            let start = tree.earliest_fit(request.nodes, request.duration, window);
            match start.map(|start| (start, tree.reserve(request.slot(start), request.nodes))) {
                Some((start, Ok(()))) => starts.push((h, start)),
                _ => homeless.push(Placement {
                    id: request.id,
                    slot: waiting.slot(),
                    nodes: request.nodes,
                }),
            }
        }
        if !homeless.is_empty() {
            return Err(homeless);
        }
        let grown = capacity > self.tree.capacity();
        self.tree = tree;
        self.memory.clear();
        let mut moved = Vec::new();
        for (h, to) in starts {
            if self.waiting[h as usize].is_some_and(|waiting| waiting.start != to) {
                moved.extend(self.shift(h, to));
            }
        }
        moved.sort_unstable();
        if stands && grown {
            self.loose = self.handles().map(|(h, waiting)| (waiting.key, h)).collect();
            let room = Interval::of(self.now, 1);
            return Ok(self.move_up(room));
        }
        if !stands {
            // Each lies at its first fit given those before it.
            self.loose.clear();
        }
        Ok(moved)
    }

    /// Places everything that waits again, in order, where it can start earlier: the work of an idle moment. Nobody is
    /// moved to a later start; where placing all of them from nothing would do that, each is moved up by itself.
    pub fn improve(&mut self, now: Time) -> Vec<Move> {
        self.advance(now);
        match self.attempt_alone(None) {
            Ok(trial) if !self.delays(&trial) => self.apply(trial, Key::FIRST),
            _ => self.move_up_one_by_one(),
        }
    }

    /// Whether a trial moves anybody to a later start.
    fn delays(&self, trial: &Trial) -> bool {
        let starts_later = |(h, to): &(u32, Time)| {
            self.waiting[*h as usize]
                .as_ref()
                .is_some_and(|waiting| waiting.start < *to)
        };
        trial.moved.iter().any(starts_later)
    }
}
