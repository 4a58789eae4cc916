//! The period that a calendar shows: a day, a week or a month as visitors have it, when it begins, and its name.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};

use super::zone::{second_in_zone, write_in_zone};

/// Hours of a part of a day on a calendar of a week.
const PART_HOURS: i8 = 3;

domain::worded! {
    /// How much a calendar shows, with its word in an address.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum PeriodExtent {
        /// A day by hours.
        Day = "day",
        /// A week from its Monday, by parts of days.
        Week = "week",
        /// A month by days.
        Month = "month",
    }
}

/// A time that a calendar shows, cut into rows of cells.
#[derive(Debug, Clone)]
pub(super) struct Period {
    extent: PeriodExtent,
    /// Its first day.
    pub(super) first: Date,
    zone: TimeZone,
}

/// A row of a calendar, with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PeriodRow<T> {
    pub(super) label: String,
    /// None before the first cell and after the last.
    pub(super) cells: Vec<Option<T>>,
}

impl PeriodExtent {
    fn length(self) -> Span {
        match self {
            Self::Day => 1.day(),
            Self::Week => 1.week(),
            Self::Month => 1.month(),
        }
    }
}

impl Period {
    /// The period that holds a day.
    pub(super) fn around(extent: PeriodExtent, day: Date, zone: TimeZone) -> Self {
        let first = match extent {
            PeriodExtent::Day => day,
            PeriodExtent::Week => {
                let since = i64::from(day.weekday().to_monday_zero_offset());
                day.saturating_sub(since.days())
            }
            PeriodExtent::Month => day.first_of_month(),
        };
        Self { extent, first, zone }
    }

    /// The first day of the next one, and of the one before.
    pub(super) fn next(&self) -> Date {
        self.first.saturating_add(self.extent.length())
    }

    /// The first day of the one before.
    pub(super) fn previous(&self) -> Date {
        self.first.saturating_sub(self.extent.length())
    }

    /// Its name.
    pub(super) fn title(&self) -> String {
        let date = |date: Date| date.strftime("%-d %B %Y").to_string();
        match self.extent {
            PeriodExtent::Day => self.first.strftime("%A %-d %B %Y").to_string(),
            PeriodExtent::Week => format!(
                "{} to {}",
                date(self.first),
                date(self.next().saturating_sub(1.day()))
            ),
            PeriodExtent::Month => self.first.strftime("%B %Y").to_string(),
        }
    }

    /// Its cells, from which second until which, in order.
    pub(super) fn cells(&self) -> Vec<(i64, i64)> {
        let (mut days, mut day) = (Vec::new(), self.first);
        while day < self.next() {
            days.push(day);
            day = day.saturating_add(1.day());
        }
        let end = second_in_zone(self.next(), Time::midnight(), &self.zone);
        let starts: Vec<i64> = match self.extent {
            // A day of another clock may have 23 hours, or 25.
            PeriodExtent::Day => {
                let start = second_in_zone(self.first, Time::midnight(), &self.zone);
                (start..end).step_by(3_600).collect()
            }
            PeriodExtent::Week => {
                let parts = (0..24).step_by(usize::from(PART_HOURS.unsigned_abs()));
                let parts = parts.map(|hour| Time::constant(hour, 0, 0, 0));
                let parts: Vec<Time> = parts.collect();
                let of_day = |day: Date| parts.iter().map(move |part| (day, *part));
                let all = days.into_iter().flat_map(of_day);
                all.map(|(day, part)| second_in_zone(day, part, &self.zone))
                    .collect()
            }
            PeriodExtent::Month => {
                let all = days.into_iter();
                all.map(|day| second_in_zone(day, Time::midnight(), &self.zone))
                    .collect()
            }
        };
        let ends = starts.iter().skip(1).copied().chain([end]);
        starts.iter().copied().zip(ends).collect()
    }

    /// In how many parts of its cells a picture is drawn: quarters of an hour, hours, quarters of a day.
    pub(super) fn parts_of_cell(&self) -> i64 {
        match self.extent {
            PeriodExtent::Day | PeriodExtent::Month => 4,
            PeriodExtent::Week => 3,
        }
    }

    /// What the columns are called.
    pub(super) fn columns(&self) -> Vec<String> {
        match self.extent {
            PeriodExtent::Day => self.cells().iter().map(|(start, _)| self.clock(*start)).collect(),
            PeriodExtent::Week => (0..24)
                .step_by(usize::from(PART_HOURS.unsigned_abs()))
                .map(|hour| format!("{hour:02}–{:02}", hour + PART_HOURS))
                .collect(),
            PeriodExtent::Month => ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
                .map(str::to_owned)
                .to_vec(),
        }
    }

