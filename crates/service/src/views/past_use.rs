//! How the resources were used, as operators see it.

use std::sync::{Arc, Mutex};

use domain::clock::{MICROS_PER_SECOND, Micros};
use store::past_use::PastUse;

/// Microseconds of an hour.
const HOUR: i64 = 3_600 * MICROS_PER_SECOND;

/// How the resources were used.
#[derive(Debug, Clone, PartialEq)]
pub struct PastUseView {
    /// When it was added up.
    pub at: String,
    /// In the order in which ties are broken.
    pub resources: Vec<ResourcePastUseView>,
}

/// How a resource was used.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourcePastUseView {
    /// Its name.
    pub name: String,
    /// In the last day, and in the last seven days.
    pub periods: [PeriodUseView; 2],
}

/// How a resource was used in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeriodUseView {
    /// Node-hours that reservations had, to a tenth.
    pub booked_hours: f64,
    /// The same in percent of what its present nodes have in that time.
    pub booked_percent: i64,
    /// Node-hours for which jobs ran, to a tenth.
    pub used_hours: f64,
    /// The same in percent.
    pub used_percent: i64,
}

/// The last sums.
#[derive(Clone, Default)]
pub(crate) struct PastUses(pub(crate) Arc<Mutex<PastUseCache>>);

/// The last sums.
#[derive(Default)]
pub(crate) struct PastUseCache {
    /// When, and what.
    pub(crate) last: Option<(Micros, PastUseView)>,
    /// Whether others are being made.
    pub(crate) are_being_made: bool,
}

impl PeriodUseView {
    /// The use of a resource that has so many node-seconds in the time.
    pub(crate) fn of(past: PastUse, whole: i64) -> Self {
        let booked = past.booked.saturating_mul(MICROS_PER_SECOND);
        let whole = whole.saturating_mul(MICROS_PER_SECOND).max(1);
        let percent = |part: i64| i128::from(part) * 100 / i128::from(whole);
        let percent = |part: i64| i64::try_from(percent(part)).unwrap_or(i64::MAX);
        let hours = |part: i64| {
            let tenths = (part + HOUR / 20) / (HOUR / 10);
            let text = format!("{}.{}", tenths / 10, tenths % 10);
            text.parse().unwrap_or(f64::MAX)
        };
        Self {
            booked_hours: hours(booked),
            booked_percent: percent(booked),
            used_hours: hours(past.used),
            used_percent: percent(past.used),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_told_in_hours_and_parts_of_the_whole() {
        let past = PastUse {
            booked: 5 * 3_600 + 180,
            used: 2 * HOUR + HOUR / 2,
        };
        let view = PeriodUseView::of(past, 10 * 3_600);
        assert_eq!((view.booked_hours, view.booked_percent), (5.1, 50));
        assert_eq!((view.used_hours, view.used_percent), (2.5, 25));
        let none = PeriodUseView::of(PastUse::default(), 0);
        assert_eq!((none.booked_percent, none.used_percent), (0, 0));
    }
}
