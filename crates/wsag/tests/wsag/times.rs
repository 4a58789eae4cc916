//! xs:dateTime and xs:duration by the letter.

use std::cmp::Ordering;

use crate::support::Chance;
use wsag::time::{DateTime, Duration, TimeError};

#[test]
fn date_times_are_read_to_the_second() {
    for (text, floor, ceil) in [
        ("1970-01-01T00:00:00Z", 0, 0),
        ("1970-01-01T00:00:00.000000001Z", 0, 1),
        ("1969-12-31T23:59:59.5Z", -1, 0),
        ("2026-01-10T08:00:00Z", 1_768_032_000, 1_768_032_000),
        ("2026-01-10T09:00:00+01:00", 1_768_032_000, 1_768_032_000),
        ("2026-01-09T18:00:00-14:00", 1_768_032_000, 1_768_032_000),
        ("2026-01-09T24:00:00Z", 1_768_003_200, 1_768_003_200),
        ("2024-02-29T00:00:00Z", 1_709_164_800, 1_709_164_800),
        ("2000-02-29T12:00:00-00:00", 951_825_600, 951_825_600),
        ("0001-01-01T00:00:00Z", -62_135_596_800, -62_135_596_800),
        ("9999-12-31T23:59:59Z", 253_402_300_799, 253_402_300_799),
        ("2024-02-29T00:00:00", 1_709_164_800, 1_709_164_800),
        ("2024-02-29T00:00:00.5", 1_709_164_800, 1_709_164_801),
        ("0001-01-01T14:00:00+14:00", -62_135_596_800, -62_135_596_800),
        ("9999-12-31T09:59:59-14:00", 253_402_300_799, 253_402_300_799),
    ] {
        let parsed: DateTime = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((parsed.floor(), parsed.ceil()), (floor, ceil), "{text}");
    }
}

#[test]
fn what_is_no_instant_is_refused() {
    for (text, error) in [
        ("2026-01-10T08:00:00+0100", TimeError::DateTime),
        ("2026-01-10T08:00:00+01", TimeError::DateTime),
        ("2026-01-10T08:00:00z", TimeError::DateTime),
        ("2026-01-10 08:00:00Z", TimeError::DateTime),
        ("2026-01-10T08:00Z", TimeError::DateTime),
        ("2026-1-10T08:00:00Z", TimeError::DateTime),
        ("2026-01-10", TimeError::DateTime),
        ("2026-01-10T08:00:00.Z", TimeError::DateTime),
        ("2026-01-10T08:00:00Zx", TimeError::DateTime),
        ("", TimeError::DateTime),
        ("now", TimeError::DateTime),
        ("２０２６-01-10T08:00:00Z", TimeError::DateTime),
        ("2026-13-10T08:00:00Z", TimeError::Range("the month")),
        ("2026-00-10T08:00:00Z", TimeError::Range("the month")),
        ("2026-02-29T08:00:00Z", TimeError::Range("the day")),
        ("1900-02-29T08:00:00Z", TimeError::Range("the day")),
        ("2026-04-31T08:00:00Z", TimeError::Range("the day")),
        ("2026-01-00T08:00:00Z", TimeError::Range("the day")),
        ("2026-01-10T24:00:01Z", TimeError::Range("the hour")),
        ("2026-01-10T25:00:00Z", TimeError::Range("the hour")),
        ("2026-01-10T08:60:00Z", TimeError::Range("the minute")),
        ("2026-01-10T08:00:60Z", TimeError::Range("the second")),
        ("2026-01-10T08:00:00+14:01", TimeError::Range("the offset")),
        ("2026-01-10T08:00:00+01:60", TimeError::Range("the offset")),
        ("0000-01-10T08:00:00Z", TimeError::Year),
        ("0001-01-01T00:00:00+00:01", TimeError::Year),
        ("0001-01-01T13:59:59+14:00", TimeError::Year),
        ("9999-12-31T23:59:59-00:01", TimeError::Year),
        ("9999-12-31T10:00:00-14:00", TimeError::Year),
        ("9999-12-31T24:00:00Z", TimeError::Year),
        ("-0044-03-15T08:00:00Z", TimeError::Year),
        ("12026-01-10T08:00:00Z", TimeError::Year),
        ("2026-01-10T08:00:00.1234567891Z", TimeError::Fraction),
    ] {
        assert_eq!(text.parse::<DateTime>(), Err(error), "{text}");
    }
}

#[test]
fn json_may_have_larger_offsets_and_small_letters() {
    for (text, floor) in [
        ("2026-01-11T07:59:00+23:59", 1_768_032_000),
        ("2026-01-09t08:01:00-23:59", 1_768_032_000),
        ("2026-01-10t08:00:00z", 1_768_032_000),
    ] {
        let parsed = DateTime::of_rfc3339(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed.floor(), floor, "{text}");
    }
    let beyond = DateTime::of_rfc3339("2026-01-10T08:00:00+24:00");
    assert_eq!(beyond, Err(TimeError::Range("the offset")));
}

