//! What was delivered of an agreement: the seconds of its agreed time in which its party had its nodes. Prices, guarantees and
//! timelines ask here, so that they say the same.

use scheduler::{Seconds, Time, counted};

use super::{Agreement, Money, RunOutcome, part_of_amount};
use crate::clock::second_of;

/// A start that is later than was promised by this many seconds still counts as in time: nodes and processes take time to come
/// up, and the planned second has begun by then.
pub(super) const START_TOLERANCE: Seconds = 5;
/// A reservation that begins in the second after the planned one is in time: the plan is in whole seconds.
pub(super) const PUNCTUAL: Seconds = 1;
/// The share of a slot that may be over before it begins: one second in this number of seconds. A shorter delay is
/// the normal time to start.
const LATE_SHARE: Seconds = 10;

impl Agreement {
    /// Whether a slot that begins so many seconds late is to have another place where there is one. Work in pieces goes on
    /// where it lies.
    pub fn is_too_late_by(&self, late: Seconds) -> bool {
        !self.slots.is_split() && late.saturating_mul(LATE_SHARE) > self.duration
    }

    /// Seconds of its slots in which its party did not have its nodes, because the provider was late.
    pub(super) fn undelivered_seconds(&self) -> Seconds {
        let planned = self.planned_seconds().max(0);
        let late = match (&self.job, self.started) {
            (Some(job), _) => job.late + job.late_in_slot,
            (None, Some(at)) => self.lateness(second_of(at)),
            (None, None) => planned,
        };
        late.clamp(0, planned)
    }

    /// Seconds of its agreed time that its slots were its party's, also where it did not use them; all of them where its slots
    /// were made longer by as much as they began late. O(n) for n slots.
    pub fn delivered(&self) -> Seconds {
        let missing = (self.undelivered_seconds() - self.overrun()).max(0);
        (self.duration - missing).max(0)
    }

    /// Whether all of it was delivered but for the time that nodes take to come up: never more than the share of a slot that is
    /// late without being too late.
    pub(super) fn is_delivered(&self) -> bool {
        self.duration - self.delivered() <= START_TOLERANCE.min(self.duration / LATE_SHARE)
    }

    /// The part of its price that is owed, once it is over: for what was delivered. `None` where nothing is owed: it is not
    /// over, was lost, never had its nodes, or nothing is priced.
    pub fn price_of_delivered(&self) -> Option<Money> {
        let is_lost = matches!(self.outcome, None | Some(RunOutcome::Lost));
        let price = self.price.filter(|_| !is_lost && !self.never_had_nodes())?;
        Some(part_of_amount(price, self.delivered(), self.duration))
    }

    /// How much was delivered, in words for its party, where that is not all.
    pub fn undelivered_in_words(&self) -> Option<String> {
        let delivered = self.delivered();
        (delivered < self.duration && !self.never_had_nodes()).then(|| {
            let [had, whole] = [delivered, self.duration].map(|each| counted(each, "second"));
            format!("{had} of its {whole} were delivered")
        })
    }

    /// By how much a slot that begins now is late, in words for its party; none where it is not.
    pub fn late_delivery_in_words(&self) -> Option<String> {
        let late = self.undelivered_seconds();
        (late > 0 && !self.never_had_nodes()).then(|| {
            let [late, left, whole] =
                [late, self.delivered(), self.duration].map(|each| counted(each, "second"));
            format!("{late} late: {left} of its {whole} are left")
        })
    }

    /// The start that it was promised: the planned one, unless it has lost that.
    pub(super) fn promised_start(&self) -> Time {
        self.constraints.promised.map_or(self.placement().start, Time)
    }
}

#[cfg(test)]
mod tests {
    use scheduler::Interval;
    use uuid::Uuid;

    use super::super::job::Job;
    use super::super::{AgreementState, Currency, PlacementConstraints, ServiceState, Slots};
    use super::*;
    use crate::clock::MICROS_PER_SECOND;

