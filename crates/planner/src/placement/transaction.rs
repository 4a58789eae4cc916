//! A trial on the plan. The changes of a search stay where it finds a place, and are rolled back where it does not, so a
//! refusal leaves everything as it was.
//!
//! The schedules are changed through [`Schedules`] alone, which notes here how each change is undone while a trial goes on.
//! Trials may be nested. A step back that fails is an impossible plan, and gives up the batch (`crate::invariant`).

use crate::decider::Decider;

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
