//! One attempt to place a newcomer and everything behind it, on the plan itself and with a log to take it back.
//!
//! Why most requests need not be touched. Let j lie at its first fit given those before it. When they are placed again,
//! the plan that j finds differs from the one it was placed in by what was added (the newcomer's slot, the new slots of
//! requests that moved) and by what was freed (their old slots). If nothing was added to j's slot and nothing freed
//! between its ready time and its completion, j's first fit is its slot. If something was freed, a start that is new to j
//! must lie within j's duration of it. So an agenda, in queue order, holds exactly the requests that were lifted: those
//! that a change reaches, those not known to lie at their first fit, and those that merely stood where an earlier one
//! searches, since for that one the later ones are not there.

use super::{Schedule, Waiting};
use crate::queue::Key;
use crate::request::Request;
use crate::time::{Interval, Time};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A lifted request that has not had its turn.
#[derive(Debug, Clone, Copy)]
struct Lifted {
    handle: u32,
    /// Starts before its old one that are to be tried: from here
    from: Time,
    /// to here, exclusive.
    until: Time,
    /// Something was added to its old slot.
    contested: bool,
}

/// Who found no place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Obstacle {
    Newcomer,
    Waiting {
        /// Its place in the queue.
        key: Key,
        /// Where the newcomer had been placed.
        placed: Time,
    },
}

/// What an attempt has done so far.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Start of the newcomer.
    pub(super) start: Time,
    /// Requests that came to lie elsewhere, with their new starts.
    pub(super) moved: Vec<(u32, Time)>,
    agenda: BTreeMap<Key, Lifted>,
    /// Changes of the plan: slot, nodes, and whether they were reserved.
    log: Vec<(Interval, u32, bool)>,
}

impl Schedule {
    /// Places the newcomer, if any, and everything behind the key `behind` again, as if those had been lifted before; and
    /// looks at what `freed` lets move.
    ///
    /// # Errors
    /// The first request that finds no place. The plan is then as it was.
    pub(super) fn attempt(
        &mut self,
        newcomer: Option<&Request>,
        behind: Key,
        freed: Option<Interval>,
    ) -> Result<Trial, Obstacle> {
        let mut trial = Trial::default();
        self.lift_loose(&mut trial, behind);
        if let Some(freed) = freed {
            self.lift_for_freed(&mut trial, behind, freed);
        }
        if let Some(request) = newcomer {
            let window = request.window_at(self.now);
            let Some(start) = self.first_fit(&mut trial, behind, request, window) else {
                self.take_back(trial);
                return Err(Obstacle::Newcomer);
            };
            trial.start = start;
            self.put(&mut trial, request.slot(start), request.nodes);
            self.lift_for_added(&mut trial, behind, request.slot(start));
        }
        while let Some((key, lifted)) = trial.agenda.pop_first() {
            let Some(waiting) = self.waiting[lifted.handle as usize] else {
                continue;
            };
            let Some(start) = self.new_start(&mut trial, key, &lifted, &waiting) else {
                let placed = trial.start;
                // Its slot was released when it was lifted, which the log has.
                self.take_back(trial);
                return Err(Obstacle::Waiting { key, placed });
            };
            let slot = waiting.request.slot(start);
            self.put(&mut trial, slot, waiting.request.nodes);
            if start != waiting.start {
                trial.moved.push((lifted.handle, start));
                self.lift_for_added(&mut trial, key, slot);
                self.lift_for_freed(&mut trial, key, waiting.slot());
            }
        }
        Ok(trial)
    }

    /// Undoes what a trial has done to the plan.
    pub(super) fn take_back(&mut self, trial: Trial) {
        for (slot, nodes, reserved) in trial.log.into_iter().rev() {
            if reserved {
                self.free(slot, nodes);
            } else {
                self.occupy(slot, nodes);
            }
        }
    }

    /// The first fit of a lifted request.
    fn new_start(&mut self, trial: &mut Trial, key: Key, lifted: &Lifted, waiting: &Waiting) -> Option<Time> {
        let Waiting { request, start } = waiting;
        if lifted.from < lifted.until {
            let earlier = Interval::new(lifted.from, lifted.until + (request.duration - 1));
            if let Some(start) = self.first_fit(trial, key, request, earlier) {
                return Some(start);
            }
        }
        if !lifted.contested {
            return Some(*start);
        }
        let later = Interval::new(*start, request.deadline);
        self.first_fit(trial, key, request, later)
    }

