//! `[keys]` of the configuration: how long keys last where nothing is said of it.

use domain::clock::{MICROS_PER_SECOND, Micros};

use super::ranges::table;

table! {
    "keys"
    /// The table as written.
    pub(in crate::cli) struct Keys {
        /// Days for which a key of operators lasts where its maker does not say; 0 for no end.
        operator_days: u32 = 0, 0..=3_650;
    }
}

impl Keys {
    /// How long a key of operators lasts where its maker does not say; none for no end.
    pub(in crate::cli) fn operators_last(&self) -> Option<Micros> {
        let days = Some(i64::from(self.operator_days)).filter(|days| *days > 0);
        days.map(|days| days * 86_400 * MICROS_PER_SECOND)
    }
}
