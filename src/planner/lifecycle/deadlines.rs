//! When time alone may decide a guarantee: the instants at which the planner looks again.

use std::collections::{BTreeSet, HashMap};

use scheduler::{Seconds, Time};
use uuid::Uuid;

use crate::agreement::{Agreement, ServiceState, next_assessment};
use crate::clock::second_after;

/// Seconds after the plan was read in which nothing is decided about jobs by time alone: their executors may still have
/// reports from before.
const REPORTS_WAIT: Seconds = 15;

/// The instants, by agreement and in order.
pub(in crate::planner) struct Agenda {
    by_time: BTreeSet<(Time, Uuid)>,
    at: HashMap<Uuid, Time>,
    /// Before this nothing is decided about jobs.
    reports: Time,
}

impl Agenda {
    /// One for a plan that is read at `now`.
    pub(in crate::planner) fn new(now: Time) -> Self {
        Self {
            by_time: BTreeSet::new(),
            at: HashMap::new(),
            reports: now + REPORTS_WAIT,
        }
    }

    /// Notes when an agreement is to be looked at, now that it has changed from `before`.
    pub(in crate::planner) fn note(&mut self, before: Option<&Agreement>, agreement: &Agreement) {
        if before.is_some_and(|before| is_same(before, agreement)) {
            return;
        }
        self.drop(agreement.id);
        let next = agreement.guarantees.iter();
        let next = next.filter_map(|of| next_assessment(of, agreement)).min();
        if let Some(at) = next {
            let at = match agreement.service {
                ServiceState::Processing => second_after(at).max(self.reports),
                _ => second_after(at),
            };
            self.at.insert(agreement.id, at);
            self.by_time.insert((at, agreement.id));
        }
    }

    /// Forgets an agreement.
    pub(in crate::planner) fn drop(&mut self, agreement: Uuid) {
        if let Some(at) = self.at.remove(&agreement) {
            self.by_time.remove(&(at, agreement));
        }
    }

    /// The next instant.
    pub(in crate::planner) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The agreements to look at by `now`, in order of their instants.
    pub(in crate::planner) fn due_by(&self, now: Time) -> Vec<Uuid> {
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, id)| *id).collect()
    }
}

/// Whether a change left everything as it was that the instant depends on: a move inside the window mostly does.
fn is_same(before: &Agreement, after: &Agreement) -> bool {
    let by_plan = |text: &String| text.contains("planned_start");
    (before.state, before.service, before.started) == (after.state, after.service, after.started)
        && (before.ready, before.deadline, before.duration) == (after.ready, after.deadline, after.duration)
        && before.guarantees == after.guarantees
        && !after
            .guarantees
            .iter()
            .any(|of| by_plan(&of.objective) || of.qualifying_condition.as_ref().is_some_and(by_plan))
}