    /// The first fit in `window` when nothing that comes behind `key` is there.
    fn first_fit(
        &mut self,
        trial: &mut Trial,
        key: Key,
        request: &Request,
        window: Interval,
    ) -> Option<Time> {
        let fit = |tree: &crate::SlotTree, window| tree.earliest_fit(request.nodes, request.duration, window);
        // With the later ones still there it cannot start earlier, so only what lies before matters.
        let latest = fit(&self.tree, window);
        if latest == Some(window.start) {
            return latest;
        }
        let end = latest.map_or(window.end, |start| start + request.duration);
        let window = Interval::new(window.start, end);
        let mut lifted = false;
        for (handle, later) in self.meeting(key, window) {
            lifted |= self.lift(trial, later, handle, (Time::MAX, Time::MIN), false);
        }
        if lifted { fit(&self.tree, window) } else { latest }
    }

    /// Those not known to lie at their first fit are placed again whatever happens.
    fn lift_loose(&mut self, trial: &mut Trial, behind: Key) {
        let loose: Vec<u32> = self.loose.iter().copied().collect();
        for h in loose {
            let Some(waiting) = self.waiting[h as usize] else {
                continue;
            };
            let key = self.key(&waiting);
            if key > behind {
                let earlier = (waiting.request.window_at(self.now).start, waiting.start);
                self.lift(trial, key, h, earlier, false);
            }
        }
    }

    /// Those behind `key` whose slots meet what was added must find out whether they can stay.
    fn lift_for_added(&mut self, trial: &mut Trial, key: Key, added: Interval) {
        for (handle, later) in self.meeting(key, added) {
            self.lift(trial, later, handle, (Time::MAX, Time::MIN), true);
        }
    }

    /// Those behind `key` that could start earlier because of what was freed.
    fn lift_for_freed(&mut self, trial: &mut Trial, key: Key, freed: Interval) {
        let starts = (freed.start - self.duration_max, 0)..(freed.end + self.slack_max, u32::MAX);
        let reached: Vec<_> = self
            .by_start
            .range(starts)
            .filter_map(|(_, h)| {
                let Waiting { request, start } = self.waiting[*h as usize]?;
                let from = request
                    .window_at(self.now)
                    .start
                    .max(freed.start - (request.duration - 1));
                let until = start.min(freed.end);
                let later = self.order.key(&request, self.now);
                (from < until && later > key).then_some((later, *h, (from, until)))
            })
            .collect();
        for (later, handle, earlier) in reached {
            self.lift(trial, later, handle, earlier, false);
        }
    }

    /// The waiting requests behind `key` whose slots meet `interval`.
    fn meeting(&self, key: Key, interval: Interval) -> Vec<(u32, Key)> {
        let starts = (interval.start - self.duration_max, 0)..(interval.end, 0);
        self.by_start
            .range(starts)
            .filter_map(|(_, h)| {
                let waiting = self.waiting[*h as usize]?;
                let later = self.key(&waiting);
                (waiting.slot().meets(interval) && later > key).then_some((*h, later))
            })
            .collect()
    }

    /// Lifts a request, unless it is lifted already, and notes why; whether the plan changed.
    fn lift(
        &mut self,
        trial: &mut Trial,
        key: Key,
        handle: u32,
        earlier: (Time, Time),
        contested: bool,
    ) -> bool {
        match trial.agenda.entry(key) {
            Entry::Occupied(mut entry) => {
                let lifted = entry.get_mut();
                lifted.from = lifted.from.min(earlier.0);
                lifted.until = lifted.until.max(earlier.1);
                lifted.contested |= contested;
                false
            }
            Entry::Vacant(entry) => {
                let Some(waiting) = self.waiting[handle as usize] else {
                    return false;
                };
                entry.insert(Lifted {
                    handle,
                    from: earlier.0,
                    until: earlier.1,
                    contested,
                });
                let (slot, nodes) = (waiting.slot(), waiting.request.nodes);
                self.free(slot, nodes);
                trial.log.push((slot, nodes, false));
                true
            }
        }
    }

    fn put(&mut self, trial: &mut Trial, slot: Interval, nodes: u32) {
        self.occupy(slot, nodes);
        trial.log.push((slot, nodes, true));
    }
}
