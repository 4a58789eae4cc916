//! xs:dateTime and xs:duration, exactly as XML Schema writes them.
//!
//! General date libraries take forms that the schema forbids (`+0100`, `P1W`) and refuse some that it allows
//! (`24:00:00`), so the lexical forms are checked here. A dateTime without a time zone is read as UTC.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Most digits of a number in a duration; keeps all arithmetic far from overflow.
const DIGITS_MAX: usize = 9;
/// The largest number of so many digits.
const NUMBER_MAX: i64 = 999_999_999;
/// The largest offset of a zone in minutes: of xs:dateTime, and of a date-time of RFC 3339.
const OFFSET_MAX: i64 = 14 * 60;
const RFC3339_OFFSET_MAX: i64 = 24 * 60 - 1;

/// Why a text is no dateTime or duration here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TimeError {
    /// Not of the form of xs:dateTime.
    #[error("a dateTime such as 2026-01-10T08:00:00Z or 2026-01-10T09:00:00+01:00 is expected")]
    DateTime,
    /// A day, hour, minute, second or offset that does not exist.
    #[error("the dateTime does not exist: {0} is out of range")]
    Range(&'static str),
    /// A year that needs more than four digits, or none at all.
    #[error("the year must be 0001 to 9999")]
    Year,
    /// More than nine digits of a second.
    #[error("at most nine digits of a second are taken")]
    Fraction,
    /// Not of the form of xs:duration.
    #[error("a duration such as PT1H30M or P2DT12H is expected")]
    Duration,
    /// A duration with numbers that are too long.
    #[error("numbers in a duration may have nine digits at most")]
    DurationTooLong,
}

/// An instant of xs:dateTime, to the nanosecond, on the time line of the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    seconds: i64,
    nanos: u32,
}

impl DateTime {
    /// The instant a number of seconds after 1970-01-01T00:00:00Z, kept between the years 0001 and 9999.
    pub fn from_seconds(seconds: i64) -> DateTime {
        DateTime {
            seconds: seconds.clamp(-62_135_596_800, 253_402_300_799),
            nanos: 0,
        }
    }

    /// The instant a number of microseconds after 1970-01-01T00:00:00Z, kept between the years 0001 and 9999.
    pub fn from_micros(micros: i64) -> DateTime {
        let second = DateTime::from_seconds(micros.div_euclid(1_000_000));
        // 0 to 999,999 thousand nanoseconds.
        let nanos = u32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap_or(0);
        DateTime { nanos, ..second }
    }

    /// The last whole second at or before it: the rounding for the end of a window.
    pub fn floor(self) -> i64 {
        self.seconds
    }

    /// The first whole second at or after it: the rounding for the start of a window.
    pub fn ceil(self) -> i64 {
        self.seconds + i64::from(self.nanos > 0)
    }

    /// The first whole microsecond at or after it.
    pub fn micros_ceil(self) -> i64 {
        let micros = i64::from(self.nanos.div_ceil(1_000));
        self.seconds.saturating_mul(1_000_000).saturating_add(micros)
    }

    /// This instant with a duration added as XML Schema does: months first, clamped to the month's length.
    /// None beyond the years 0001 to 9999.
    pub fn checked_add(self, duration: Duration) -> Option<DateTime> {
        let (year, month, day) = date_of_days(self.seconds.div_euclid(DAY));
        let months = year * 12 + (month - 1) + duration.months;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        if !(1..=9999).contains(&year) {
            return None;
        }
        let day = day.min(days_in_month(year, month));
        let nanos = duration.nanos + i128::from(self.nanos);
        let carried = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
        let seconds = days_to_date(year, month, day) * DAY + self.seconds.rem_euclid(DAY) + carried;
        let added = DateTime::from_seconds(seconds);
        let nanos = u32::try_from(nanos.rem_euclid(1_000_000_000)).ok()?;
        (added.seconds == seconds).then_some(DateTime { seconds, nanos })
    }
}

impl FromStr for DateTime {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<DateTime, TimeError> {
        DateTime::read(text, OFFSET_MAX)
    }
}

impl DateTime {
    /// Reads a date-time of RFC 3339, section 5.6, which allows larger offsets than XML Schema, and small letters. The zone may be
    /// left out.
    ///
    /// # Errors
    /// Where it is none, and for a leap second.
    pub fn of_rfc3339(text: &str) -> Result<DateTime, TimeError> {
        DateTime::read(&text.to_ascii_uppercase(), RFC3339_OFFSET_MAX)
    }

