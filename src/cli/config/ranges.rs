//! The tables of numbers in the configuration, and the ranges of these.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Declares a table of the configuration: its name there, and for each key its type, the value where it is not written, and the
/// range of a number. `check_ranges` returns the wrong key and the expected value, if there is one.
macro_rules! table {
    ($table:literal $(#[$about:meta])* $visible:vis struct $name:ident {
        $($(#[$key_about:meta])* $key_visible:vis $key:ident: $type:ty = $value:expr $(, $range:expr)?;)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        $visible struct $name {
            $($(#[$key_about])* $key_visible $key: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $value,)+ }
            }
        }

        impl $name {
            pub(in crate::cli::config) fn check_ranges(&self) -> Result<(), String> {
                $($($crate::cli::config::ranges::check_range(
                    concat!($table, ".", stringify!($key)), self.$key, $range
                )?;)?)+
                Ok(())
            }
        }
    };
}
pub(super) use table;

/// Checks the number of a key, if there is one.
///
/// # Errors
/// With the key and the expected value.
pub(super) fn check_range<N: Copy + PartialOrd + Display>(
    key: &str,
    value: impl Into<Option<N>>,
    range: RangeInclusive<N>,
) -> Result<(), String> {
    match value.into() {
        Some(value) if !range.contains(&value) => {
            let (least, most) = range.into_inner();
            Err(format!("{key}: expected {least} to {most}, found {value}"))
        }
        _ => Ok(()),
    }
}

/// The most that a unit may cost: a node for an hour, a kilowatt-hour, a kilogram of carbon dioxide.
const PRICE_MAX: i64 = 4_000;

/// A price of a unit, in millionths of the currency.
///
/// # Errors
/// With the key and the expected value.
pub(super) fn parse_price_in_range(key: &str, text: &str) -> Result<u32, String> {
    let micros = amount_in_range(key, text, 0..=PRICE_MAX)?;
    u32::try_from(micros).map_err(|why| format!("{key}: {why}"))
}

/// A price of a unit that may be below zero, as that of energy sometimes is, in millionths of the currency.
///
/// # Errors
/// With the key and the expected value.
pub(super) fn signed_price(key: &str, text: &str) -> Result<i64, String> {
    amount_in_range(key, text, -PRICE_MAX..=PRICE_MAX)
}

/// An amount of millionths that is written in a text.
///
/// # Errors
/// With the key and the expected value.
pub(super) fn amount_in_range(key: &str, text: &str, range: RangeInclusive<i64>) -> Result<i64, String> {
    let (least, most) = range.into_inner();
    let micros = wsag::budget::parse_amount(text).ok();
    let micros = micros.filter(|micros| (least * 1_000_000..=most * 1_000_000).contains(micros));
    micros.ok_or_else(|| {
        format!(
            "{key}: expected an amount from \"{least}\" to \"{most}\" of at most six decimals, found {text:?}"
        )
    })
}
