//! A resource grows or shrinks: nodes are added, drained or lost.

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
        self.waiting.freshen(self.now);
        let queue: Vec<_> = self.waiting.behind(Key::FIRST).map(|(_, h, w)| (h, *w)).collect();
        let mut starts = Vec::with_capacity(queue.len());
        for (h, waiting) in queue {
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
            if self.waiting.get(h).is_some_and(|waiting| waiting.start != to) {
                moved.extend(self.shift(h, to));
            }
        }
        moved.sort_unstable();
        if stands && grown {
            self.waiting.loosen_all();
            let room = Interval::of(self.now, 1);
            return Ok(self.move_up(room));
        }
        if !stands {
            // Each lies at its first fit given those before it.
            self.waiting.tighten_behind(Key::FIRST);
        }
        Ok(moved)
    }
}
