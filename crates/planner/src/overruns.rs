//! By how much slots may be made longer for work that is not over, and when that is looked at.

use std::collections::BTreeMap;

use domain::agreement::{Agreement, AgreementState, ServiceState};
use scheduler::{Seconds, Time};

/// How long before its end running work has to be told of a new end: a supervisor looks five times a second, and a
/// cluster's reservation is changed within seconds.
pub(crate) const TOLD_BEFORE: Seconds = 5;
/// The least number of seconds of one step, where the allowance has room for it.
pub(crate) const STEP_MIN: Seconds = 10;
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
    /// In percent, for templates that have a bound of their own, by their ids.
    pub templates: BTreeMap<String, u32>,
    /// The seconds in which applications that can save their work do so, by their names and versions.
    pub saving: BTreeMap<(String, Option<String>), Seconds>,
}

/// A slot that has been looked at, and will be at most once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLook {
    /// Its work can no longer be told to save itself; why it was not.
    Unsaved(&'static str),
    /// It ends when it ends.
    Never,
}

impl Overruns {
    /// Seconds by which the slots of an agreement may be longer than its contract.
    pub(crate) fn most(&self, agreement: &Agreement) -> Seconds {
        let percent = self.templates.get(&agreement.template).unwrap_or(&self.percent);
        let most = i128::from(agreement.duration) * i128::from(*percent) / 100;
        Seconds::try_from(most).unwrap_or(Seconds::MAX)
    }

    /// When to check whether the work of an agreement is over, for work that needs this number of seconds before the end of
    /// its slot to save itself. Never where the check changes nothing.
    pub(crate) fn look_at(&self, agreement: &Agreement, grace: Seconds) -> Option<Time> {
        // Work in pieces ends with the last of them.
        let runs = agreement.state == AgreementState::Observed
            && agreement.service == ServiceState::Processing
            && !agreement.has_more_slots();
        (runs && self.most(agreement) > 0)
            .then(|| agreement.slot().end - notice_before_overrun(agreement) - grace)
    }

    /// By how much it may be longer yet.
    pub(crate) fn left(&self, agreement: &Agreement) -> Seconds {
        self.most(agreement) - agreement.overrun()
    }

    /// By how much it may be made longer now.
    pub(crate) fn step(&self, agreement: &Agreement) -> Seconds {
        (agreement.duration / STEP_PART)
            .max(STEP_MIN)
            .min(self.left(agreement))
    }

    /// The seconds in which the work of an agreement saves itself. Its application must be able to save, and its slot
    /// must be long enough, and so must the overrun that it may still have.
    pub(crate) fn grace(&self, agreement: &Agreement) -> Option<Seconds> {
        let job = agreement.job.as_ref()?;
        let key = (job.application.clone(), job.version.clone());
        let grace = *self.saving.get(&key)?;
        let fits = grace + notice_before_overrun(agreement) <= agreement.slot().duration() / SAVED_PART;
        (fits && grace < self.left(agreement)).then_some(grace)
    }
}

/// How long before the end of its slot the running work is told of a new end.
fn notice_before_overrun(agreement: &Agreement) -> Seconds {
    let whole = agreement.duration.min(agreement.slot().duration());
    (whole / TOLD_PART).clamp(1, TOLD_BEFORE)
}

/// The most that this number of seconds beyond its contract costs an agreement, in words for its party.
pub(crate) fn most_cost_of_overruns_in_words(agreement: &Agreement, more: Seconds) -> String {
    let most = agreement.price_of_more(more);
    most.map_or_else(String::new, |most| format!(", for at most {most} more"))
}

#[cfg(test)]
mod tests {
    use domain::agreement::{Job, PlacementConstraints, Slots};
    use scheduler::Interval;
    use uuid::Uuid;

    use super::*;

    fn running(duration: Seconds) -> Agreement {
        Agreement {
            id: Uuid::nil(),
            party: "physics".into(),
            name: None,
            initiator_id: None,
            template: "t".into(),
            resource: "local".into(),
            duration,
            ready: Time(1_000),
            deadline: Time(9_000),
            slots: Slots::one((Interval::of(Time(1_000), duration), 1)),
            fixed: false,
            price: None,
            constraints: PlacementConstraints::default(),
            job: Some(Job {
                application: "count".into(),
                arguments: Vec::new(),
                ..Job::default()
            }),
            guarantees: Vec::new(),
            choices: Vec::new(),
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
