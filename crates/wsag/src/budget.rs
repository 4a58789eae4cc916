//! A sum of money: what something may cost or costs, `bsp:Budget`.

use serde::{Deserialize, Serialize};

use crate::xml::datatypes::Decimal;
use crate::xml::ns::BSP;
use crate::xml::{DocumentCheck, Node, Readable, WrittenValue, Xml, read_simple};

/// A sum of money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Millionths of the currency's unit.
    pub amount_micros: i64,
    /// Three letters of ISO 4217.
    pub currency: String,
}

/// An amount of money of at most six decimals, as millionths.
///
/// # Errors
/// The expected form.
pub fn parse_amount(text: &str) -> Result<i64, String> {
    let decimal = Decimal::parse(text).and_then(|decimal| decimal.micros());
    decimal.ok_or_else(|| "an amount of at most six decimals is expected, such as 12.50".to_owned())
}

/// Millionths as an amount.
pub fn write_amount(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let (whole, part) = (
        micros.unsigned_abs() / 1_000_000,
        micros.unsigned_abs() % 1_000_000,
    );
    if part == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{}", format!("{part:06}").trim_end_matches('0'))
}

/// A sum of money: `Amount`, `Currency`.
impl Readable for Budget {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Budget> {
        check.children(node, |children| {
            let amount = children.required(BSP, "Amount", read_simple(parse_amount));
            let currency = children.required(BSP, "Currency", read_simple(parse_currency_of_budget));
            Some(Budget {
                amount_micros: amount?,
                currency: currency?,
            })
        })
    }
}

impl WrittenValue for Budget {
    fn write(&self, xml: &mut Xml) {
        xml.add("bsp:Amount", &write_amount(self.amount_micros));
        xml.add("bsp:Currency", &self.currency);
    }
}

/// Three capital letters of a currency.
///
/// # Errors
/// The expected form.
pub fn parse_currency_of_budget(text: &str) -> Result<String, String> {
    if text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase()) {
        return Ok(text.to_owned());
    }
    Err("three capital letters of a currency are expected, such as EUR".to_owned())
}
