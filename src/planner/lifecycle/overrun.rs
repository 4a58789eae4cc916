//! A job that is not over as its slot nears its end: the slot is made longer, a step at a time, where its template allows
//! it and its nodes are free or others can move inside their windows. Otherwise it is told to save its work, and the rest goes
//! on in another slot, where its application can and there is one ([`saved`]). Otherwise it ends with its slot, and its
//! timeline says why.

mod saved;

use std::collections::BTreeMap;

use scheduler::{Request, Seconds, Time};
use uuid::Uuid;

use crate::agreement::{Agreement, AgreementState, EventKind, ServiceState};
use crate::clock::second_of;
use crate::planner::Plan;
use crate::planner::decide::Decider;
use crate::planner::offers::change_end::TOLD_BEFORE;

/// The least number of seconds of one step, where the allowance has room for it.
const STEP_MIN: Seconds = 10;
/// A step is the contract's duration divided by this, where that is longer: long work needs few steps.
const STEP_PART: Seconds = 10;
/// In a short slot, the notice to the running work takes no more than the slot divided by this.
const TOLD_PART: Seconds = 4;
/// In a slot, the notice to the running work and the saving together take no more than the slot divided by this.
const SAVED_PART: Seconds = 2;

/// By how much slots may be made longer for work that is not over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overruns {
    /// In percent of the contract's duration; 0 for not at all.
    pub percent: u32,
    /// The same for templates that have a bound of their own, by their ids.
    pub templates: BTreeMap<String, u32>,
    /// The seconds in which applications that can save their work do so, by their names and versions.
    pub saving: BTreeMap<(String, Option<String>), Seconds>,
}

/// A slot that has been looked at, and will be at most once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::planner) enum Last {
    /// Its work can no longer be told to save itself; why it was not.
    Unsaved(&'static str),
    /// It ends when it ends.
    Never,
}

impl Overruns {
    /// Seconds by which the slots of an agreement may be longer than its contract.
    pub(in crate::planner) fn most(&self, agreement: &Agreement) -> Seconds {
        let percent = self.templates.get(&agreement.template).unwrap_or(&self.percent);
        let most = i128::from(agreement.duration) * i128::from(*percent) / 100;
        Seconds::try_from(most).unwrap_or(Seconds::MAX)
    }

    /// When to check whether the work of an agreement is over, for work that needs this number of seconds before the end of
    /// its slot to save itself. Never where the check changes nothing.
    fn look_at(&self, agreement: &Agreement, grace: Seconds) -> Option<Time> {
        // Work in pieces ends with the last of them.
        let runs = agreement.state == AgreementState::Observed
            && agreement.service == ServiceState::Processing
            && !agreement.has_more_slots();
        (runs && self.most(agreement) > 0).then(|| agreement.slot().end - told(agreement) - grace)
    }

    /// By how much it may be longer yet.
    pub(in crate::planner) fn left(&self, agreement: &Agreement) -> Seconds {
        self.most(agreement) - agreement.overrun()
    }

    /// By how much it may be made longer now.
    pub(in crate::planner) fn step(&self, agreement: &Agreement) -> Seconds {
        (agreement.duration / STEP_PART)
            .max(STEP_MIN)
            .min(self.left(agreement))
    }

    /// The seconds in which the work of an agreement saves itself. Its application must be able to save, and its slot
    /// must be long enough, and so must the overrun that it may still have.
    fn grace(&self, agreement: &Agreement) -> Option<Seconds> {
        let job = agreement.job.as_ref()?;
        let key = (job.application.clone(), job.version.clone());
        let grace = *self.saving.get(&key)?;
        let fits = grace + told(agreement) <= agreement.slot().duration() / SAVED_PART;
        (fits && grace < self.left(agreement)).then_some(grace)
    }
}

