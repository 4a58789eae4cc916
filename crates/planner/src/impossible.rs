//! The first thing that must never happen and did.

use crate::schedules::resource_plan::ResourcePlan;

/// The text in the log for a batch that was given up; `what` says why.
pub const IMPOSSIBLE: &str =
    "the plan cannot be right: nothing of this batch is stored, and the plan is read anew";

/// The first thing that must never happen and did; none in a plan that may be used.
#[derive(Debug, Clone, Default)]
pub(super) struct Impossible(pub(super) Option<String>);

impl Impossible {
    /// Notes a fault, unless one is noted already: all later faults may come from the first.
    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        self.0.get_or_insert_with(what);
    }

    /// Notes it where something does not hold that must hold.
    pub(super) fn unless(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.note(what);
        }
    }

    /// Notes the fault that the schedule of a resource reports.
    pub(super) fn look_at(&mut self, resource_plan: &ResourcePlan) {
        if let Some(fault) = resource_plan.schedule.fault() {
            self.note(|| format!("{}: {fault}", resource_plan.resource.name));
        }
    }
}
