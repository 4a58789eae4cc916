//! Money and times as flat values have them.

use domain::agreement::{Currency, Money};
use domain::clock::{MICROS_PER_SECOND, Micros};
use scheduler::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sum of money. The amount is a text, because a number of JSON may lose its last digits on the way.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct MoneyView {
    /// The amount, with up to six decimals, as a text so that no digit is lost.
    #[schemars(regex(pattern = r"^-?[0-9]+(\.[0-9]{1,6})?$"), example = &"12.5")]
    pub amount: String,
    /// The currency, three capital letters of ISO 4217.
    #[schemars(example = &"EUR")]
    pub currency: String,
}

impl MoneyView {
    /// A sum of money.
    pub fn of(money: Money) -> Self {
        Self {
            amount: money.amount(),
            currency: money.currency.to_string(),
        }
    }

    /// Several of them.
    pub(crate) fn all(sums: &[Money]) -> Vec<Self> {
        sums.iter().copied().map(Self::of).collect()
    }

    /// The sum, where it is one.
    pub(crate) fn money(&self) -> Option<Money> {
        let micros = wsag::budget::parse_amount(&self.amount).ok()?;
        Some(Money::new(micros, Currency::parse(&self.currency)?))
    }
}

impl std::fmt::Display for MoneyView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
pub(crate) fn write_date_time<S: serde::Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&second_as_date_time(*time))
}

pub(crate) fn read_date_time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse::<jiff::Timestamp>()
        .map(|timestamp| Time(timestamp.as_second()))
        .map_err(serde::de::Error::custom)
}

/// A second as a dateTime in UTC.
pub fn second_as_date_time(time: Time) -> String {
    let seconds = time.seconds().clamp(SECONDS_MIN, SECONDS_MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |timestamp| timestamp.to_string())
}

/// An instant as a dateTime in UTC, to the millisecond.
pub(crate) fn instant_as_date_time(at: Micros) -> String {
    let seconds = at.div_euclid(MICROS_PER_SECOND).clamp(SECONDS_MIN, SECONDS_MAX);
    let millis = at.rem_euclid(MICROS_PER_SECOND) / 1_000;
    jiff::Timestamp::from_millisecond(seconds * 1_000 + millis)
        .map_or_else(|_| String::new(), |timestamp| format!("{timestamp:.3}"))
}

/// The years that a dateTime is written in: 0001 to 9999.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_207_200;
