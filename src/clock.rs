//! The one clock. Everything that depends on the present takes it as an argument, so that a test can turn it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use scheduler::Time;

/// Microseconds since the Unix epoch: the unit of everything that is recorded as it happened.
pub type Micros = i64;

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;

/// Tells the time: the system's, or one that a test turns.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    set: Option<Arc<AtomicI64>>,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands at `now` until [`Clock::set`] turns it.
    pub fn standing_at(now: Micros) -> Self {
        Self {
            set: Some(Arc::new(AtomicI64::new(now))),
        }
    }

    /// Turns a standing clock; the system's clock is not ours to turn, and stays as it is.
    pub fn set(&self, now: Micros) {
        if let Some(set) = &self.set {
            set.store(now, Ordering::SeqCst);
        }
    }

    /// Microseconds since the Unix epoch.
    pub fn micros(&self) -> Micros {
        match &self.set {
            Some(set) => set.load(Ordering::SeqCst),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
        }
    }

    /// The current second, as the planner counts.
    pub fn now(&self) -> Time {
        second_of(self.micros())
    }
}

/// The second that an instant in microseconds lies in.
pub fn second_of(micros: Micros) -> Time {
    Time(micros.div_euclid(MICROS_PER_SECOND))
}

/// The first second that begins at or after an instant in microseconds.
pub fn second_after(micros: Micros) -> Time {
    Time(-(-micros).div_euclid(MICROS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_round_to_the_second_they_lie_in_and_to_the_one_after() {
        for (micros, within, after) in [
            (0, 0, 0),
            (1, 0, 1),
            (999_999, 0, 1),
            (1_000_000, 1, 1),
            (1_000_001, 1, 2),
            (-1, -1, 0),
        ] {
            assert_eq!(second_of(micros), Time(within), "{micros}");
            assert_eq!(second_after(micros), Time(after), "{micros}");
        }
    }

    #[test]
    fn a_standing_clock_moves_only_when_turned() {
        let clock = Clock::standing_at(5 * MICROS_PER_SECOND);
        let other = clock.clone();
        clock.set(7 * MICROS_PER_SECOND);
        assert_eq!(other.now(), Time(7));
    }
}
