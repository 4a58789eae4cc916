//! Money: whole millionths of a currency, never a fraction of one, so that the same amount stands in an offer, an
//! agreement, a ledger and on every page.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A currency: three capital letters, as ISO 4217 has them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The currency that three capital letters name.
    pub fn parse(text: &str) -> Option<Self> {
        let letters: [u8; 3] = text.as_bytes().try_into().ok()?;
        letters
            .iter()
            .all(u8::is_ascii_uppercase)
            .then_some(Self(letters))
    }

    /// Its three letters.
    pub fn code(&self) -> &str {
        // Capital letters are UTF-8.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let expected = "three capital letters of a currency, such as \"EUR\"";
            serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), &expected)
        })
    }
}

/// An exact amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// Millionths of the currency.
    pub micros: i64,
    /// The currency.
    pub currency: Currency,
}

impl Money {
    /// An amount in millionths of a currency.
    pub fn new(micros: i64, currency: Currency) -> Self {
        Self { micros, currency }
    }

    /// The amount as a decimal without needless zeros, as documents write it: `12.5`.
    pub fn amount(&self) -> String {
        wsag::budget::write_amount(self.micros)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount(), self.currency)
    }
}

/// A key that may spend only so much on agreements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spender {
    /// The key.
    pub key: Uuid,
    /// The most that the agreements that are made with it may cost together.
    pub cap: Money,
}

/// The part `parts` / `whole` of an amount, to the nearest millionth, halves up.
pub fn part_of_amount(amount: Money, parts: i64, whole: i64) -> Money {
    let whole = i128::from(whole.max(1));
    let exact = i128::from(amount.micros) * i128::from(parts);
    let nearest = (2 * exact + whole).div_euclid(2 * whole);
    Money {
        micros: i64::try_from(nearest).unwrap_or(AMOUNT_MAX).min(AMOUNT_MAX),
        ..amount
    }
}

/// Adds an amount to the sum of its currency.
pub fn add_to_sums(sums: &mut Vec<Money>, amount: Money) {
    match sums.iter_mut().find(|sum| sum.currency == amount.currency) {
        Some(sum) => sum.micros = sum.micros.saturating_add(amount.micros),
        None => sums.push(amount),
    }
}

/// The largest amount that documents can write, in millionths.
pub const AMOUNT_MAX: i64 = 999_999_999_999_999_999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_is_three_capital_letters() {
        for (text, known) in [
            ("EUR", true),
            ("eur", false),
            ("EU", false),
            ("EURO", false),
            ("E1R", false),
        ] {
            assert_eq!(Currency::parse(text).is_some(), known, "{text}");
        }
        let stored: Money = serde_json::from_str(r#"{"micros":12500000,"currency":"CHF"}"#).unwrap();
        assert_eq!(stored.to_string(), "12.5 CHF");
        assert_eq!(
            serde_json::to_string(&stored).unwrap(),
            r#"{"micros":12500000,"currency":"CHF"}"#
        );
        let wrong = serde_json::from_str::<Money>(r#"{"micros":1,"currency":"chf"}"#);
        assert!(wrong.unwrap_err().to_string().contains("three capital letters"));
    }
}
