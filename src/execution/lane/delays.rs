//! How long after the begin of their slots jobs began.

use std::sync::Mutex;

use crate::clock::{MICROS_PER_SECOND, Micros};
use crate::execution::lock::lock;
use crate::metrics::Histogram;

/// Upper bounds for the delay of a start, in seconds: from the delay of a scheduler to a delay that uses up a short
/// slot.
const BOUNDS: &[f64] = &[0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// The delays so far.
#[derive(Debug)]
pub(crate) struct Delays(Mutex<Histogram>);

impl Default for Delays {
    fn default() -> Self {
        Self(Mutex::new(Histogram::new(BOUNDS)))
    }
}

impl Delays {
    /// Counts a job that began at an instant, in a slot that begins at this second.
    pub(super) fn note(&self, slot: scheduler::Time, began: Micros) {
        let late = began - slot.seconds().saturating_mul(MICROS_PER_SECOND);
        #[expect(
            clippy::cast_precision_loss,
            reason = "delays have far fewer digits than a double"
        )]
        let seconds = late.max(0) as f64 / MICROS_PER_SECOND as f64;
        lock(&self.0).observe(seconds);
    }

    /// The delays so far.
    pub(crate) fn so_far(&self) -> Histogram {
        lock(&self.0).clone()
    }
}