    fn read(text: &str, offset_max: i64) -> Result<DateTime, TimeError> {
        let mut rest = text;
        if let Some(year) = text.strip_prefix('-')
            && year.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(TimeError::Year);
        }
        if text.bytes().take_while(u8::is_ascii_digit).count() > 4 {
            return Err(TimeError::Year);
        }
        let year = take_number(&mut rest, 4, "-")?;
        let month = take_number(&mut rest, 2, "-")?;
        let day = take_number(&mut rest, 2, "T")?;
        let hour = take_number(&mut rest, 2, ":")?;
        let minute = take_number(&mut rest, 2, ":")?;
        let second = take_number(&mut rest, 2, "")?;
        let nanos = take_fraction(&mut rest)?;
        let offset = parse_offset(rest, offset_max)?;
        if year < 1 {
            return Err(TimeError::Year);
        }
        for (name, value, range) in [
            ("the month", month, 1..=12),
            ("the hour", hour, 0..=24),
            ("the minute", minute, 0..=59),
            ("the second", second, 0..=59),
        ] {
            if !range.contains(&value) {
                return Err(TimeError::Range(name));
            }
        }
        if !(1..=days_in_month(year, month)).contains(&day) {
            return Err(TimeError::Range("the day"));
        }
        if hour == 24 && (minute, second, nanos) != (0, 0, 0) {
            return Err(TimeError::Range("the hour"));
        }
        let seconds = days_to_date(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset;
        // The instant may lie in another year than its zone says.
        if DateTime::from_seconds(seconds).seconds != seconds {
            return Err(TimeError::Year);
        }
        Ok(DateTime { seconds, nanos })
    }
}

/// Takes exactly `digits` digits and the literal after them.
fn take_number(rest: &mut &str, digits: usize, then: &str) -> Result<i64, TimeError> {
    let found = rest.get(..digits).ok_or(TimeError::DateTime)?;
    if !found.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TimeError::DateTime);
    }
    *rest = rest[digits..].strip_prefix(then).ok_or(TimeError::DateTime)?;
    found.parse().map_err(|_| TimeError::DateTime)
}

/// Takes `.digits` if it is there, as nanoseconds.
fn take_fraction(rest: &mut &str) -> Result<u32, TimeError> {
    let Some(after) = rest.strip_prefix('.') else {
        return Ok(0);
    };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(TimeError::DateTime);
    }
    if digits > DIGITS_MAX {
        return Err(TimeError::Fraction);
    }
    let (digits, after) = after.split_at(digits);
    *rest = after;
    format!("{digits:0<9}").parse().map_err(|_| TimeError::Fraction)
}

/// The zone, in seconds: `Z`, an offset of at most so many minutes, or none, which is UTC.
fn parse_offset(rest: &str, minutes_max: i64) -> Result<i64, TimeError> {
    let (sign, mut rest) = match rest.as_bytes().first() {
        None => return Ok(0),
        Some(b'Z') if rest.len() == 1 => return Ok(0),
        Some(b'+') => (1, &rest[1..]),
        Some(b'-') => (-1, &rest[1..]),
        Some(_) => return Err(TimeError::DateTime),
    };
    let hours = take_number(&mut rest, 2, ":")?;
    let minutes = take_number(&mut rest, 2, "")?;
    if !rest.is_empty() {
        return Err(TimeError::DateTime);
    }
    if minutes > 59 || hours * 60 + minutes > minutes_max {
        return Err(TimeError::Range("the offset"));
    }
    Ok(sign * (hours * 3600 + minutes * 60))
}

/// The days from the first of a month to that of the next one.
fn days_in_month(year: i64, month: i64) -> i64 {
    days_to_date(year + month / 12, month % 12 + 1, 1) - days_to_date(year, month, 1)
}

/// Days from 1970-01-01 to a date. Years are counted from March, so that the leap day is the last of its year.
fn days_to_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

/// The date a number of days after 1970-01-01; the inverse of [`days_to_date`].
fn date_of_days(since_epoch: i64) -> (i64, i64, i64) {
    let shifted = since_epoch + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of_days(self.seconds.div_euclid(DAY));
        let of_day = self.seconds.rem_euclid(DAY);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        write_fraction(f, self.nanos)?;
        f.write_str("Z")
    }
}

fn write_fraction(f: &mut fmt::Formatter<'_>, nanos: u32) -> fmt::Result {
    if nanos == 0 {
        return Ok(());
    }
    write!(f, ".{}", format!("{nanos:09}").trim_end_matches('0'))
}

/// An xs:duration: months, and nanoseconds beside them, both of one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duration {
    months: i64,
    nanos: i128,
}

impl Duration {
    /// A number of seconds.
    pub fn from_seconds(seconds: i64) -> Duration {
        Duration {
            months: 0,
            nanos: i128::from(seconds) * 1_000_000_000,
        }
    }

    /// Whole seconds, rounded up; none where it has months, because their length is open.
    pub fn seconds(self) -> Option<i64> {
        if self.months != 0 {
            return None;
        }
        let part = self.nanos.rem_euclid(1_000_000_000) > 0;
        i64::try_from(self.nanos.div_euclid(1_000_000_000) + i128::from(part)).ok()
    }
}