#[test]
fn every_day_of_five_centuries_is_written_as_it_is_read() {
    let mut day: i64 = "1800-01-01T00:00:00Z".parse::<DateTime>().unwrap().floor();
    let mut last = String::new();
    for _ in 0..190_000 {
        let instant = DateTime::from_seconds(day + 3_661);
        let text = instant.to_string();
        assert_eq!(text.parse::<DateTime>(), Ok(instant), "{text}");
        assert!(text > last, "{text} comes after {last}");
        last = text;
        day += 86_400;
    }
    assert!(last.starts_with("2320-"), "{last}");
}

#[test]
fn whatever_instant_is_read_is_written_so_that_it_is_read_again() {
    let mut chance = Chance(7);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..50_000 {
        let year = *chance.pick(&["0000", "0001", "0002", "1970", "2024", "9998", "9999"]);
        let day = *chance.pick(&["01-01", "01-02", "02-29", "12-30", "12-31"]);
        let zone = match chance.below(4) {
            0 => "Z".to_owned(),
            1 => "+14:00".to_owned(),
            2 => "-14:00".to_owned(),
            _ => format!(
                "{}{:02}:{:02}",
                chance.pick(&["+", "-"]),
                chance.below(15),
                chance.below(60)
            ),
        };
        let fraction = *chance.pick(&["", ".0", ".000000001", ".999999999"]);
        let (hour, minute, second) = (chance.below(25), chance.below(60), chance.below(60));
        let text = format!("{year}-{day}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}");
        let Ok(instant) = text.parse::<DateTime>() else {
            refused += 1;
            continue;
        };
        assert_eq!(instant.to_string().parse(), Ok(instant), "{text}");
        read += 1;
    }
    assert!(read > 10_000 && refused > 1_000, "{read} and {refused}");
}

#[test]
fn durations_are_read_and_written() {
    for (text, seconds, again) in [
        ("PT1H", Some(3600), "PT1H"),
        ("P1DT2H3M4S", Some(93_784), "P1DT2H3M4S"),
        ("PT90M", Some(5400), "PT1H30M"),
        ("PT0.25S", Some(1), "PT0.25S"),
        ("-PT90S", Some(-90), "-PT1M30S"),
        ("PT0S", Some(0), "PT0S"),
        ("P0Y", Some(0), "PT0S"),
        ("P1Y2M", None, "P1Y2M"),
        ("P400D", Some(34_560_000), "P400D"),
    ] {
        let parsed: Duration = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed.seconds(), seconds, "{text}");
        assert_eq!(parsed.to_string(), again, "{text}");
    }
    for text in [
        "", "P", "PT", "P1W", "1H", "PT1", "PT1H1H", "PT1M1H", "P1H", "P1S", "PT1.S", "PT.5S", "PT1.5M",
        "P-1D", "pt1h", "P1DT", "P1D2", "PT1é",
    ] {
        assert!(text.parse::<Duration>().is_err(), "{text:?}");
    }
    // What is written has at most nine digits, too: it is read again.
    for text in [
        "PT1234567890S",
        "P999999999Y12M",
        "P999999999DT24H",
        "-P999999999DT1440M",
    ] {
        assert_eq!(
            text.parse::<Duration>(),
            Err(TimeError::DurationTooLong),
            "{text}"
        );
    }
    for text in ["P999999999Y11M", "P999999999DT23H59M59.999S"] {
        let parsed: Duration = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed.to_string().parse(), Ok(parsed), "{text}");
    }
}

#[test]
fn durations_have_the_partial_order_of_xml_schema() {
    let compare = |one: &str, two: &str| {
        one.parse::<Duration>()
            .unwrap()
            .partial_cmp(&two.parse().unwrap())
    };
    assert_eq!(compare("PT60S", "PT1M"), Some(Ordering::Equal));
    assert_eq!(compare("P1M", "P27D"), Some(Ordering::Greater));
    assert_eq!(compare("P1M", "P28D"), None);
    assert_eq!(compare("P1M", "P31D"), None);
    assert_eq!(compare("P1M", "P32D"), Some(Ordering::Less));
    assert_eq!(compare("P1Y", "P12M"), Some(Ordering::Equal));
    assert_eq!(compare("P1Y", "P367D"), Some(Ordering::Less));
}

#[test]
fn months_are_added_as_xml_schema_does() {
    let add = |instant: &str, duration: &str| {
        instant
            .parse::<DateTime>()
            .unwrap()
            .checked_add(duration.parse().unwrap())
            .map(|sum| sum.to_string())
    };
    assert_eq!(
        add("2026-01-31T10:00:00Z", "P1M").as_deref(),
        Some("2026-02-28T10:00:00Z")
    );
    assert_eq!(
        add("2023-11-30T10:00:00.5Z", "P3MT0.5S").as_deref(),
        Some("2024-02-29T10:00:01Z")
    );
    assert_eq!(
        add("2026-01-01T00:00:00Z", "-P1Y").as_deref(),
        Some("2025-01-01T00:00:00Z")
    );
    assert_eq!(add("9999-12-31T00:00:00Z", "P1D"), None);
}
