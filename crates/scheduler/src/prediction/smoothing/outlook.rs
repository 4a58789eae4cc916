//! The means that smoothing foresees over intervals: in constant time for the future, and as they were foreseen in the past.

use super::method::{self, State};
use super::{Method, Parameters, Series, Smoothing};
use crate::prediction::{count_as_real, whole_as_real};
use crate::time::{Interval, Seconds, Time};

/// Steps at the end of an outlook that the time after it is the mean of: a week of hours, which holds both seasons.
const REST: usize = 168;

/// Steps that a mean over a past interval looks at.
const REPLAYED_MAX: usize = 336;

/// The values that are foreseen step by step, so that a mean over any interval takes two look-ups.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    start: Time,
    step: Seconds,
    /// Of the values up to each step.
    sums: Vec<f64>,
    /// The value of each later step.
    rest: f64,
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

impl Smoothing {
    /// The values of `steps` steps from the one on that holds `from`, each kept between `least` and `most`. `None` without any
    /// sample, or without steps.
    pub fn outlook(&self, from: Time, steps: usize, (least, most): (f64, f64)) -> Option<Outlook> {
        let state = self.state.as_ref().filter(|_| steps > 0)?;
        let next = self.next_step();
        let first = (from - next).div_euclid(self.step).max(0);
        let ahead = usize::try_from(first).ok()?.saturating_add(1);
        let value = |step: usize| state.ahead(ahead.saturating_add(step), self.parameters);
        let mut sums = Vec::with_capacity(steps + 1);
        let mut sum = 0.0;
        sums.push(sum);
        for step in 0..steps {
            sum += value(step).clamp(least, most);
            sums.push(sum);
        }
        let last = steps.min(REST);
        Some(Outlook {
            start: next + first.saturating_mul(self.step),
            step: self.step,
            rest: (sum - sums[steps - last]) / count_as_real(last),
            sums,
        })
    }

    /// The start of the first step after the series.
    fn next_step(&self) -> Time {
        let length = i64::try_from(self.length).unwrap_or(i64::MAX);
        self.start + self.step.saturating_mul(length)
    }
}

/// A series as it was known at past instants, in their order. The parameters are those that fit all of it: to fit them again for each
/// instant would take fifty passes each time.
#[derive(Debug, Clone)]
pub struct Replay<'a> {
    series: &'a Series,
    parameters: Parameters,
    /// After this number of steps.
    state: Option<State>,
    steps: usize,
}

impl<'a> Replay<'a> {
    /// Of a series and the parameters that fit it.
    pub fn new(series: &'a Series, parameters: Parameters) -> Self {
        Self {
            series,
            parameters,
            state: None,
            steps: 0,
        }
    }

    /// The mean over an interval as it was foreseen at `known` from the steps that were over then: of its first two weeks if it is
    /// longer. `None` before the first sample. Instants must not go back. All instants together take steps in proportion
    /// to the series, and each to its interval.
    pub fn mean_over(&mut self, known: Time, interval: Interval) -> Option<f64> {
        let step_of = |at: Time| (at - self.series.start()).div_euclid(self.series.step());
        let over = usize::try_from(step_of(known)).ok()?;
        let over = over.min(self.series.values().len());
        let next = i64::try_from(over).ok()?;
        let first = step_of(interval.start).max(next);
        let last = step_of(interval.end - 1).max(first);
        self.advance(over);
        let state = self.state.as_ref()?;
        let from = usize::try_from(first - next).ok()?.saturating_add(1);
        let steps = usize::try_from(last - first).map_or(REPLAYED_MAX, |more| (more + 1).min(REPLAYED_MAX));
        let values = (0..steps).map(|step| state.ahead(from.saturating_add(step), self.parameters));
        Some(values.sum::<f64>() / count_as_real(steps))
    }

    /// Goes on to the state after `over` steps. A state begins with what the first two seasons say; until these are over, it
    /// begins anew each time, so that it never knows what came later.
    fn advance(&mut self, over: usize) {
        let values = self.series.values();
        let season = match self.parameters.method {
            Method::HoltWinters { season } => 2 * season,
            _ => 2 * super::CHOICE_STEPS_MIN,
        };
        if over <= self.steps {
            return;
        }
        match &mut self.state {
            Some(state) if self.steps >= season => {
                for value in &values[self.steps..over] {
                    state.step(*value, self.parameters);
                }
            }
            _ => self.state = method::smooth_values(&values[..over], self.parameters),
        }
        self.steps = over;
    }
}

impl Series {
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