impl FromStr for Duration {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Duration, TimeError> {
        let (sign, body) = match text.strip_prefix('-') {
            Some(body) => (-1, body),
            None => (1, text),
        };
        let body = body.strip_prefix('P').ok_or(TimeError::Duration)?;
        let (date, time) = body.split_once('T').unwrap_or((body, ""));
        if body.is_empty() || body.ends_with('T') {
            return Err(TimeError::Duration);
        }
        let ([years, months, days], _) = parse_duration_fields(date, ["Y", "M", "D"])?;
        let ([hours, minutes, seconds], nanos) = parse_duration_fields(time, ["H", "M", "S"])?;
        let whole = days * DAY + hours * 3600 + minutes * 60 + seconds;
        let nanos = i128::from(whole) * 1_000_000_000 + i128::from(nanos);
        let months = years * 12 + months;
        // As it is written it has to be read again.
        if months / 12 > NUMBER_MAX || whole / DAY > NUMBER_MAX {
            return Err(TimeError::DurationTooLong);
        }
        Ok(Duration {
            months: sign * months,
            nanos: i128::from(sign) * nanos,
        })
    }
}

/// Numbers each followed by its designator, in order, each at most once; of seconds their fraction, too, in nanoseconds.
fn parse_duration_fields(text: &str, designators: [&str; 3]) -> Result<([i64; 3], u32), TimeError> {
    let (mut values, mut nanos) = ([0; 3], 0);
    let mut rest = text;
    let mut next = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(TimeError::Duration);
        }
        if digits > DIGITS_MAX {
            return Err(TimeError::DurationTooLong);
        }
        let (number, after) = rest.split_at(digits);
        rest = after;
        let is_whole = !rest.starts_with('.');
        nanos = take_fraction(&mut rest).map_err(|_| TimeError::Duration)?;
        let found = designators[next..]
            .iter()
            .position(|known| rest.starts_with(known) && (is_whole || *known == "S"));
        let index = next + found.ok_or(TimeError::Duration)?;
        values[index] = number.parse().map_err(|_| TimeError::Duration)?;
        rest = &rest[1..];
        next = index + 1;
    }
    Ok((values, nanos))
}

impl PartialOrd for Duration {
    /// The partial order of XML Schema: durations with months are compared at four reference instants, and have
    /// no order where these disagree (one month and thirty days).
    fn partial_cmp(&self, other: &Duration) -> Option<Ordering> {
        if self.months == other.months {
            return Some(self.nanos.cmp(&other.nanos));
        }
        let starts = [
            days_to_date(1696, 9, 1),
            days_to_date(1697, 2, 1),
            days_to_date(1903, 3, 1),
            days_to_date(1903, 7, 1),
        ];
        let [first, others @ ..] = starts.map(|start| {
            let end = |duration: &Duration| {
                let (year, month, day) = date_of_days(start);
                let months = year * 12 + (month - 1) + duration.months;
                let day = days_to_date(months.div_euclid(12), months.rem_euclid(12) + 1, day);
                i128::from(day) * i128::from(DAY) * 1_000_000_000 + duration.nanos
            };
            end(self).cmp(&end(other))
        });
        others.iter().all(|other| *other == first).then_some(first)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.months < 0 || self.nanos < 0 {
            f.write_str("-")?;
        }
        f.write_str("P")?;
        let months = u128::from(self.months.unsigned_abs());
        let nanos = self.nanos.unsigned_abs();
        let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        for (value, designator) in [(months / 12, 'Y'), (months % 12, 'M'), (seconds / 86_400, 'D')] {
            if value > 0 {
                write!(f, "{value}{designator}")?;
            }
        }
        let of_day = seconds % 86_400;
        if of_day == 0 && nanos == 0 {
            let is_zero = months == 0 && seconds == 0;
            return f.write_str(if is_zero { "T0S" } else { "" });
        }
        f.write_str("T")?;
        for (value, designator) in [(of_day / 3600, 'H'), (of_day / 60 % 60, 'M')] {
            if value > 0 {
                write!(f, "{value}{designator}")?;
            }
        }
        if !of_day.is_multiple_of(60) || nanos > 0 {
            write!(f, "{}", of_day % 60)?;
            // A remainder of a thousand million fits.
            write_fraction(f, u32::try_from(nanos).unwrap_or(0))?;
            f.write_str("S")?;
        }
        Ok(())
    }
}

/// Values that are kept as the texts that documents have for them.
macro_rules! kept_as_text {
    ($($time:ty),*) => {$(
        impl Serialize for $time {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $time {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

kept_as_text!(DateTime, Duration);
