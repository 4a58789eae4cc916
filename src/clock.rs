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
        Self { set: Some(Arc::new(AtomicI64::new(now))) }
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
