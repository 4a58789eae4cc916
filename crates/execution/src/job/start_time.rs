//! When a job began, and how long it has really run: the wall time may be stepped meanwhile.

use domain::clock::{Clock, Micros};
use serde::{Deserialize, Serialize};

/// When a job began, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartTime {
    /// In wall time.
    pub(crate) at: Micros,
    /// In microseconds since the machine's start; none in records that were written before there was this.
    pub(crate) since_boot: Option<Micros>,
}

impl StartTime {
    /// A job that begins now.
    pub(crate) fn now(clock: &Clock) -> Self {
        Self {
            at: clock.micros(),
            since_boot: Some(clock.since_boot()),
        }
    }

    /// The start of a job of which the run time was not measured.
    pub(crate) fn unseen(self) -> Self {
        Self {
            since_boot: None,
            ..self
        }
    }

    /// The end of a job that has ended now: its begin plus the time that it has really run.
    pub(crate) fn until(self, now: Self) -> Micros {
        match self.since_boot.zip(now.since_boot) {
            Some((began, ended)) => self.at + (ended - began).max(0),
            None => now.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Micros = 3_600_000_000;

    #[test]
    fn a_run_time_is_what_has_passed_however_the_clock_was_stepped() {
        for by in [-HOUR, 0, HOUR] {
            let clock = Clock::standing_at(10 * HOUR);
            let began = StartTime::now(&clock);
            clock.set(10 * HOUR + 7);
            clock.step(by);
            let now = StartTime::now(&clock);
            assert_eq!(began.until(now) - began.at, 7, "stepped by {by}");
            assert_eq!(began.unseen().until(now), 10 * HOUR + 7 + by);
        }
    }

    #[test]
    fn a_record_without_a_measured_start_is_read() {
        let began: StartTime = serde_json::from_str(r#"{ "at": 17 }"#).unwrap();
        assert_eq!((began.at, began.since_boot), (17, None));
    }
}
