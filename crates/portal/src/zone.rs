//! The time zone of a visitor. Times are told in it, with UTC beside them, and forms are read in it.

use std::sync::OnceLock;

use axum::http::HeaderMap;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::cookies::cookie_of_request;

/// The cookie that keeps it: the name of the zone. The script sets it once from what the browser knows, and the settings page
/// sets it by hand.
pub(super) const COOKIE: &str = "bespeak_zone";

/// A time zone of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone(TimeZone);

tokio::task_local! {
    /// The zone of the request that is answered: every time on its page is told in it.
    static PRESENT: Zone;
}

impl Zone {
    /// The zone of the request that is answered; UTC outside of one.
    pub(super) fn present() -> Self {
        PRESENT.try_with(Self::clone).unwrap_or(Self::UTC)
    }

    /// Answers a request in this zone.
    pub(super) async fn scope<T>(self, answer: impl Future<Output = T>) -> T {
        PRESENT.scope(self, answer).await
    }

    /// Its rules.
    pub(super) fn rules(&self) -> TimeZone {
        self.0.clone()
    }

    /// Coordinated Universal Time: where nothing else is known.
    pub(super) const UTC: Self = Self(TimeZone::UTC);

    /// The zone with a name of the database, such as `Europe/Berlin`; None where there is none.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            // Names of one zone, which needs no database.
            "UTC" | "Etc/UTC" => Some(Self::UTC),
            name => TimeZone::get(name).ok().map(Self),
        }
    }

    /// The zone that the visitor's cookie names, or else UTC.
    pub(super) fn of_headers(headers: &HeaderMap) -> Self {
        cookie_of_request(headers, COOKIE)
            .and_then(Self::named)
            .unwrap_or(Self::UTC)
    }

    /// Its name in the database.
    pub(super) fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// A second of the plan in this zone; None beyond the year 9999.
    pub(super) fn at(&self, seconds: i64) -> Option<Zoned> {
        Some(Timestamp::from_second(seconds).ok()?.to_zoned(self.0.clone()))
    }

    /// The second of the plan at a time on a clock of this zone; None beyond the years of the calendar. A time that comes twice is
    /// the first one.
    pub(super) fn second_of(&self, clock: jiff::civil::DateTime) -> Option<i64> {
        let at = clock.to_zoned(self.0.clone()).ok()?;
        Some(at.timestamp().as_second())
    }

    /// Whether a clock of this zone tells a second of the plan: where a time comes twice, it tells the first one only.
    pub(super) fn tells(&self, seconds: i64) -> bool {
        let clock = self.at(seconds);
        clock.and_then(|at| self.second_of(at.datetime())) == Some(seconds)
    }

    /// A dateTime for people: `Thu 26 Nov 2026, 14:00 (13:00 UTC)`. Seconds are told where they are not zero, and the day of UTC
    /// where it is another one. Other texts are told as they are.
    pub(super) fn tell(&self, date_time: &str) -> String {
        let Ok(at) = date_time.parse::<Timestamp>() else {
            return date_time.to_owned();
        };
        let told = self.tell_here(date_time);
        if *self == Self::UTC {
            return format!("{told} UTC");
        }
        let (here, utc) = (at.to_zoned(self.0.clone()), at.to_zoned(TimeZone::UTC));
        let day = if utc.date() == here.date() {
            String::new()
        } else {
            utc.strftime("%a %-d %b, ").to_string()
        };
        format!("{told} ({day}{} UTC)", utc.strftime(clock_of(at)))
    }

    /// A dateTime for people without UTC, for tables and lists: each page names its zone once.
    pub(super) fn tell_here(&self, date_time: &str) -> String {
        let Ok(at) = date_time.parse::<Timestamp>() else {
            return date_time.to_owned();
        };
        let here = at.to_zoned(self.0.clone());
        format!(
            "{}, {}",
            here.strftime("%a %-d %b %Y"),
            here.strftime(clock_of(at))
        )
    }
}

