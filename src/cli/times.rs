//! Times as people write them: `16:00`, `tomorrow 8:00`, `now+2h`, in the time zone of the user.

use std::sync::LazyLock;

use jiff::civil::{Date, DateTime as LocalTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use wsag::time::DateTime;

use super::Failure;

/// What the help of an option with a time says.
pub(super) const FORMS: &str = "\
A time is 2026-12-01T18:00:00Z or with another offset, or in your time zone (TZ) 2026-12-01T18:00, 2026-12-01, today 18:00, tomorrow,
tomorrow 8:00 or 18:00, which is the next time that the clock shows it; or now, or now+2h.";

/// The time zone of the user: that of `TZ`, else of the machine, else UTC as the C library has it.
static ZONE: LazyLock<Result<TimeZone, String>> = LazyLock::new(|| match TimeZone::try_system() {
    Ok(zone) => Ok(zone),
    Err(_) if std::env::var_os("TZ").is_none() => Ok(TimeZone::UTC),
    Err(why) => Err(format!(
        "the time zone that TZ names is not known ({why}); write the time with its offset, such as 2026-12-01T18:00:00Z"
    )),
});

/// The second in which the command began: two times of it that are counted from now lie as far apart as they say.
static NOW: LazyLock<Timestamp> = LazyLock::new(|| {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
});

/// Reads a time.
pub(super) fn parse_time(text: &str) -> Result<DateTime, String> {
    let at = parse_time_in_zone(text.trim(), *NOW, ZONE.as_ref())?;
    at.to_string().parse().map_err(|_| TOO_FAR.to_owned())
}

/// Refuses two times of which the second is not later than the first, each with its option.
pub(super) fn check_times_in_order(
    (first, from): (&str, Option<DateTime>),
    (second, until): (&str, Option<DateTime>),
) -> Result<(), Failure> {
    match from.zip(until) {
        Some((from, until)) if until <= from => {
            let zone = ZONE.as_ref().cloned().unwrap_or(TimeZone::UTC);
            let [from, until] = [from, until].map(|at| time_in_zone_on_terminal(at, &zone));
            Err(Failure::Usage(format!(
                "{second} is {until}, and {first} is {from}: {second} has to be later. A time of the day alone is the next one: \
                 write 'today' or 'tomorrow' before it"
            )))
        }
        _ => Ok(()),
    }
}

/// A time on the clock of a time zone, with its offset.
fn time_in_zone_on_terminal(at: DateTime, zone: &TimeZone) -> String {
    match Timestamp::from_second(at.floor()) {
        Ok(second) => second
            .to_zoned(zone.clone())
            .strftime("%Y-%m-%dT%H:%M:%S%:z")
            .to_string(),
        Err(_) => at.to_string(),
    }
}

/// A time that cannot be said.
const TOO_FAR: &str = "a year from 1 to 9999 is expected";

/// Reads a time as it is meant at a moment in a time zone.
fn parse_time_in_zone(
    text: &str,
    now: Timestamp,
    zone: Result<&TimeZone, &String>,
) -> Result<Timestamp, String> {
    let expected = || {
        format!(
            "{text:?} is no time; 2026-12-01T18:00:00Z, 2026-12-01T18:00, 'tomorrow 8:00', 18:00 or now+2h is one"
        )
    };
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Some(later) = text.strip_prefix("now") {
        let seconds = match later.strip_prefix('+') {
            Some(length) => parse_duration(length.trim())?,
            None if later.is_empty() => 0,
            None => return Err(expected()),
        };
        let later = i64::try_from(seconds).map(SignedDuration::from_secs);
        let at = later.ok().and_then(|later| now.checked_add(later).ok());
        return at.ok_or_else(|| TOO_FAR.to_owned());
    }
    let (day, rest) = text.split_once([' ', 'T']).unwrap_or((text, "0:00"));
    let zone = || zone.map_err(Clone::clone);
    let day_from_now = |days: i64| {
        let date = now.to_zoned(zone()?.clone()).date().checked_add(days.days());
        date.map_err(|_| TOO_FAR.to_owned())
    };
    if let Some(clock) = parse_clock_time(text) {
        let today = day_from_now(0)?.to_datetime(clock);
        // Of a time that today has twice, or not at all, it is asked whether the later meaning is over.
        let last = zone()?.to_ambiguous_timestamp(today).later();
        let is_ahead = last.is_ok_and(|last| last > now);
        let days = i64::from(!is_ahead);
        return instant_of_local_time(day_from_now(days)?.to_datetime(clock), zone()?);
    }
    let date = match day {
        "today" => day_from_now(0)?,
        "tomorrow" => day_from_now(1)?,
        day if day.len() == "2026-12-01".len() => day.parse::<Date>().map_err(|_| expected())?,
        _ => return Err(expected()),
    };
    instant_of_local_time(
        date.to_datetime(parse_clock_time(rest.trim()).ok_or_else(expected)?),
        zone()?,
    )
}

/// A time of the day: 8:00, 16:00 or 16:00:30.
fn parse_clock_time(text: &str) -> Option<Time> {
    let is_one = text.contains(':') && text.bytes().all(|c| c.is_ascii_digit() || c == b':');
    let full = if text.find(':') == Some(1) {
        format!("0{text}")
    } else {
        text.to_owned()
    };
    full.parse().ok().filter(|_| is_one)
}

/// The instant of a local time; one that there is twice, or not at all, is refused.
fn instant_of_local_time(local: LocalTime, zone: &TimeZone) -> Result<Timestamp, String> {
    let name = zone.iana_name().unwrap_or("your time zone");
    let meant = zone.to_ambiguous_timestamp(local);
    match meant.offset() {
        AmbiguousOffset::Unambiguous { .. } => meant.unambiguous().map_err(|_| TOO_FAR.to_owned()),
        AmbiguousOffset::Gap { before, after } => Err(format!(
            "there is no {local} in {name}: the clocks go from the offset {before} to {after} then"
        )),
        AmbiguousOffset::Fold { before, after } => Err(format!(
            "{local} is there twice in {name}: write {local}{} or {local}{}",
            offset_of_given_time(before),
            offset_of_given_time(after)
        )),
    }
}

/// An offset as a time has it.
fn offset_of_given_time(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

/// Reads a duration in seconds.
pub(super) fn parse_duration(text: &str) -> Result<u64, String> {
    let expected = || "a duration such as 90s, 30m, 2h or 1h30m is expected".to_owned();
    let mut seconds = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
        let amount: u64 = rest[..end].parse().map_err(|_| expected())?;
        let unit = match rest[end..].chars().next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            _ => return Err(expected()),
        };
        seconds = amount
            .checked_mul(unit)
            .and_then(|part| seconds.checked_add(part))
            .ok_or_else(expected)?;
        rest = &rest[end + 1..];
    }
    if seconds == 0 {
        return Err(expected());
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central Europe as POSIX writes it, so that no data of the machine is needed.
    fn central_europe() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn at(text: &str, now: &str) -> Result<String, String> {
        let zone = central_europe();
        parse_time_in_zone(text, now.parse().unwrap(), Ok(&zone)).map(|at| at.to_string())
    }

    #[test]
    fn times_are_read_in_the_time_zone_of_the_user() {
        // 17:30 in the evening there.
        let now = "2026-11-24T16:30:00Z";
        for (text, instant) in [
            ("2026-12-01T18:00:00Z", "2026-12-01T18:00:00Z"),
            ("2026-12-01T18:00:00.5+05:30", "2026-12-01T12:30:00.5Z"),
            ("2026-12-01T18:00", "2026-12-01T17:00:00Z"),
            ("2026-07-01 18:00:30", "2026-07-01T16:00:30Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("now", now),
            ("now+1h30m", "2026-11-24T18:00:00Z"),
            ("18:00", "2026-11-24T17:00:00Z"),
            ("17:30", "2026-11-25T16:30:00Z"),
            ("8:00", "2026-11-25T07:00:00Z"),
            ("today 8:00", "2026-11-24T07:00:00Z"),
            ("tomorrow", "2026-11-24T23:00:00Z"),
            ("tomorrow 8:00", "2026-11-25T07:00:00Z"),
        ] {
            assert_eq!(at(text, now).as_deref(), Ok(instant), "{text}");
        }
        for wrong in [
            "",
            "noon",
            "now-1h",
            "now+2",
            "25:00",
            "8",
            "tomorrow at 8",
            "2026-02-30",
            "1 day",
            "12-01",
            "now+999999999999d",
        ] {
            assert!(at(wrong, now).is_err(), "{wrong}");
        }
        // Late in the evening in UTC it is tomorrow there already.
        assert_eq!(
            at("tomorrow", "2026-11-24T23:30:00Z").as_deref(),
            Ok("2026-11-25T23:00:00Z")
        );
    }

    #[test]
    fn a_local_time_that_is_there_twice_or_not_at_all_is_refused_with_the_reason() {
        let winter = "2026-01-15T12:00:00Z";
        let twice = at("2026-10-25T02:30", winter).unwrap_err();
        assert!(
            twice.contains("2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00"),
            "{twice}"
        );
        let never = at("2026-03-29T02:30", winter).unwrap_err();
        assert!(never.contains("there is no 2026-03-29T02:30:00"), "{never}");
        // The evening before, in the hour that is there twice, and after it.
        assert!(at("2:30", "2026-10-24T20:00:00Z").is_err());
        assert!(at("2:30", "2026-10-25T00:40:00Z").is_err());
        assert_eq!(
            at("2:30", "2026-10-25T05:00:00Z").as_deref(),
            Ok("2026-10-26T01:30:00Z")
        );
    }

    #[test]
    fn times_in_the_wrong_order_are_refused_with_both_times() {
        let read = |text: &str| {
            at(text, "2026-11-24T15:00:00Z")
                .unwrap()
                .parse::<DateTime>()
                .unwrap()
        };
        // At 16:00 there: the next 15:00 is that of tomorrow, and the next 19:00 that of today.
        let check = |from, until| {
            let checked =
                check_times_in_order(("--after", Some(read(from))), ("--before", Some(read(until))));
            checked.map_err(|why| why.to_string())
        };
        let why = check("15:00", "19:00").unwrap_err();
        assert!(
            why.contains("--before has to be later") && why.contains("'today'"),
            "{why}"
        );
        assert_eq!(check("today 15:00", "19:00"), Ok(()));
        assert!(check("19:00", "19:00").is_err());
        let told = time_in_zone_on_terminal(read("15:00"), &central_europe());
        assert_eq!(told, "2026-11-25T15:00:00+01:00");
        assert!(check_times_in_order(("--after", None), ("--before", Some(read("19:00")))).is_ok());
    }

    #[test]
    fn without_a_known_time_zone_only_instants_are_read() {
        let why = "TZ names none".to_owned();
        let read = |text| parse_time_in_zone(text, Timestamp::UNIX_EPOCH, Err(&why)).map(|at| at.to_string());
        assert_eq!(read("now+2h").as_deref(), Ok("1970-01-01T02:00:00Z"));
        assert!(read("2026-12-01T18:00:00Z").is_ok());
        for local in ["18:00", "tomorrow", "2026-12-01"] {
            assert_eq!(read(local), Err(why.clone()), "{local}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration("90s"), Ok(90));
        assert_eq!(parse_duration("1d2h30m"), Ok(95_400));
        for wrong in [
            "",
            "0s",
            "2",
            "h",
            "2 h",
            "-1h",
            "99999999999999999999d",
            "999999999999999999d",
            "1ü",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
