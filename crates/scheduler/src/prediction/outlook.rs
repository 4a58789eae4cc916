//! What is foreseen step by step, so that a mean over any interval takes two look-ups.

use super::{count_as_real, whole_as_real};
use crate::time::{Interval, Seconds, Time};

/// Steps at the end of an outlook that the time after it is the mean of: a week of hours, which holds both seasons.
pub(super) const REST: usize = 168;

/// The values that are foreseen step by step, so that a mean over any interval takes two look-ups.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    pub(super) start: Time,
    pub(super) step: Seconds,
    /// Of the values up to each step.
    pub(super) sums: Vec<f64>,
    /// The value of each later step.
    pub(super) rest: f64,
}

impl Outlook {
    /// The mean over an interval. Time before the first step counts as that step, time after the last one as the mean of the last
    /// week.
    pub fn mean_over(&self, interval: Interval) -> f64 {
        let end = interval.end.max(interval.start + 1);
        let length = whole_as_real(end - interval.start);
        (self.sum_to(end) - self.sum_to(interval.start)) / length
    }

    /// The integral from its start, in value times seconds.
    fn sum_to(&self, at: Time) -> f64 {
        let seconds = at - self.start;
        let known = self.sums.len() - 1;
        let step = usize::try_from(seconds.div_euclid(self.step)).unwrap_or(0);
        if seconds >= 0 && step >= known {
            let beyond = whole_as_real(seconds) - count_as_real(known) * whole_as_real(self.step);
            return self.sums[known] * whole_as_real(self.step) + self.rest * beyond;
        }
        let inside = whole_as_real(seconds) - count_as_real(step) * whole_as_real(self.step);
        let value = self.sums[step + 1] - self.sums[step];
        self.sums[step] * whole_as_real(self.step) + value * inside
    }
}