/// How long before the end of its slot the running work is told of a new end.
fn told(agreement: &Agreement) -> Seconds {
    let whole = agreement.duration.min(agreement.slot().duration());
    (whole / TOLD_PART).clamp(1, TOLD_BEFORE)
}

impl Plan {
    /// When it is to be looked at whether the work of an agreement is over.
    pub(in crate::planner) fn look_at(&self, agreement: &Agreement) -> Option<Time> {
        let grace = match self.ending.get(&agreement.id) {
            Some(Last::Never) => return None,
            Some(Last::Unsaved(_)) => 0,
            None => self.overruns.grace(agreement).unwrap_or(0),
        };
        self.overruns.look_at(agreement, grace)
    }

    /// Notes how often the slot of an agreement is looked at again; as often as it takes where that is not said.
    pub(in crate::planner) fn look_again(&mut self, id: Uuid, last: Option<Last>) {
        let Some(agreement) = self.get(id).cloned() else {
            return;
        };
        self.unwatch(&agreement);
        match last {
            Some(last) => self.ending.insert(id, last),
            None => self.ending.remove(&id),
        };
        self.watch(&agreement);
    }
}

impl Decider<'_> {
    /// Handles the work of an agreement that is not over: makes its slot longer, finds another slot for the rest, or
    /// changes nothing.
    pub(in crate::planner) fn overrun(&mut self, agreement: &Agreement) {
        let now = second_of(self.now);
        let (id, end) = (agreement.id, agreement.slot().end);
        let before = self.plan.ending.get(&id).copied();
        let grace = self.plan.overruns.grace(agreement).filter(|_| before.is_none());
        // As much time may have passed without a check.
        let grace = grace.filter(|grace| end - *grace > now);
        if agreement.slot_started().is_none() || end <= now + 1 {
            // No work runs yet, or it was stopped before this check.
            let begins = grace
                .map(|_| Last::Unsaved("its work had hardly begun when it was to be told to save itself"));
            self.plan.look_again(id, begins.or(Some(Last::Never)));
            return;
        }
        let step = self.settings.overruns.step(agreement);
        let why = if step <= 0 {
            "it has been made longer by all that its template allows"
        } else if self.prolong(agreement, end + step, now) {
            return;
        } else {
            "its nodes are promised to others"
        };
        if let Some(grace) = grace {
            if !self.save(agreement, grace, now) {
                // Its nodes may become free until the last moment.
                let unsaved = Last::Unsaved("there is no other place for the rest of its work");
                self.plan.look_again(id, Some(unsaved));
            }
            return;
        }
        self.plan.look_again(id, Some(Last::Never));
        let mut detail = format!("its work is not over, and its slot ends: {why}");
        if let Some(Last::Unsaved(unsaved)) = before {
            detail += &format!(", and {unsaved}");
        }
        let event = self.event(EventKind::Overrun, detail);
        if let Some(agreement) = self.plan.get(id).cloned() {
            self.update(agreement, vec![event]);
        }
    }

    /// Makes a slot that has begun longer, to `end` where that can be had; whether it is longer now.
    fn prolong(&mut self, agreement: &Agreement, end: Time, now: Time) -> bool {
        // The offers in its place relied on its end.
        self.release_about(agreement.id);
        let present = self.plan.planned_slot(agreement, agreement.slots_over());
        let Some((at, number)) = present else {
            return false;
        };
        let longer = self.attempt(|this| {
            this.plan.resources.vacate(at, now, number);
            let end = this.reached(at, agreement, end, now);
            let rest = this.running_of(at, agreement, number);
            let longer = Request {
                deadline: end,
                duration: end - rest.ready,
                ..rest
            };
            let is_longer = end > agreement.placement().end;
            let placed = is_longer.then(|| this.plan.resources.submit(at, now, &longer));
            placed.flatten().map(|(_, moves)| (end, moves))
        });
        let Some((end, moves)) = longer else {
            return false;
        };
        self.hand_over_nodes(agreement, agreement.id, end);
        let more = end - agreement.placement().end;
        let mut longer = agreement.clone();
        // Time beyond its deadline that the provider itself has added is not late.
        longer.end_last_slot(end);
        let mut detail = format!("its work is not over: its slot is {more} seconds longer");
        detail += &at_most_for(agreement, more);
        let event = self.event(EventKind::Overrun, detail);
        self.plan.look_again(agreement.id, None);
        self.update(longer, vec![event]);
        self.moved(&moves, "to let go on what is not over");
        true
    }
}