    /// One value for each cell, in rows below these columns.
    pub(super) fn rows<T>(&self, values: Vec<T>) -> Vec<PeriodRow<T>> {
        let before = match self.extent {
            PeriodExtent::Month => usize::from(self.first.weekday().to_monday_zero_offset().unsigned_abs()),
            PeriodExtent::Day | PeriodExtent::Week => 0,
        };
        let length = self.columns().len().max(1);
        let mut cells: Vec<Option<T>> = (0..before).map(|_| None).collect();
        cells.extend(values.into_iter().map(Some));
        let mut rows = Vec::new();
        let mut day = self.first;
        while !cells.is_empty() {
            let mut row: Vec<Option<T>> = cells.drain(..length.min(cells.len())).collect();
            row.resize_with(length, || None);
            rows.push(PeriodRow {
                label: day.strftime("%a %-d %b").to_string(),
                cells: row,
            });
            day = match self.extent {
                PeriodExtent::Month => day
                    .nth_weekday(1, Weekday::Monday)
                    .unwrap_or_else(|_| day.saturating_add(1.week())),
                PeriodExtent::Day | PeriodExtent::Week => day.saturating_add(1.day()),
            };
        }
        rows
    }

    /// What the cell that begins at a second is called.
    pub(super) fn cell_name(&self, start: i64) -> String {
        let format = if self.extent == PeriodExtent::Month {
            "%a %-d %b"
        } else {
            "%a %-d %b %H:%M"
        };
        write_in_zone(start, &self.zone, format)
    }

    fn clock(&self, at: i64) -> String {
        write_in_zone(at, &self.zone, "%H")
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_week_begins_on_monday_and_a_month_on_its_first() {
        let period_of = |extent, day| Period::around(extent, day, TimeZone::UTC);
        let day = date(2026, 12, 3);
        assert_eq!(period_of(PeriodExtent::Week, day).first, date(2026, 11, 30));
        assert_eq!(
            period_of(PeriodExtent::Week, day).title(),
            "30 November 2026 to 6 December 2026"
        );
        assert_eq!(period_of(PeriodExtent::Month, day).first, date(2026, 12, 1));
        assert_eq!(
            (
                period_of(PeriodExtent::Month, day).previous(),
                period_of(PeriodExtent::Month, day).next()
            ),
            (date(2026, 11, 1), date(2027, 1, 1))
        );
        assert_eq!(
            period_of(PeriodExtent::Day, day).title(),
            "Thursday 3 December 2026"
        );
        for (extent, cells) in [
            (PeriodExtent::Day, 24),
            (PeriodExtent::Week, 56),
            (PeriodExtent::Month, 31),
        ] {
            let period = period_of(extent, day);
            assert_eq!(period.cells().len(), cells);
            let starts_where_the_last_ended = period.cells().windows(2).all(|two| two[0].1 == two[1].0);
            assert!(starts_where_the_last_ended);
        }
    }

    #[test]
    fn the_days_of_a_month_stand_under_their_weekdays() {
        let period = Period::around(PeriodExtent::Month, date(2026, 12, 3), TimeZone::UTC);
        let rows = period.rows((1..=31).collect());
        assert_eq!(rows.len(), 5);
        assert_eq!(
            rows[0].cells,
            [None, Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)]
        );
        assert_eq!((rows[1].label.as_str(), rows[1].cells[0]), ("Mon 7 Dec", Some(7)));
        assert_eq!(rows[4].cells[4..], [None, None, None]);
        assert_eq!(rows[4].cells[3], Some(31));
        assert_eq!(period.cell_name(period.cells()[0].0), "Tue 1 Dec");
    }

    #[test]
    fn a_day_on_which_clocks_change_has_as_many_hours_as_it_has() {
        let Ok(zone) = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3") else {
            panic!("a zone can be written by its rule");
        };
        let period = Period::around(PeriodExtent::Day, date(2026, 3, 29), zone.clone());
        assert_eq!((period.cells().len(), period.columns().len()), (23, 23));
        let period = Period::around(PeriodExtent::Day, date(2026, 10, 25), zone.clone());
        assert_eq!(period.cells().len(), 25);
        let week = Period::around(PeriodExtent::Week, date(2026, 3, 29), zone);
        let cells = week.cells();
        assert_eq!(cells.len(), 56);
        let hours: Vec<i64> = cells.iter().map(|(start, end)| (end - start) / 3_600).collect();
        assert_eq!(hours[48..50], [2, 3], "the clocks skip from two to three");
        assert_eq!(week.cell_name(cells[49].0), "Sun 29 Mar 03:00");
    }
}
