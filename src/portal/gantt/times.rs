//! The time that a plan is shown for, and the marks on it.

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};

use crate::portal::days;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// Years around now beyond which nothing is looked for.
const FARTHEST: i64 = 20 * 366 * DAY;

domain::worded! {
    /// How long the time is, with its word in an address.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Span {
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
        Year = "year",
    }
}

impl Span {
    pub(super) fn seconds(self) -> i64 {
        match self {
            Self::Hour => HOUR,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 31 * DAY,
            Self::Year => 366 * DAY,
        }
    }

    /// The seconds between two marks; a year has one at the beginning of each month.
    fn step(self) -> i64 {
        match self {
            Self::Hour => 600,
            Self::Day => 2 * HOUR,
            Self::Week => DAY,
            Self::Month => 3 * DAY,
            Self::Year => 31 * DAY,
        }
    }

    /// The start of the time around an instant: on a whole minute, hour or day, and not beyond what anybody plans.
    pub(super) fn start(self, at: i64, now: i64) -> i64 {
        let whole = match self {
            Self::Hour => 60,
            Self::Day => HOUR,
            Self::Week | Self::Month | Self::Year => DAY,
        };
        at.clamp(now - FARTHEST, now + FARTHEST).div_euclid(whole) * whole
    }

    /// The marks of the time from an instant on: seconds, and their labels.
    pub(super) fn marks(self, start: i64) -> Vec<(i64, String)> {
        let zone = days::zone();
        let end = start + self.seconds();
        let format = match self {
            Self::Hour | Self::Day => "%H:%M",
            Self::Week => "%a %-d %b",
            Self::Month => "%-d %b",
            Self::Year => "%b %Y",
        };
        // From the beginning of the day on, so that the marks do not depend on the start.
        let first = days::day_of_second(start, &zone);
        let first = if self == Self::Year {
            first.first_of_month()
        } else {
            first
        };
        let mut at = days::second_of(first, Time::midnight(), &zone);
        let mut marks = Vec::new();
        while at < end {
            if at >= start {
                marks.push((at, days::write_here(at, format)));
            }
            at = match self {
                Self::Hour | Self::Day => at + self.step(),
                // At midnight, also where clocks have changed meanwhile.
                Self::Week | Self::Month => {
                    let next = days::day_of_second(at + self.step() + HOUR, &zone);
                    days::second_of(next, Time::midnight(), &zone).max(at + 1)
                }
                Self::Year => {
                    let next = days::day_of_second(at + self.step() + HOUR, &zone).first_of_month();
                    days::second_of(next, Time::midnight(), &zone).max(at + 1)
                }
            };
        }
        marks
    }
}

/// A dateTime with a zone, or one on the visitor's clock, or the beginning of a day there.
pub(super) fn read_instant(text: &str) -> Option<i64> {
    let here = |clock: DateTime| days::second_of(clock.date(), clock.time(), &days::zone());
    let instant = text.parse::<Timestamp>().ok().map(Timestamp::as_second);
    instant.or_else(|| text.parse().ok().map(here))
}

/// The value of a field with a date and a time on the visitor's clock.
pub(super) fn field_of_instant(at: i64) -> String {
    let at = Timestamp::from_second(at).unwrap_or_default();
    at.to_zoned(days::zone()).strftime("%Y-%m-%dT%H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_span_has_a_few_marks_that_stand_still_as_it_moves() {
        let start = 1_796_300_000;
        for span in Span::ALL {
            let marks = span.marks(span.start(start, start));
            assert!((6..=13).contains(&marks.len()), "{span:?}: {}", marks.len());
            let later = span.marks(span.start(start, start) + span.seconds() / 2);
            let common = marks.iter().filter(|mark| later.contains(mark)).count();
            assert!(common >= 2 || span == Span::Month, "{span:?}");
        }
        let year = Span::Year.marks(read_instant("2026-01-01").unwrap());
        assert_eq!(
            (year[0].1.as_str(), year[11].1.as_str()),
            ("Jan 2026", "Dec 2026")
        );
    }
}
