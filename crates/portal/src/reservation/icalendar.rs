//! Calendars as text (RFC 5545): events at times in UTC.

use crate::text;

/// The longest line, in octets and without its end.
const LINE_MAX: usize = 75;

/// An event of a calendar.
pub(crate) struct Event {
    /// Names it everywhere and for ever.
    pub(crate) uid: String,
    /// Grows with each change.
    pub(crate) sequence: i64,
    /// Seconds since the epoch.
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) status: Status,
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) address: String,
}

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Tentative,
    Confirmed,
    Cancelled,
}

/// A calendar with a name, as it is at `now` (seconds since the epoch).
pub(crate) fn write_icalendar(name: &str, events: &[Event], now: i64) -> String {
    let mut lines = IcalendarLines(String::new());
    lines.add("BEGIN", "VCALENDAR");
    lines.add("VERSION", "2.0");
    lines.add("PRODID", "-//Bespeak//Reservations//EN");
    lines.add("CALSCALE", "GREGORIAN");
    lines.add("METHOD", "PUBLISH");
    lines.add("X-WR-CALNAME", &icalendar_text(name));
    for event in events {
        lines.add("BEGIN", "VEVENT");
        lines.add("UID", &icalendar_text(&event.uid));
        lines.add("DTSTAMP", &icalendar_time(now));
        lines.add("DTSTART", &icalendar_time(event.start));
        lines.add("DTEND", &icalendar_time(event.end));
        lines.add("SEQUENCE", &event.sequence.to_string());
        let status = match event.status {
            Status::Tentative => "TENTATIVE",
            Status::Confirmed => "CONFIRMED",
            Status::Cancelled => "CANCELLED",
        };
        lines.add("STATUS", status);
        lines.add("SUMMARY", &icalendar_text(&event.summary));
        lines.add("DESCRIPTION", &icalendar_text(&event.description));
        lines.add("URL", &event.address);
        lines.add("END", "VEVENT");
    }
    lines.add("END", "VCALENDAR");
    lines.0
}

/// Lines that end as they have to, and go on on the next one where they are too long.
struct IcalendarLines(String);

impl IcalendarLines {
    fn add(&mut self, name: &str, value: &str) {
        let mut length = 0;
        for one in name.chars().chain([':']).chain(value.chars()) {
            if length + one.len_utf8() > LINE_MAX {
                self.0.push_str("\r\n ");
                length = 1;
            }
            self.0.push(one);
            length += one.len_utf8();
        }
        self.0.push_str("\r\n");
    }
}

/// A text as a value: no control characters, and what means something elsewhere is marked.
fn icalendar_text(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '\\' | ';' | ',' => value.extend(['\\', one]),
            '\n' => value.push_str("\\n"),
            other if other.is_control() => {}
            other => value.push(other),
        }
    }
    value
}

/// A second in UTC: `20261121T100000Z`.
fn icalendar_time(second: i64) -> String {
    let mut value = String::new();
    for character in text::date_time(second)
        .chars()
        .filter(|character| !matches!(character, '-' | ':'))
    {
        value.push(character);
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The values of the properties of a name, as a strict reader of RFC 5545 that knows nothing of the writer finds them.
    fn read(text: &str, wanted: &str) -> Vec<String> {
        assert!(text.ends_with("\r\n"), "the last line ends, too");
        let lines: Vec<&str> = text.strip_suffix("\r\n").unwrap().split("\r\n").collect();
        let mut unfolded: Vec<String> = Vec::new();
        for line in lines {
            assert!(line.len() <= 75, "{} octets: {line}", line.len());
            assert!(!line.contains(['\r', '\n']), "{line:?}");
            match line.strip_prefix(' ') {
                Some(more) => unfolded.last_mut().expect("something to go on").push_str(more),
                None => unfolded.push(line.to_owned()),
            }
        }
        let values = unfolded.iter().filter_map(|line| {
            let (name, value) = line.split_once(':').expect("a name and a value");
            assert!(
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-'),
                "{name}"
            );
            (name == wanted).then(|| value.to_owned())
        });
        values.collect()
    }

    fn unescaped(value: &str) -> String {
        let mut text = String::new();
        let mut rest = value.chars();
        while let Some(one) = rest.next() {
            text.push(match one {
                '\\' => match rest.next().expect("something is marked") {
                    'n' | 'N' => '\n',
                    marked @ ('\\' | ';' | ',') => marked,
                    other => panic!("{other} is marked in {value}"),
                },
                ';' | ',' => panic!("{one} is not marked in {value}"),
                other => other,
            });
        }
        text
    }

    fn event(summary: &str, sequence: i64) -> Event {
        Event {
            uid: "1@bespeak".to_owned(),
            sequence,
            start: 0,
            end: 3_600,
            status: Status::Confirmed,
            summary: summary.to_owned(),
            description: summary.to_owned(),
            address: "http://here/portal".to_owned(),
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back_as_it_was_without_control_characters(text in any::<String>(), sequence in 0_i64..=i64::MAX) {
            let written = write_icalendar(&text, &[event(&text, sequence)], 60);
            let shown: String = text.chars().filter(|character| *character == '\n' || !character.is_control()).collect();
            for name in ["SUMMARY", "DESCRIPTION", "X-WR-CALNAME"] {
                let values = read(&written, name);
                prop_assert_eq!(values.iter().map(|value| unescaped(value)).collect::<Vec<_>>(), vec![shown.clone()]);
            }
            prop_assert_eq!(read(&written, "SEQUENCE"), vec![sequence.to_string()]);
            prop_assert_eq!(read(&written, "BEGIN"), vec!["VCALENDAR", "VEVENT"]);
            prop_assert_eq!(read(&written, "END"), vec!["VEVENT", "VCALENDAR"]);
        }
    }

    #[test]
    fn times_are_in_utc() {
        let written = write_icalendar("", &[event("x", 1)], 1_764_000_000);
        assert_eq!(read(&written, "DTSTART"), ["19700101T000000Z"]);
        assert_eq!(read(&written, "DTEND"), ["19700101T010000Z"]);
        assert_eq!(read(&written, "DTSTAMP"), ["20251124T160000Z"]);
    }
}
