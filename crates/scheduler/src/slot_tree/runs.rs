//! The free nodes at one second, and how far it reaches that as many or more are free.

use super::{LEFT, SlotTree};
use crate::time::{Interval, Time};

impl SlotTree {
    /// The free nodes at second `t`; none where more are in use than there are. O(log n).
    pub(crate) fn free_at(&self, t: Time) -> u32 {
        let t = t.0.max(Time::MIN.0);
        let at = self.find(t);
        let slot = self.slot_at(at.node, t);
        let free = self.blocks[at.node as usize].free[slot] + self.base(at);
        free.max(0).cast_unsigned()
    }

    /// The longest interval around second `t`, from `begin` on, throughout which `nodes` are free. They must be free at `t`, at or after
    /// `begin`. O(log n).
    pub(crate) fn free_run_around(&self, nodes: u32, t: Time, begin: Time) -> Interval {
        let nodes = nodes.cast_signed();
        let start = self.search_run_start(nodes, t.0);
        Interval::new(Time(start).max(begin), Time(self.search_run_end(nodes, t.0)))
    }

    /// The first second from which on `nodes` are free up to `t`.
    fn search_run_start(&self, nodes: i32, t: i64) -> i64 {
        let mut at = self.find(t);
        let mut slots = self.slot_at(at.node, t) + 1;
        loop {
            let block = &self.blocks[at.node as usize];
            let least = nodes - self.base(at);
            if let Some(blocked) = block.free[..slots].iter().rposition(|free| *free < least) {
                return self.slot_end(at.node, blocked);
            }
            match self.seek(at, LEFT, |sum, pending| sum.min() + pending < nodes) {
                Some(next) => (at, slots) = (next, self.nodes[next.node as usize].len),
                None => return Time::MIN.0,
            }
        }
    }
}
