//! Samples, brought to equal steps of time.

use super::count_as_real;
use crate::time::{Interval, Seconds, Time};

/// The most steps of a series: ten weeks by the hour. Older samples are left out.
pub const STEPS_MAX: usize = 10 * 7 * 24;

/// Steps that a mean over a past interval looks at.
pub(super) const REPLAYED_MAX: usize = 336;

/// Means over equal steps of time, with gaps where there was no sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    start: Time,
    step: Seconds,
    values: Vec<Option<f64>>,
}

impl Series {
    /// The means of samples, in any order, over steps of `step` seconds (at least 1) that begin at multiples of it. The last
    /// [`STEPS_MAX`] up to the newest sample are kept; a value that is not a finite number is not a sample.
    pub fn of(samples: impl IntoIterator<Item = (Time, f64)>, step: Seconds) -> Self {
        let step = step.max(1);
        let mut samples: Vec<(i64, f64)> = samples
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .map(|(at, value)| (at.seconds().div_euclid(step), value))
            .collect();
        // By value too, so that the order of samples does not change the last digit of a sum.
        samples.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let kept = i64::try_from(STEPS_MAX).unwrap_or(i64::MAX);
        let last = samples.last().map_or(0, |(at, _)| *at);
        samples.retain(|(at, _)| last - at < kept);
        let first = samples.first().map_or(0, |(at, _)| *at);
        let mut values = Vec::new();
        for same in samples.chunk_by(|a, b| a.0 == b.0) {
            let mean = same.iter().map(|(_, value)| value).sum::<f64>() / count_as_real(same.len());
            // Never more than STEPS_MAX after the first.
            let at = usize::try_from(same[0].0 - first).unwrap_or_default();
            values.resize(at, None);
            values.push(Some(mean));
        }
        Self {
            start: Time(first.saturating_mul(step)),
            step,
            values,
        }
    }

    /// The start of its first step.
    pub fn start(&self) -> Time {
        self.start
    }

    /// The length of a step.
    pub(crate) fn step(&self) -> Seconds {
        self.step
    }

    /// The mean of each step; `None` where there was no sample.
    pub fn values(&self) -> &[Option<f64>] {
        &self.values
    }

    /// The mean of the samples over an interval; of its first two weeks if it is longer. `None` where there is none.
    pub fn mean_over(&self, interval: Interval) -> Option<f64> {
        let step_of = |at: Time| (at - self.start()).div_euclid(self.step());
        let (first, last) = (step_of(interval.start), step_of(interval.end - 1));
        let first = usize::try_from(first.max(0)).ok()?;
        let last = usize::try_from(last)
            .ok()?
            .min(first.saturating_add(REPLAYED_MAX - 1));
        let values = self.values();
        let inside = values.get(first..(last + 1).min(values.len()))?;
        let known: Vec<f64> = inside.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / count_as_real(known.len()))
    }

    /// The mean of all samples. `None` without any.
    pub fn mean(&self) -> Option<f64> {
        let known = || self.values().iter().flatten();
        let samples = known().count();
        (samples > 0).then(|| known().sum::<f64>() / count_as_real(samples))
    }
}
