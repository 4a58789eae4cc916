//! When time alone may decide a guarantee: the instants at which the planner looks again.

use domain::agreement::{Agreement, ServiceState, next_assessment};
use domain::clock::second_after;
use scheduler::{Seconds, Time};
use uuid::Uuid;

use crate::timetable::Timetable;

/// Seconds after the plan was read in which nothing is decided about jobs by time alone: their executors may still have
/// reports from before.
const REPORTS_WAIT: Seconds = 15;

/// The instants, by agreement.
#[derive(Clone)]
pub(crate) struct Agenda {
    pub(super) times: Timetable<Uuid>,
    /// Before this nothing is decided about jobs.
    reports: Time,
}

impl Agenda {
    /// One for a plan that is read at `now`.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            times: Timetable::default(),
            reports: now + REPORTS_WAIT,
        }
    }

    /// Notes when an agreement is to be looked at, now that it has changed from `before`.
    pub(crate) fn note(&mut self, before: Option<&Agreement>, agreement: &Agreement) {
        if before.is_some_and(|before| have_same_deadlines(before, agreement)) {
            return;
        }
        let next = agreement.guarantees.iter();
        let next = next.filter_map(|next| next_assessment(next, agreement)).min();
        let at = next.map(|at| match agreement.service {
            ServiceState::Processing => second_after(at).max(self.reports),
            _ => second_after(at),
        });
        self.times.set(agreement.id, at);
    }
}

/// Whether a change left everything as it was that the instant depends on: a move inside the window mostly does.
fn have_same_deadlines(before: &Agreement, after: &Agreement) -> bool {
    // These follow the planned start until that is over.
    let by_plan = |text: &String| text.contains("planned_start") || text.contains("latest_start");
    let has_moved = before.placement().start != after.placement().start;
    (before.state, before.service, before.started) == (after.state, after.service, after.started)
        && (before.ready, before.deadline, before.duration) == (after.ready, after.deadline, after.duration)
        && before.guarantees == after.guarantees
        && !(has_moved
            && after.guarantees.iter().any(|guarantee| {
                by_plan(&guarantee.objective) || guarantee.qualifying_condition.as_ref().is_some_and(by_plan)
            }))
}