    fn eur(micros: i64) -> Money {
        Money::new(micros, Currency::parse("EUR").unwrap())
    }

    /// A reservation of sixty seconds from 100 on, over, which got its nodes at an instant.
    fn reservation(started_us: Option<i64>) -> Agreement {
        Agreement {
            id: Uuid::nil(),
            party: "physics".into(),
            name: None,
            initiator_id: None,
            template: "t".into(),
            resource: "local".into(),
            duration: 60,
            ready: Time(100),
            deadline: Time(900),
            slots: Slots::one((Interval::of(Time(100), 60), 2)),
            fixed: false,
            price: Some(eur(6_000)),
            constraints: PlacementConstraints::default(),
            job: None,
            guarantees: Vec::new(),
            choices: Vec::new(),
            state: AgreementState::Complete,
            service: ServiceState::Completed,
            started: started_us,
            ended: Some(160 * MICROS_PER_SECOND),
            outcome: Some(RunOutcome::Completed),
            created: 0,
            version: 1,
            origin: None,
        }
    }

    #[test]
    fn what_came_late_is_not_delivered_and_not_owed() {
        for (started_us, delivered, owed) in [
            (100_000_000, 60, 6_000),
            (100_999_999, 60, 6_000),
            (101_999_999, 60, 6_000),
            (102_000_000, 58, 5_800),
            (153_500_000, 7, 700),
            (159_970_000, 1, 100),
            (170_000_000, 0, 0),
            (90_000_000, 60, 6_000),
        ] {
            let agreement = reservation(Some(started_us));
            assert_eq!(
                (agreement.delivered(), agreement.price_of_delivered()),
                (delivered, Some(eur(owed))),
                "{started_us}"
            );
            assert_eq!(
                agreement.undelivered_in_words().is_some(),
                delivered < 60,
                "{started_us}"
            );
        }
        let never = reservation(None);
        assert_eq!((never.delivered(), never.price_of_delivered()), (0, None));
        let words = reservation(Some(153_000_000)).undelivered_in_words();
        assert_eq!(
            words.as_deref(),
            Some("7 seconds of its 60 seconds were delivered")
        );
    }

    #[test]
    fn nothing_is_owed_before_the_end_nor_for_what_was_lost() {
        for outcome in [None, Some(RunOutcome::Lost)] {
            let agreement = Agreement {
                outcome,
                ..reservation(Some(100_000_000))
            };
            assert_eq!(agreement.price_of_delivered(), None, "{outcome:?}");
        }
    }

    #[test]
    fn a_job_is_owed_for_what_was_left_of_its_slot_and_for_all_of_it_where_that_was_made_longer() {
        let mut agreement = reservation(Some(131_000_000));
        agreement.job = Some(Job::default());
        assert_eq!(
            agreement.delivered(),
            60,
            "its process came late, and its slot in time"
        );
        agreement.note_late_job(30);
        assert_eq!(
            (agreement.delivered(), agreement.price_of_delivered()),
            (30, Some(eur(3_000)))
        );
        assert_eq!(agreement.used_overrun(), 0);
        agreement.end_last_slot(Time(180));
        agreement.slots[0].ended = Some(180 * MICROS_PER_SECOND);
        assert_eq!(
            (agreement.delivered(), agreement.used_overrun()),
            (50, 0),
            "it has made up for some"
        );
        agreement.end_last_slot(Time(200));
        agreement.slots[0].ended = Some(200 * MICROS_PER_SECOND);
        assert_eq!((agreement.delivered(), agreement.used_overrun()), (60, 10));
    }

    #[test]
    fn a_tenth_is_late_and_more_is_too_late() {
        let agreement = reservation(None);
        assert_eq!([6, 7].map(|late| agreement.is_too_late_by(late)), [false, true]);
        for (started_us, is_delivered) in [(105_900_000, true), (106_000_000, false)] {
            assert_eq!(
                reservation(Some(started_us)).is_delivered(),
                is_delivered,
                "{started_us}"
            );
        }
    }
}
