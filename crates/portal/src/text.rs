//! Times, durations, numbers and names as texts for people.

use super::zone::Zone;
use service::AgreementView;

/// A dateTime as the visitor reads it.
pub(super) fn moment(date_time: &str) -> String {
    Zone::present().tell(date_time)
}

/// A second of the plan as a dateTime in UTC; empty beyond the year 9999.
pub(super) fn date_time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |at| at.to_string())
}

/// The second of a dateTime, rounded down.
pub(super) fn second_of(date_time: &str) -> Option<i64> {
    date_time.parse().ok().map(jiff::Timestamp::as_second)
}

/// A number of seconds as `1 d 2 h 3 min 4 s`, without the parts that are zero.
pub(super) fn duration(seconds: i64) -> String {
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(amount, _)| *amount != 0)
        .map(|(amount, unit)| format!("{amount} {unit}"))
        .collect();
    if parts.is_empty() {
        "0 s".to_owned()
    } else {
        parts.join(" ")
    }
}

/// The name of an agreement on the pages, also where it has none.
pub(super) fn name(agreement: &AgreementView) -> String {
    name_or(agreement.name.as_deref(), agreement.application.as_deref())
}

/// The name of a reservation, else its application, else that nodes are reserved.
pub(super) fn name_or(name: Option<&str>, application: Option<&str>) -> String {
    let name = name.filter(|name| !name.trim().is_empty());
    name.or(application).unwrap_or("Reserved nodes").to_owned()
}

/// `1 node`, `2 nodes`.
pub(super) fn nodes(count: u32) -> String {
    format!("{count} {}", if count == 1 { "node" } else { "nodes" })
}

/// `2 nodes for 1 h`.
pub(super) fn size(count: u32, seconds: i64) -> String {
    format!("{} for {}", nodes(count), duration(seconds))
}

/// Energy, to the thousandth of a kilowatt-hour.
#[expect(clippy::cast_precision_loss, reason = "watt-hours lie far below 2⁵³")]
pub(super) fn kilowatt_hours(watt_hours: i64) -> String {
    format!("{} kWh", watt_hours as f64 / 1e3)
}

/// A text with a capital at its beginning.
pub(super) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().to_string());
    format!("{first}{}", characters.as_str())
}

/// A text of the service with its seconds as durations and its times as people write them.
pub(super) fn plain_text(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut told: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let bare = word.trim_end_matches([',', ';', '.', ':', ')']);
        let rest = &word[bare.len()..];
        if ["second", "seconds"].contains(&bare)
            && let Some(seconds) = told.last().and_then(|number| number.parse::<i64>().ok())
        {
            told.pop();
            told.push(duration(seconds) + rest);
        } else if bare.parse::<jiff::Timestamp>().is_ok() {
            told.push(moment(bare) + rest);
        } else {
            told.push(word.to_owned());
        }
    }
    told.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_the_plan_are_written_as_date_times() {
        assert_eq!(date_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_time(i64::MAX), "");
    }

    #[test]
    fn durations_leave_out_what_is_zero() {
        for (seconds, words) in [
            (0, "0 s"),
            (59, "59 s"),
            (3_600, "1 h"),
            (5_430, "1 h 30 min 30 s"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), words);
        }
    }

    #[test]
    fn seconds_and_times_in_texts_become_readable() {
        for (text, words) in [
            (
                "3600 seconds later, to let another in",
                "1 h later, to let another in",
            ),
            ("after 60 seconds; then 1 second.", "after 1 min; then 1 s."),
            ("seconds of it", "seconds of it"),
            (
                "until 2026-11-21T10:00:00Z, then",
                "until Sat 21 Nov 2026, 10:00 UTC, then",
            ),
            ("", ""),
        ] {
            assert_eq!(plain_text(text), words);
        }
    }
}
