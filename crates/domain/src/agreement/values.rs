//! The values of a guarantee: the side that owes it, the cost of a violation, and the reward of a fulfilment.

use scheduler::Seconds;
use serde::{Deserialize, Serialize};

use super::{AMOUNT_MAX, GuaranteeState, Money, part_of_amount};
use crate::clock::{MICROS_PER_SECOND, Micros};

/// The most often that one compensation is posted: a year of hours.
const TIMES_MAX: i64 = 8_784;

/// The side that a guarantee binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Obligated {
    /// The provider.
    #[default]
    Provider,
    /// The party.
    Consumer,
}

/// The values of a guarantee, and the part of them that has been paid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Values {
    /// The side that owes it.
    pub obligated: Obligated,
    /// Paid by the side that owes it when it is violated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<Compensation>,
    /// Paid to the side that owes it when it is fulfilled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rewards: Vec<Compensation>,
    /// When the state of the guarantee was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub determined: Option<Micros>,
    /// When it was last looked at without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<Micros>,
}

/// A penalty or a reward.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compensation {
    /// How much, each time.
    pub worth: CompensationValue,
    /// Paid again after each period of this length in which the agreement is in force; `None` for once.
    pub every: Option<Seconds>,
    /// How often it has been paid.
    #[serde(default)]
    pub paid: i64,
}

/// How much a compensation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompensationValue {
    /// An amount.
    Amount(Money),
    /// A part of the agreement's price, in millionths of a percent.
    PricePart(i64),
}

impl CompensationValue {
    /// The amount for an agreement of a price, to the nearest millionth, halves up; none of a price that there is not.
    pub fn of(self, price: Option<Money>) -> Option<Money> {
        match self {
            Self::Amount(amount) => Some(amount),
            Self::PricePart(micros) => price.map(|price| part_of_amount(price, micros, 100 * 1_000_000)),
        }
    }
}

impl Values {
    /// The compensations for a state.
    pub fn for_state(&mut self, state: GuaranteeState) -> &mut [Compensation] {
        match state {
            GuaranteeState::NotDetermined => &mut [],
            GuaranteeState::Violated => &mut self.penalties,
            GuaranteeState::Fulfilled => &mut self.rewards,
        }
    }

    /// When the next compensation is due of a guarantee in this state, while its agreement is in force.
    pub(crate) fn next_due(&self, state: GuaranteeState) -> Option<Micros> {
        let determined = self.determined?;
        let compensations = match state {
            GuaranteeState::NotDetermined => return None,
            GuaranteeState::Violated => &self.penalties,
            GuaranteeState::Fulfilled => &self.rewards,
        };
        let due = compensations.iter().filter_map(|compensation| {
            let every = compensation.every.filter(|_| compensation.paid < TIMES_MAX)?;
            Some(determined + compensation.paid * every * MICROS_PER_SECOND)
        });
        due.min()
    }
}

impl Compensation {
    /// How often it is to be paid now, `since` the state was found; that is then counted as paid.
    pub fn take_due(&mut self, since: Micros, now: Micros) -> i64 {
        let times = match self.every {
            None => 1,
            Some(every) => 1 + (now - since).max(0) / (every.max(1) * MICROS_PER_SECOND),
        };
        let due = (times.min(TIMES_MAX) - self.paid).max(0);
        self.paid += due;
        due
    }

    /// The amount times `times`; none where it is nothing.
    pub fn amount(&self, times: i64, price: Option<Money>) -> Option<Money> {
        let once = self.worth.of(price)?;
        let micros = once.micros.saturating_mul(times).min(AMOUNT_MAX);
        (micros > 0).then_some(Money { micros, ..once })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::Currency;

    fn eur(micros: i64) -> Money {
        Money::new(micros, Currency::parse("EUR").unwrap())
    }

    #[test]
    fn a_part_of_a_price_is_rounded_once_to_the_nearest_millionth() {
        for (price, percent_micros, expected) in [
            (240_000, 20_000_000, 48_000),
            (1, 50_000_000, 1),
            (1, 49_999_999, 0),
            (3, 50_000_000, 2),
        ] {
            let worth = CompensationValue::PricePart(percent_micros);
            assert_eq!(
                worth.of(Some(eur(price))),
                Some(eur(expected)),
                "{percent_micros} of {price}"
            );
        }
        assert_eq!(CompensationValue::PricePart(1).of(None), None);
    }

    #[test]
    fn what_is_paid_by_intervals_is_paid_once_for_each() {
        let mut hourly = Compensation {
            worth: CompensationValue::Amount(eur(5)),
            every: Some(3_600),
            paid: 0,
        };
        let at = |seconds: i64| seconds * MICROS_PER_SECOND;
        let paid: Vec<i64> = [0, 10, 3_599, 3_600, 3_601, 10_800]
            .into_iter()
            .map(|now| hourly.take_due(at(0), at(now)))
            .collect();
        assert_eq!(paid, [1, 0, 0, 1, 0, 2]);
        assert_eq!(hourly.amount(2, None), Some(eur(10)));
        let mut once = Compensation {
            every: None,
            paid: 0,
            ..hourly
        };
        assert_eq!(
            [once.take_due(0, at(9_999)), once.take_due(0, at(99_999))],
            [1, 0]
        );
    }
}
