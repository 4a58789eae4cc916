//! Reservations of the site that come again. Slurm shows the present time of each, and moves the reservation to the next time when
//! the present one is over. It counts days and hours by the clock on the wall, in the time zone of its controller.

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _};
use scheduler::{Interval, Seconds, Time};

/// How many times of one reservation are told one by one: those of more than a year for one that comes daily. All later times
/// together count as one without an end.
const TOLD_APART: usize = 400;
/// Seconds after the end of a time within which Slurm moves its reservation to the next one.
const MOVED_WITHIN: Seconds = 120;
/// Days of a week.
const WEEK: usize = 7;

/// How often a reservation comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recurrence {
    Hourly,
    Daily,
    /// Monday to Friday.
    OnWeekdays,
    /// Saturday and Sunday.
    OnWeekends,
    Weekly,
}

impl Recurrence {
    /// By the flags of a reservation; none for one that does not come again. Of several flags Slurm goes by the first in this order.
    pub(crate) fn of_flags(flags: &[&str]) -> Option<Self> {
        let known = [
            ("HOURLY", Self::Hourly),
            ("DAILY", Self::Daily),
            ("WEEKDAY", Self::OnWeekdays),
            ("WEEKEND", Self::OnWeekends),
            ("WEEKLY", Self::Weekly),
        ];
        let named = known.into_iter().find(|(flag, _)| flags.contains(flag));
        named.map(|(_, repeats)| repeats)
    }

    /// From one time to the next, by the day of the week on which Slurm moves the reservation: 0 is Sunday. Slurm does not look at
    /// the day on which the reservation begins.
    fn step(self, moved_on: i8) -> Span {
        let days = match (self, moved_on) {
            (Self::Hourly, _) => return 1.hour(),
            (Self::Weekly, _) => 7,
            (Self::OnWeekdays, 5) => 3,
            (Self::OnWeekdays, 6) => 2,
            (Self::Daily | Self::OnWeekdays, _) | (Self::OnWeekends, 6) => 1,
            (Self::OnWeekends, day) => 6 - i64::from(day),
        };
        days.days()
    }
}

/// A reservation that comes again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecurringReservation<'a> {
    /// Its present time.
    pub(crate) present: Interval,
    pub(crate) repeats: Recurrence,
    /// Whether Slurm ends a time early where no job uses it.
    pub(crate) may_end_early: bool,
    /// The zone of Slurm's controller.
    pub(crate) zone: &'a TimeZone,
}