/// The most that this number of seconds beyond its contract costs an agreement, in words for its party.
fn at_most_for(agreement: &Agreement, more: Seconds) -> String {
    let most = agreement.price_of_more(more);
    most.map_or_else(String::new, |most| format!(", for at most {most} more"))
}

#[cfg(test)]
mod tests {
    use scheduler::Interval;

    use super::*;
    use crate::agreement::{Job, PlacementConstraints, Slots};

    fn running(duration: Seconds) -> Agreement {
        Agreement {
            id: Uuid::nil(),
            party: "physics".into(),
            name: None,
            template: "t".into(),
            resource: "local".into(),
            duration,
            ready: Time(1_000),
            deadline: Time(9_000),
            slots: Slots::one((Interval::of(Time(1_000), duration), 1)),
            fixed: false,
            price: None,
            leeway: PlacementConstraints::default(),
            job: Some(Job {
                application: "count".into(),
                version: None,
                arguments: Vec::new(),
                restarts: 0,
                missed: 0,
            }),
            guarantees: Vec::new(),
            state: AgreementState::Observed,
            service: ServiceState::Processing,
            started: Some(1_000_000_000),
            ended: None,
            outcome: None,
            created: 0,
            version: 1,
            origin: None,
        }
    }

    #[test]
    fn steps_are_short_and_end_with_what_is_allowed() {
        let overruns = Overruns {
            percent: 20,
            templates: BTreeMap::from([("own".to_owned(), 0)]),
            ..Overruns::default()
        };
        let mut agreement = running(600);
        assert_eq!(overruns.look_at(&agreement, 0), Some(Time(1_595)));
        assert_eq!(overruns.step(&agreement), 60);
        agreement.end_last_slot(Time(1_700));
        assert_eq!(overruns.step(&agreement), 20);
        agreement.end_last_slot(Time(1_720));
        assert_eq!(overruns.step(&agreement), 0);
        agreement.template = "own".into();
        assert_eq!(overruns.look_at(&agreement, 0), None);
        let mut short = running(8);
        assert_eq!(
            (overruns.look_at(&short, 0), overruns.step(&short)),
            (Some(Time(1_006)), 1)
        );
        short.state = AgreementState::ObservedAndTerminating;
        assert_eq!(overruns.look_at(&short, 0), None);
    }

    #[test]
    fn work_is_looked_at_before_it_would_have_to_save_itself_where_that_is_worth_it() {
        let overruns = Overruns {
            percent: 20,
            saving: BTreeMap::from([(("count".to_owned(), None), 100)]),
            ..Overruns::default()
        };
        let mut agreement = running(600);
        assert_eq!(overruns.grace(&agreement), Some(100));
        assert_eq!(overruns.look_at(&agreement, 100), Some(Time(1_495)));
        agreement.end_last_slot(Time(1_620));
        assert_eq!(overruns.grace(&agreement), None, "as much as is left");
        agreement.end_last_slot(Time(1_619));
        assert_eq!(overruns.grace(&agreement), Some(100));
        agreement.add_slot(Interval::of(Time(2_000), 200));
        assert_eq!(overruns.look_at(&agreement, 100), None, "it is told already");
        let short = Overruns {
            percent: 100,
            ..overruns
        };
        assert_eq!(short.grace(&running(210)), Some(100));
        assert_eq!(short.grace(&running(209)), None, "it would do little else");
    }
}
