//! The gain for which a request is moved that need not move.

use crate::fraction::Fraction;
use crate::request::Request;
use crate::time::{Seconds, Time};

/// The least gain of a move that is not forced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastGain {
    /// This many seconds,
    pub seconds: Seconds,
    /// and this share of the wait between submission and start.
    pub of_wait: Fraction,
}

impl LeastGain {
    /// Every move that gains a second.
    pub const ANY: Self = Self {
        seconds: 1,
        of_wait: Fraction::percent(0),
    };

    /// No move that is not forced.
    pub(super) const NEVER: Self = Self {
        seconds: Seconds::MAX / 4,
        of_wait: Fraction::percent(0),
    };

    /// The least gain in seconds for a request that starts at `start`; at least 1.
    pub(super) fn of(self, request: &Request, start: Time) -> Seconds {
        let share = self.of_wait.rounded_up((start - request.submitted).max(0));
        self.seconds.max(share).max(1)
    }
}
