//! Nodes that are out of use for a time: lost, drained, under maintenance, or others'; and nodes that come, or leave for ever.
//!
//! The schedule does not decide which requests give way. A caller that wants nodes which are taken first withdraws requests of
//! its choice.

use super::Schedule;
use super::journal::Change;
use crate::slot_tree::SlotError;
use crate::time::Interval;

impl Schedule {
    /// Takes free nodes out of use for an interval. No request moves.
    ///
    /// # Errors
    /// Some of them are taken; nothing is changed then.
    pub fn block(&mut self, interval: Interval, nodes: u32) -> Result<(), SlotError> {
        self.tree.reserve(interval, nodes)?;
        self.journal.note(|| Change::Laid(interval, -i64::from(nodes)));
        self.memory.note_change(interval);
        Ok(())
    }

    /// Gives nodes back that were taken by [`Schedule::block`], as far as the interval is not over. No request moves, but every
    /// waiting one may be able to.
    ///
    /// # Errors
    /// They were not out of use; nothing is changed then.
    pub fn unblock(&mut self, interval: Interval, nodes: u32) -> Result<(), SlotError> {
        let rest = Interval::new(interval.start.max(self.now), interval.end);
        if rest.is_empty() {
            return Ok(());
        }
        self.tree.release(rest, nodes)?;
        self.journal.note(|| Change::Laid(rest, nodes.into()));
        self.memory.note_change(rest);
        self.waiting.loosen_around(&[(rest, nodes)]);
        Ok(())
    }

    /// Gives the resource another number of nodes, from now on. No request moves, but where there are more every waiting one may be able to.
    /// No mark of before can be taken back to.
    ///
    /// # Errors
    /// Fewer nodes are free at some second than are to go; nothing is changed then.
    ///
    /// # Panics
    /// If `capacity` exceeds [`crate::slot_tree::MAX_CAPACITY`].
    pub fn resize(&mut self, capacity: u32) -> Result<(), SlotError> {
        // Where changes are noted the seconds that have passed are still there, with work on nodes that may go now.
        self.tree.forget(self.now);
        let more = capacity > self.tree.capacity();
        self.tree.resize(capacity)?;
        self.memory.clear();
        if more {
            self.waiting.loosen_all();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Order;
    use crate::request::Request;
    use crate::time::Time;

    #[test]
    fn nodes_that_were_free_too_late_may_go_also_where_changes_are_noted() {
        for is_noted in [false, true] {
            let mut schedule = Schedule::new(2, Order::Edf);
            for id in 0..2 {
                let request = Request {
                    id,
                    submitted: Time(0),
                    ready: Time(0),
                    deadline: Time(10),
                    duration: 10,
                    nodes: 1,
                    revenue: 0,
                };
                schedule.submit(Time(0), &request);
            }
            schedule.advance(Time(4));
            if is_noted {
                schedule.note_changes(Time(4));
            }
            // Its node is free from the next second on.
            schedule.vacate(Time(5), 0).unwrap();
            schedule.resize(1).unwrap();
            schedule.resize(0).unwrap_err();
        }
    }
}
