//! What time alone brings to agreements: guarantees are assessed, and slots move no more.

use domain::agreement::{Agreement, EventKind, ServiceState, next_assessment};
use domain::clock::{second_after, second_of};
use scheduler::{Fraction, Seconds, Time};
use uuid::Uuid;

use crate::agreements::{Agreements, is_undecided_agreement};
use crate::decider::Decider;
use crate::life::{Life, billing, update};
use crate::prices::payer::payer_fixes_at;
use crate::schedules::Schedules;
use crate::timetable::Timetable;

/// Seconds after the plan was read in which nothing is decided about jobs by time alone: their executors may still have
/// reports from before.
const REPORTS_WAIT: Seconds = 15;

/// The instants, by agreement.
#[derive(Debug, Clone)]
pub(crate) struct Deadlines {
    pub(super) times: Timetable<Uuid>,
    /// Before this nothing is decided about jobs.
    reports: Time,
}

impl Deadlines {
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

/// Assesses the agreements for which time alone may decide something by now.
pub(crate) fn assess_at_deadlines(decider: &mut Decider<'_>) {
    for id in decider.state.life.to_assess_by(decider.present_second()) {
        let Some(mut agreement) = decider.state.must_get(id) else {
            continue;
        };
        let events = billing::assess_and_bill(decider, &mut agreement);
        if events.is_empty() {
            // A check without a result need not be stored: it is repeated after a restart.
            decider.state.replace(agreement, Time::MIN);
        } else {
            update::update(decider, agreement, events);
        }
    }
}

/// Fixes the placements of the agreements that have waited for the agreed fraction of their wait, set by the
/// provider or by the agreement itself (paper 000, section 4.2). This comes before all other decisions, and after each: one that
/// begins at once has no wait, and is fixed in the batch that makes it.
pub(crate) fn fix_at_deadlines(decider: &mut Decider<'_>) {
    for mut agreement in decider
        .state
        .life
        .agreements_past_fix_deadline(&decider.state.agreements, decider.present_second())
    {
        decider
            .state
            .placement
            .fix(&mut decider.state.schedules, &agreement);
        agreement.fixed = true;
        let event = decider.event(EventKind::Fixed, "its slot moves no more");
        update::update(decider, agreement, vec![event]);
    }
}

/// The time from which a waiting agreement moves no more, by its own fraction of its wait and the general one.
fn fix_deadline_of(agreement: &Agreement, everybody: Option<Fraction>) -> Option<Time> {
    if !agreement.has_more_to_begin() || agreement.fixed || agreement.fills_its_window() {
        return None;
    }
    let own = payer_fixes_at(agreement.constraints.fix_at_ppm);
    let submitted = second_of(agreement.created);
    let wait = agreement.placement().start - submitted;
    let reached = |fraction: Fraction| submitted + fraction.rounded_up(wait);
    [own, everybody].into_iter().flatten().map(reached).min()
}

impl Life {
    /// When the planner has to act on an agreement by itself.
    fn next_deadline_of(&self, schedules: &Schedules, agreement: &Agreement) -> Option<Time> {
        if is_undecided_agreement(agreement) {
            return None;
        }
        match agreement.service {
            ServiceState::Idle if agreement.has_nodes() => {
                let awaited = schedules.peer_tells_until(agreement);
                Some(awaited.unwrap_or(agreement.slot().end))
            }
            ServiceState::NotReady | ServiceState::Idle => Some(agreement.slot().start),
            ServiceState::Processing => self.next_overrun_look(schedules, agreement),
            ServiceState::Completed => None,
        }
    }

    /// Notes when something is to be done for an agreement.
    pub(super) fn note_next_deadline(&mut self, schedules: &Schedules, agreement: &Agreement) {
        self.due
            .set(agreement.id, self.next_deadline_of(schedules, agreement));
        self.starts.watch(agreement);
        self.fixing
            .set(agreement.id, fix_deadline_of(agreement, self.fix_after));
    }

    /// The agreements that wait, could still move, and are to do so no more.
    fn agreements_past_fix_deadline(&self, agreements: &Agreements, now: Time) -> Vec<Agreement> {
        let due = self.fixing.due_by(now).into_iter();
        due.filter_map(|id| agreements.get(id).cloned()).collect()
    }
}