/// How the time of an instant is written: with its seconds where they are not zero.
fn clock_of(at: Timestamp) -> &'static str {
    if at.as_second() % 60 == 0 {
        "%H:%M"
    } else {
        "%H:%M:%S"
    }
}

/// Entries of the database that are no zones of a place.
const NO_ZONES: [&str; 3] = ["Factory", "localtime", "posixrules"];

/// The names of all zones, in order.
pub(super) fn zone_names() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let all = jiff::tz::db().available().map(|name| name.to_string());
        let mut names: Vec<_> = all.filter(|name| !NO_ZONES.contains(&name.as_str())).collect();
        names.sort();
        names
    })
}

/// The zone in which the visitor's days begin.
pub(super) fn present_rules() -> TimeZone {
    Zone::present().rules()
}

/// A second in a format of strftime; empty beyond the year 9999.
pub(super) fn write_in_zone(at: i64, zone: &TimeZone, format: &str) -> String {
    let at = Timestamp::from_second(at);
    at.map_or_else(
        |_| String::new(),
        |at| at.to_zoned(zone.clone()).strftime(format).to_string(),
    )
}

/// A second in a format of strftime, in the visitor's zone.
pub(super) fn write_here(at: i64, format: &str) -> String {
    write_in_zone(at, &present_rules(), format)
}

/// The day of a second.
pub(super) fn day_in_zone(at: i64, zone: &TimeZone) -> Date {
    let at = Timestamp::from_second(at).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned(zone.clone()).date()
}

/// The second at which a clock shows a time of a day, or the next one where clocks skip that.
pub(super) fn second_in_zone(day: Date, time: Time, zone: &TimeZone) -> i64 {
    let at = day.to_datetime(time).to_zoned(zone.clone());
    at.map_or(i64::MAX, |at| at.timestamp().as_second())
}

/// The values of a date and a time field in a zone for a second of the plan.
pub(super) fn date_and_time_in_zone(at: i64, zone: &Zone) -> (String, String) {
    let Some(at) = zone.at(at) else {
        return Default::default();
    };
    (at.date().to_string(), at.time().to_string())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, header};

    use super::*;

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    #[test]
    fn times_are_told_in_the_zone_with_utc_beside_them() {
        for (zone, date_time, told) in [
            (Zone::UTC, "2026-11-26T13:00:00Z", "Thu 26 Nov 2026, 13:00 UTC"),
            (
                Zone::UTC,
                "2026-11-26T13:00:05.25Z",
                "Thu 26 Nov 2026, 13:00:05 UTC",
            ),
            (
                berlin(),
                "2026-11-26T13:00:00Z",
                "Thu 26 Nov 2026, 14:00 (13:00 UTC)",
            ),
            (
                berlin(),
                "2026-07-01T22:30:00Z",
                "Thu 2 Jul 2026, 00:30 (Wed 1 Jul, 22:30 UTC)",
            ),
            (berlin(), "never", "never"),
        ] {
            assert_eq!(zone.tell(date_time), told);
        }
        assert_eq!(
            berlin().tell_here("2026-07-01T22:30:07Z"),
            "Thu 2 Jul 2026, 00:30:07"
        );
        assert_eq!(Zone::UTC.tell_here("never"), "never");
    }

    #[test]
    fn a_zone_is_known_by_its_name_and_by_nothing_else() {
        assert_eq!(Zone::named("Etc/UTC"), Some(Zone::UTC));
        for wrong in ["", "Berlin", "../../etc/passwd", "<b>"] {
            assert_eq!(Zone::named(wrong), None, "{wrong}");
        }
        let headers = |cookie| HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(cookie))]);
        let kept = headers("a=1; bespeak_zone=Europe/Berlin");
        assert_eq!(Zone::of_headers(&kept), berlin());
        for other in ["bespeak_zone=Mars", "xbespeak_zone=Europe/Berlin", ""] {
            assert_eq!(Zone::of_headers(&headers(other)), Zone::UTC, "{other}");
        }
        assert!(zone_names().iter().any(|name| name == "Europe/Berlin"));
        assert!(zone_names().iter().all(|name| !NO_ZONES.contains(&name.as_str())));
    }
}
