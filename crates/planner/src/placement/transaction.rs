//! A trial on the plan. The changes of a search stay where it finds a place, and are rolled back where it does not, so a
//! refusal leaves everything as it was.
//!
//! The schedules are changed through [`Schedules`] alone, which notes here how each change is undone while a trial goes on.
//! Trials may be nested. A step back that fails is an impossible plan, and gives up the batch (`crate::invariant`).

use scheduler::{Request, Time};
use uuid::Uuid;

use crate::decider::Decider;
use crate::resources::Schedules;
use crate::resources::undo::Undo;

impl Schedules {
    /// Begins a trial. Returns the number of changes before it.
    fn begin_trial(&mut self) -> usize {
        self.undo.depth += 1;
        self.undo.steps.len()
    }

    /// Ends a trial, and takes back its changes unless they are to stay.
    fn end_trial(&mut self, begun: usize, stays: bool) {
        self.undo.depth -= 1;
        if !stays {
            self.roll_back(begun);
        } else if !self.undo.is_open() {
            self.undo.steps.clear();
        }
    }

    /// Undoes all changes but the first `begun`, the last one first.
    fn roll_back(&mut self, begun: usize) {
        let undone = self.undo.steps.split_off(begun);
        // Undoing is not undone.
        let depth = std::mem::take(&mut self.undo.depth);
        for Undo { at, leave, come_back } in undone.into_iter().rev() {
            // No time passes meanwhile.
            for number in leave {
                self.vacate(at, Time::MIN, number);
            }
            for (request, start) in come_back {
                self.put_back(at, Time::MIN, &request, start);
            }
        }
        self.undo.depth = depth;
    }

    /// Notes a fault where an agreement is changed in a trial: its stored change would not be taken back.
    pub(crate) fn check_settled(&mut self, agreement: Uuid) {
        let open = self.undo.is_open();
        self.impossible
            .unless(!open, || format!("agreement {agreement} is changed in a trial"));
    }

    /// Puts requests where they are told to go, all or none; whether there was room.
    #[must_use]
    pub(crate) fn put_all(&mut self, at: usize, now: Time, requests: &[(Request, Time)]) -> bool {
        let begun = self.begin_trial();
        let mut all = requests.iter();
        let put = all.all(|(request, start)| self.put(at, now, request, *start));
        self.end_trial(begun, put);
        put
    }
}

impl Decider<'_> {
    /// Looks for something that may need changes of the plan: they stay where it is found, and are taken back elsewhere.
    /// Agreements are changed afterwards, never in it.
    pub(crate) fn run_trial<R>(&mut self, find: impl FnOnce(&mut Self) -> Option<R>) -> Option<R> {
        let begun = self.plan.schedules.begin_trial();
        let found = find(self);
        self.plan.schedules.end_trial(begun, found.is_some());
        found
    }

    /// Finds something out on a plan that is changed for that, and is as it was afterwards.
    pub(crate) fn suppose_in_transaction<R>(&mut self, find: impl FnOnce(&mut Self) -> R) -> R {
        let begun = self.plan.schedules.begin_trial();
        let found = find(self);
        self.plan.schedules.end_trial(begun, false);
        found
    }
}

#[cfg(test)]
mod tests;