impl RecurringReservation<'_> {
    /// The times that it takes from the present one on, by their begins. It may skip some of them: where a time reaches into the
    /// next day, the next one depends on the moment at which Slurm moves the reservation. O(n log n) for n times, which are
    /// bounded.
    ///
    /// Source: `_advance_resv_time` and `_advance_time` in Slurm's `reservation.c`, the same in 22.05 and 24.05. Slurm calls
    /// `mktime` without saying whether it is summer time.
    pub(crate) fn times(&self) -> Vec<Interval> {
        let (mut to_come, mut times) = (BTreeSet::from([self.present]), Vec::new());
        while let Some(time) = to_come.pop_first() {
            if times.len() == TOLD_APART {
                times.push(Interval::new(time.start, Time::MAX));
                break;
            }
            times.push(time);
            to_come.extend(self.next_times(time).unwrap_or_default());
        }
        times
    }

    /// The times that may follow one; none beyond the years that have a calendar.
    fn next_times(&self, time: Interval) -> Option<Vec<Interval>> {
        let (start, end) = (self.local(time.start)?, self.local(time.end)?);
        let first_day = if self.may_end_early { start } else { end }.date();
        let last_day = self.local(time.end + MOVED_WITHIN)?.date();
        let days = first_day.series(1.day()).take_while(|day| *day <= last_day);
        let next = days.take(WEEK).map(|day| {
            let step = self.repeats.step(day.weekday().to_sunday_zero_offset());
            // A time that the clock shows twice may be either, and one that it skips is the later one for the C library of GNU.
            let start = self.zone.to_ambiguous_timestamp(start.checked_add(step).ok()?);
            let end = self.zone.to_ambiguous_timestamp(end.checked_add(step).ok()?);
            let start = Time(start.compatible().ok()?.as_second());
            Some(Interval::new(
                start,
                start.max(Time(end.later().ok()?.as_second())),
            ))
        });
        next.collect()
    }

    /// A later time as Slurm may take it to be, too. Where it makes another reservation up to `lead` seconds before that begins, it
    /// counts the next times of this one in days of 24 hours, so that after a change of the clocks it is wrong by that change.
    ///
    /// Source: `_get_advance_secs` in Slurm's `reservation.c` of 24.05. Slurm 22.05 counts as in [`Self::times`].
    pub(crate) fn as_foreseen(&self, time: Interval, lead: Seconds) -> Interval {
        let offset = |at: Time| {
            let at = Timestamp::from_second(at.seconds()).unwrap_or_default();
            i64::from(self.zone.to_offset(at).seconds())
        };
        let wrong_by = offset(time.start) - offset(time.start - lead);
        Interval::new(time.start + wrong_by.min(0), time.end + wrong_by.max(0))
    }

    /// The time on the wall.
    fn local(&self, at: Time) -> Option<DateTime> {
        let at = Timestamp::from_second(at.seconds()).ok()?;
        Some(self.zone.to_datetime(at))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, Weekday, date};
    use proptest::prelude::*;

    use super::*;

    /// Zones in the north and the south, with both changes of the clocks, and one without any.
    const ZONES: [&str; 4] = ["Europe/Berlin", "America/New_York", "Australia/Sydney", "UTC"];

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    /// The instant at which the clock of a zone shows a time, the first where it does so twice.
    fn at(zone: &TimeZone, day: Date, minute: i64) -> Time {
        let local = day.at(0, 0, 0, 0) + minute.minutes();
        Time(
            zone.to_ambiguous_timestamp(local)
                .compatible()
                .unwrap()
                .as_second(),
        )
    }

    fn times(zone: &TimeZone, repeats: Recurrence, present: Interval) -> Vec<Interval> {
        let recurring = RecurringReservation {
            present,
            repeats,
            may_end_early: false,
            zone,
        };
        recurring.times()
    }

    /// The begins of the first times as the clock shows them, with the day of the week.
    fn begins(zone: &TimeZone, times: &[Interval]) -> Vec<String> {
        let shown = |time: &Interval| {
            let at = Timestamp::from_second(time.start.seconds()).unwrap();
            at.to_zoned(zone.clone()).strftime("%a %d %H:%M").to_string()
        };
        times.iter().take(4).map(shown).collect()
    }

    #[test]
    fn a_reservation_at_night_keeps_its_time_on_the_wall_over_both_changes_of_the_clocks() {
        let berlin = zone("Europe/Berlin");
        for (day, hours) in [(date(2026, 3, 28), 23), (date(2026, 10, 24), 25)] {
            let present = Interval::new(at(&berlin, day, 5 * 60), at(&berlin, day, 7 * 60));
            let told = times(&berlin, Recurrence::Daily, present);
            let starts: Vec<i64> = told
                .iter()
                .take(3)
                .map(|told| told.start - present.start)
                .collect();
            assert_eq!(starts, [0, hours * 3_600, (hours + 24) * 3_600], "{day}");
        }
        // The night itself is longer, or shorter.
        for (day, hours) in [(date(2026, 3, 27), 2), (date(2026, 10, 23), 4)] {
            let present = Interval::new(at(&berlin, day, 60), at(&berlin, day, 4 * 60));
            let told = times(&berlin, Recurrence::Daily, present);
            assert_eq!(
                (told[1].end - told[1].start, told[2].end - told[2].start),
                (3 * 3_600, hours * 3_600)
            );
        }
    }

    #[test]
    fn a_begin_that_the_clock_shows_twice_or_never_is_as_early_as_it_may_be() {
        let berlin = zone("Europe/Berlin");
        let interval_of = |day, from, to| Interval::new(at(&berlin, day, from), at(&berlin, day, to));
        let told = times(
            &berlin,
            Recurrence::Daily,
            interval_of(date(2026, 10, 24), 150, 170),
        );
        // From 2:30 of summer time to 2:50 of winter time: Slurm may take either.
        assert_eq!(
            told[1],
            Interval::of(at(&berlin, date(2026, 10, 25), 150), 3_600 + 20 * 60)
        );
        assert_eq!(told[2], interval_of(date(2026, 10, 26), 150, 170));
        let told = times(
            &berlin,
            Recurrence::Daily,
            interval_of(date(2026, 3, 28), 150, 300),
        );
        // There is no 2:30. Slurm goes on from 3:30, and does not go back to 2:30.
        assert_eq!(told[1], interval_of(date(2026, 3, 29), 210, 300));
        assert_eq!(told[2], interval_of(date(2026, 3, 30), 210, 300));
    }

    #[test]
    fn one_that_reaches_into_the_next_day_takes_each_day_that_slurm_may_move_it_to() {
        let utc = TimeZone::UTC;
        let friday = date(2026, 11, 27);
        let interval_of =
            |from: i64, to: i64| Interval::new(at(&utc, friday, from * 60), at(&utc, friday, to * 60));
        // It is moved on a Saturday, by two days.
        let told = times(&utc, Recurrence::OnWeekdays, interval_of(22, 26));
        assert_eq!(
            begins(&utc, &told),
            ["Fri 27 22:00", "Sun 29 22:00", "Mon 30 22:00", "Tue 01 22:00"]
        );
        // It ends at midnight, and is moved then or a little later.
        let told = times(&utc, Recurrence::OnWeekdays, interval_of(22, 24));
        assert_eq!(
            begins(&utc, &told),
            ["Fri 27 22:00", "Sun 29 22:00", "Mon 30 22:00", "Tue 01 22:00"]
        );
        // One that no job uses may be moved on the Friday, too.
        let early = RecurringReservation {
            present: interval_of(22, 26),
            repeats: Recurrence::OnWeekdays,
            may_end_early: true,
            zone: &utc,
        };
        assert_eq!(
            begins(&utc, &early.times())[..3],
            ["Fri 27 22:00", "Sun 29 22:00", "Mon 30 22:00"]
        );
        let told = times(&utc, Recurrence::OnWeekends, interval_of(24 + 20, 48 + 2));
        assert_eq!(
            begins(&utc, &told)[..3],
            ["Sat 28 20:00", "Fri 04 20:00", "Sat 05 20:00"]
        );
    }

    #[test]
    fn what_comes_after_many_times_counts_as_one_without_an_end() {
        let present = Interval::of(Time(1_800_000_000), 60);
        let told = times(&TimeZone::UTC, Recurrence::Hourly, present);
        let last = told.last().unwrap();
        assert_eq!((told.len(), last.end), (TOLD_APART + 1, Time::MAX));
        assert_eq!(
            last.start,
            present.start + 3_600 * i64::try_from(TOLD_APART).unwrap()
        );
        // Where the calendar ends nothing comes again.
        let far = Interval::of(Time(1 << 50), 60);
        assert_eq!(times(&TimeZone::UTC, Recurrence::Daily, far), [far]);
    }

    #[test]
    fn the_time_after_a_change_of_the_clocks_is_kept_free_as_slurm_foresees_it() {
        let berlin = zone("Europe/Berlin");
        let morning_of = |day| Interval::new(at(&berlin, day, 300), at(&berlin, day, 360));
        let recurring = RecurringReservation {
            present: morning_of(date(2026, 3, 28)),
            repeats: Recurrence::Daily,
            may_end_early: false,
            zone: &berlin,
        };
        let day = 86_400;
        let seen = |day_of: Date, lead| {
            let (time, seen) = (
                morning_of(day_of),
                recurring.as_foreseen(morning_of(day_of), lead),
            );
            (time.start - seen.start, seen.end - time.end)
        };
        assert_eq!(seen(date(2026, 3, 28), day), (0, 0));
        assert_eq!(
            seen(date(2026, 3, 29), day),
            (0, 3_600),
            "an hour later on the first day of summer time"
        );
        assert_eq!(seen(date(2026, 3, 31), day), (0, 0));
        assert_eq!(seen(date(2026, 3, 31), 3 * day), (0, 3_600));
        assert_eq!(
            seen(date(2026, 10, 25), day),
            (3_600, 0),
            "an hour sooner on the first day of winter time"
        );
        assert_eq!(seen(date(2026, 10, 25), 0), (0, 0));
    }

    #[test]
    fn flags_say_how_often_a_reservation_comes_again() {
        assert_eq!(
            Recurrence::of_flags(&["SPEC_NODES", "DAILY"]),
            Some(Recurrence::Daily)
        );
        assert_eq!(
            Recurrence::of_flags(&["WEEKLY", "HOURLY"]),
            Some(Recurrence::Hourly)
        );
        assert_eq!(Recurrence::of_flags(&["SPEC_NODES", ""]), None);
    }

    proptest! {
        /// By day, where no clock changes, a calendar says when it comes again.
        #[test]
        fn by_day_it_comes_again_as_a_calendar_says(
            name in prop::sample::select(ZONES.to_vec()),
            day in 0_i64..1_500,
            from in 4 * 60_i64..20 * 60,
            minutes in 1_i64..200,
            repeats in prop::sample::select(vec![
                Recurrence::Daily,
                Recurrence::OnWeekdays,
                Recurrence::OnWeekends,
                Recurrence::Weekly,
            ]),
        ) {
            let zone = zone(name);
            let from_day = date(2026, 1, 1) + day.days();
            let is_its_day = |day: &Date| {
                let is_weekend = matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
                match repeats {
                    Recurrence::Hourly | Recurrence::Daily => true,
                    Recurrence::OnWeekdays => !is_weekend,
                    Recurrence::OnWeekends => is_weekend,
                    Recurrence::Weekly => day.weekday() == from_day.weekday(),
                }
            };
            let of_day = |day: Date| Interval::new(at(&zone, day, from), at(&zone, day, from + minutes));
            let days = from_day.series(1.day()).filter(is_its_day);
            let expected: Vec<Interval> = days.map(of_day).take(TOLD_APART).collect();
            let told = times(&zone, repeats, expected[0]);
            prop_assert_eq!(&told[..TOLD_APART], &expected[..]);
        }

        /// Whenever the clocks change, each hour has its part of one that comes hourly.
        #[test]
        fn one_that_comes_hourly_leaves_no_hour_out(
            name in prop::sample::select(ZONES.to_vec()),
            change in prop::sample::select(vec![(3, 8), (3, 29), (4, 5), (10, 4), (10, 25), (11, 1)]),
            days_before in 1_i64..10,
            second in 0_i64..7_200,
            seconds in 1_i64..3_600,
        ) {
            // At noon in UTC no clock of these zones shows a time twice.
            let day = date(2026, change.0, change.1) - days_before.days();
            let start = (at(&TimeZone::UTC, day, 12 * 60) + second).seconds();
            let told = times(&zone(name), Recurrence::Hourly, Interval::of(Time(start), seconds));
            let mut told = told.iter().peekable();
            for hour in 0..300 {
                let wanted = Interval::of(Time(start + hour * 3_600), seconds);
                while told.next_if(|interval| interval.end < wanted.end).is_some() {}
                prop_assert!(told.peek().is_some_and(|peek| peek.start <= wanted.start), "{wanted:?} is left out");
            }
        }
    }
}
