//! The ranges that numbers of the configuration have.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Checks the number of a key.
///
/// # Errors
/// With the key and the expected value.
pub(super) fn within<N: Copy + PartialOrd + Display>(
    key: &str,
    value: N,
    range: RangeInclusive<N>,
) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(format!("{key}: expected {least} to {most}, found {value}"))
}
