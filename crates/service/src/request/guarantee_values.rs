//! The values of a template's guarantees, read into amounts. Only the provider sets these values, so the provider has to fix a
//! value that cannot be read.

use domain::agreement::{Compensation, CompensationValue, Currency, Money, Obligated, Values};
use scheduler::Seconds;
use wsag::guarantees::{self, AssessmentInterval, GuaranteeTerm};
use wsag::{budget, expression};

/// Assessed again after less than this, a violation would fill the ledger with small change.
const INTERVAL_MIN: Seconds = 60;
/// The unit of a value that is a part of the agreement's price.
const PERCENT: &str = "percent";
/// More than this of a price is a slip of the pen.
const PERCENT_MAX_MICROS: i64 = 1_000 * 1_000_000;

/// The values of a term; `priced` is the currency of values that name no unit.
///
/// # Errors
/// The expected value, in words.
pub(crate) fn values_of_guarantee(term: &GuaranteeTerm, priced: Option<Currency>) -> Result<Values, String> {
    let read = |compensations: &[guarantees::Compensation]| -> Result<Vec<Compensation>, String> {
        compensations
            .iter()
            .map(|each| compensation_of_guarantee(each, priced))
            .collect()
    };
    Ok(Values {
        obligated: match term.obligated {
            guarantees::Obligated::ServiceProvider => Obligated::Provider,
            guarantees::Obligated::ServiceConsumer => Obligated::Consumer,
        },
        penalties: read(&term.values.penalties)?,
        rewards: read(&term.values.rewards)?,
        determined: None,
        checked: None,
    })
}

fn compensation_of_guarantee(
    compensation: &guarantees::Compensation,
    priced: Option<Currency>,
) -> Result<Compensation, String> {
    let every = match compensation.interval {
        AssessmentInterval::Count(1) => None,
        AssessmentInterval::Count(count) => {
            return Err(format!(
                "an agreement is carried out once, so that a Count of 1 is expected, not {count}"
            ));
        }
        AssessmentInterval::Time(time) => {
            let seconds = time.seconds().filter(|seconds| *seconds >= INTERVAL_MIN);
            let why = "a TimeInterval of at least a minute, without months, is expected";
            Some(seconds.ok_or(why)?)
        }
    };
    let dialect = compensation.value.dialect.as_deref();
    if dialect.is_some_and(|dialect| dialect != expression::DIALECT) {
        return Err(format!(
            "a value in the dialect {} is expected",
            expression::DIALECT
        ));
    }
    let amount = budget::parse_amount(compensation.value.text.trim())
        .ok()
        .filter(|micros| *micros >= 0)
        .ok_or("an amount from 0 on of at most six decimals is expected, such as 12.50")?;
    let worth = match compensation.unit.as_deref().map(str::trim) {
        Some(PERCENT) if amount <= PERCENT_MAX_MICROS => CompensationValue::PricePart(amount),
        Some(PERCENT) => return Err("at most 1000 percent of the price are expected".to_owned()),
        Some(unit) => {
            let why = || format!("a currency or \"{PERCENT}\" is expected as unit, not {unit:?}");
            CompensationValue::Amount(Money::new(amount, Currency::parse(unit).ok_or_else(why)?))
        }
        None => {
            let why = "a unit is expected, a currency or \"percent\", since nothing is priced here";
            CompensationValue::Amount(Money::new(amount, priced.ok_or(why)?))
        }
    };
    Ok(Compensation {
        worth,
        every,
        paid: 0,
    })
}
