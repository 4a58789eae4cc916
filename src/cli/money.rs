//! Amounts of money as people write them, and in words.

use domain::agreement::{Currency, Money};
use serde_json::{Value, json};
use wsag::budget::parse_amount;

use service::MoneyView;

/// Reads an amount of money as requests have it.
pub(super) fn parse_money_as_json(text: &str) -> Result<Value, String> {
    match text.split_once(' ') {
        Some((amount, currency)) => Ok(json!({ "amount": amount, "currency": currency.trim() })),
        None => Err("an amount and a currency are expected, such as '12.50 EUR'".to_owned()),
    }
}

/// Reads an amount and its currency.
pub(super) fn parse_money(text: &str) -> Result<Money, String> {
    let expected = || "an amount from 0 on and a currency are expected, such as \"100 EUR\"".to_owned();
    let (amount, currency) = text.split_once(' ').ok_or_else(expected)?;
    let micros = parse_amount(amount).ok().filter(|micros| *micros >= 0);
    let currency = Currency::parse(currency).ok_or_else(expected)?;
    Ok(Money::new(micros.ok_or_else(expected)?, currency))
}

/// An amount with its currency.
pub(super) fn money_in_words(value: &Value) -> Option<String> {
    let (amount, currency) = (value["amount"].as_str()?, value["currency"].as_str()?);
    Some(format!("{amount} {currency}"))
}

/// Sums of money, in words.
pub(super) fn sums_of_money_in_words(sums: &[MoneyView]) -> String {
    let sums = sums.iter().map(ToString::to_string);
    sums.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_an_amount_and_a_currency() {
        assert!(parse_money_as_json("12.50 EUR").is_ok() && parse_money_as_json("12").is_err());
    }
}
