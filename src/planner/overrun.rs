//! A job that is not over as its slot nears its end: the slot is made longer, a step at a time, where its template allows
//! it and its nodes are free or others can move inside their windows. Otherwise it ends with its slot, and its timeline says why.

use std::collections::BTreeMap;

use scheduler::{Request, Seconds, Time};

use super::decide::Decider;
use super::prolong::TOLD_BEFORE;
use crate::agreement::{Agreement, AgreementState, EventKind, ServiceState, part};
use crate::clock::second_of;

/// Seconds of one step at least, where so many are allowed.
const STEP_MIN: Seconds = 10;
/// A step is the contract's duration divided by this, where that is longer: few steps for what runs long.
const STEP_PART: Seconds = 10;
/// Of a short slot no more than this part is taken for telling what runs.
const TOLD_PART: Seconds = 4;

/// By how much slots may be made longer for work that is not over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overruns {
    /// In percent of the contract's duration; 0 for not at all.
    pub percent: u32,
    /// The same for templates that have a bound of their own, by their ids.
    pub templates: BTreeMap<String, u32>,
}

impl Overruns {
    /// Seconds by which the slot of an agreement may be longer than its contract.
    fn most(&self, agreement: &Agreement) -> Seconds {
        let percent = self.templates.get(&agreement.template).unwrap_or(&self.percent);
        let most = i128::from(agreement.duration) * i128::from(*percent) / 100;
        Seconds::try_from(most).unwrap_or(Seconds::MAX)
    }

    /// When it is to be looked at whether the work of an agreement is over; never where that changes nothing.
    pub(super) fn look_at(&self, agreement: &Agreement) -> Option<Time> {
        // What is done in pieces ends with the last of them.
        let runs = agreement.state == AgreementState::Observed
            && agreement.service == ServiceState::Processing
            && agreement.pieces.is_empty();
        let told = (agreement.duration / TOLD_PART).clamp(1, TOLD_BEFORE);
        (runs && self.most(agreement) > 0).then(|| agreement.placement.end - told)
    }

    /// By how much it may be made longer now.
    fn step(&self, agreement: &Agreement) -> Seconds {
        let left = self.most(agreement) - agreement.overrun();
        (agreement.duration / STEP_PART).max(STEP_MIN).min(left)
    }
}

impl Decider<'_> {
    /// Makes the slot of an agreement longer whose work is not over, or leaves it at that.
    pub(super) fn overrun(&mut self, agreement: &Agreement) {
        let now = second_of(self.now);
        let step = self.settings.overruns.step(agreement);
        let id = agreement.id;
        if agreement.started.is_none() || agreement.placement.end <= now + 1 {
            // There is nothing to be kept going, or it has been stopped while nobody looked.
            self.plan.leave_at_its_end(id);
            return;
        }
        let why = if step <= 0 {
            Some("it has been made longer by all that its template allows")
        } else if self.prolong(agreement, agreement.placement.end + step, now) {
            None
        } else {
            Some("its nodes are promised to others")
        };
        if let Some(why) = why {
            self.plan.leave_at_its_end(id);
            let detail = format!("its work is not over, and its slot ends: {why}");
            let event = self.event(EventKind::Overrun, detail);
            if let Some(agreement) = self.plan.get(id).cloned() {
                self.update(agreement, vec![event]);
            }
        }
    }

    /// Makes a slot that has begun longer, to `end` where that can be had; whether it is longer now.
    fn prolong(&mut self, agreement: &Agreement, end: Time, now: Time) -> bool {
        // What its party has been offered in its place counted on its end.
        self.release_about(agreement.id);
        let place = self.plan.resources.place(&agreement.resource);
        let number = self.plan.number(agreement.id);
        let (Some((at, number)), Ok(lifted)) = (place.zip(number), self.lift(agreement.id)) else {
            return false;
        };
        let end = self.reached(at, agreement, end, now);
        let rest = self.rest_of(at, agreement, number);
        let longer = Request {
            deadline: end,
            duration: end - rest.ready,
            ..rest
        };
        let placed = (end > agreement.placement.end)
            .then(|| self.plan.resources.submit(at, now, &longer))
            .flatten();
        let Some((_, moves)) = placed else {
            self.put_back(&lifted);
            return false;
        };
        self.hand_over_nodes(agreement, agreement.id, end);
        let more = end - agreement.placement.end;
        let mut longer = agreement.clone();
        longer.placement.end = end;
        // What lies beyond its deadline by the provider's own doing is not late.
        longer.deadline = longer.deadline.max(end);
        let mut detail = format!("its work is not over: its slot is {more} seconds longer");
        if let Some(price) = agreement.price {
            let most = part(price, more, agreement.duration);
            detail += &format!(", for at most {most} more");
        }
        let event = self.event(EventKind::Overrun, detail);
        self.update(longer, vec![event]);
        self.moved(&moves, "to let go on what is not over");
        true
    }
}

#[cfg(test)]
mod tests {
    use scheduler::Interval;
    use uuid::Uuid;

    use super::*;
    use crate::agreement::Leeway;

    fn running(duration: Seconds) -> Agreement {
        Agreement {
            id: Uuid::nil(),
            party: "physics".into(),
            name: None,
            template: "t".into(),
            resource: "local".into(),
            nodes: 1,
            duration,
            ready: Time(1_000),
            deadline: Time(9_000),
            placement: Interval::of(Time(1_000), duration),
            pieces: Vec::new(),
            fixed: false,
            price: None,
            leeway: Leeway::default(),
            job: None,
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
        };
        let mut agreement = running(600);
        assert_eq!(overruns.look_at(&agreement), Some(Time(1_595)));
        assert_eq!(overruns.step(&agreement), 60);
        agreement.placement.end = Time(1_700);
        assert_eq!(overruns.step(&agreement), 20);
        agreement.placement.end = Time(1_720);
        assert_eq!(overruns.step(&agreement), 0);
        agreement.template = "own".into();
        assert_eq!(overruns.look_at(&agreement), None);
        let mut short = running(8);
        assert_eq!(
            (overruns.look_at(&short), overruns.step(&short)),
            (Some(Time(1_006)), 1)
        );
        short.state = AgreementState::ObservedAndTerminating;
        assert_eq!(overruns.look_at(&short), None);
    }
}
