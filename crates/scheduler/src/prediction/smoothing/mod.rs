//! Exponential smoothing: the future of a series of samples, from its past.
//!
//! Simple smoothing, Holt's with a damped trend, and Holt–Winters' with an additive season of a day or a week. The parameters are
//! those with the least error one step ahead; the method is the one that, fitted on the first part, has the least error on the
//! part held back. Missing samples are not invented. Over a gap the level follows its damped trend, the season goes on, and
//! earlier samples lose weight as if time had passed. So the first sample after a long gap counts for much (Wright, 1986). Errors
//! are only counted where there was a sample to compare with.
//!
//! The trend is always damped (Gardner, 1985), because an undamped one runs away over a long gap or a far
//! deadline.

mod method;
mod outlook;
mod series;

pub use method::{Method, Parameters};
pub use outlook::{Outlook, Replay};
pub use series::{STEPS_MAX, Series};

use super::count_as_real;
use crate::time::{Interval, Seconds, Time};
use method::State;

/// A day and a week, the seasons of a machine that people use.
const SEASONS: [Seconds; 2] = [86_400, 7 * 86_400];

/// Of this many steps, one is held back to choose the method by.
const HELD_BACK: usize = 5;

/// Series with fewer observed steps than this get simple smoothing: they are too short for anything more.
const CHOICE_STEPS_MIN: usize = 20;

/// A season needs this many of its lengths to be distinguished from chance.
const SEASONS_MIN: usize = 2;

/// Another method must be better than a simpler one by this part, or chance would choose.
const BETTER_BY: f64 = 0.02;

/// Steps that a mean over an interval looks at; from there on seasons only repeat, and the trend is damped out.
const AHEAD_MAX: usize = 10_000;

/// A fitted forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct Smoothing {
    start: Time,
    step: Seconds,
    /// Steps of the series.
    length: usize,
    /// As it is after the last step; `None` without any sample.
    state: Option<State>,
    parameters: Parameters,
    /// Mean square error one step ahead.
    error: f64,
    positive_range: Option<(f64, f64)>,
}

impl Smoothing {
    /// The method with the least error on the last fifth of the series, fitted again on all of it. Takes some fifty passes over
    /// the series for each method.
    pub fn fit(series: &Series) -> Self {
        let values = series.values();
        let observed = values.iter().flatten().count();
        let held = values.len() / HELD_BACK;
        let (first, _) = values.split_at(values.len() - held);
        let mut best = Method::Simple;
        if observed >= CHOICE_STEPS_MIN && first.iter().any(Option::is_some) {
            let error_of = |method| {
                let fitted = method::fit_parameters(first, method).0;
                method::smoothing_error(values, fitted, first.len())
            };
            let mut least = error_of(Method::Simple);
            for method in candidate_methods(series.step(), first.len()) {
                let error = error_of(method);
                if error < least * (1.0 - BETTER_BY) {
                    (best, least) = (method, error);
                }
            }
        }
        Self::fit_with(series, best)
    }

    /// Fitted with a given method.
    pub fn fit_with(series: &Series, method: Method) -> Self {
        let (parameters, error) = method::fit_parameters(series.values(), method);
        Self::with(series, parameters, error)
    }

    /// With given parameters.
    pub fn with_parameters(series: &Series, parameters: Parameters) -> Self {
        let error = method::smoothing_error(series.values(), parameters, 0);
        Self::with(series, parameters, error)
    }

    fn with(series: &Series, parameters: Parameters, error: f64) -> Self {
        let positive = || {
            series
                .values()
                .iter()
                .flatten()
                .copied()
                .filter(|value| *value > 0.0)
        };
        Self {
            start: series.start(),
            step: series.step(),
            length: series.values().len(),
            state: method::smooth_values(series.values(), parameters),
            parameters,
            error,
            positive_range: positive().reduce(f64::min).zip(positive().reduce(f64::max)),
        }
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.parameters.method
    }

    /// The fitted parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// Mean square error one step ahead over the series; 0 where there was never anything to compare.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// The least and greatest value above zero that was seen; `None` if there is none.
    pub fn positive_range(&self) -> Option<(f64, f64)> {
        self.positive_range
    }

    /// The value this many steps after the last, from 1. `None` without any sample.
    pub fn ahead(&self, steps: usize) -> Option<f64> {
        Some(self.state.as_ref()?.ahead(steps.max(1), self.parameters))
    }

    /// The mean that is foreseen over an interval; of its first [`AHEAD_MAX`] steps if it is longer, and from the step after
    /// the last sample if it begins before. `None` without any sample.
    pub fn mean_over(&self, interval: Interval) -> Option<f64> {
        let state = self.state.as_ref()?;
        let step_of = |time: Time| (time - self.start).div_euclid(self.step);
        let next = i64::try_from(self.length).unwrap_or(i64::MAX);
        let first = step_of(interval.start).saturating_sub(next).max(0);
        let last = step_of(interval.end - 1).saturating_sub(next).max(first);
        let steps = usize::try_from(last - first)
            .unwrap_or(AHEAD_MAX)
            .min(AHEAD_MAX - 1)
            + 1;
        let from = usize::try_from(first).unwrap_or(usize::MAX).saturating_add(1);
        let sum: f64 = (0..steps)
            .map(|step| state.ahead(from.saturating_add(step), self.parameters))
            .sum();
        Some(sum / count_as_real(steps))
    }
}

/// The methods that a series of this many steps can be fitted with, beside simple smoothing.
fn candidate_methods(step: Seconds, steps: usize) -> Vec<Method> {
    let seasonal = SEASONS.into_iter().filter_map(|season| {
        let length = usize::try_from(season / step).ok()?;
        (season % step == 0 && length > 1 && steps >= SEASONS_MIN * length)
            .then_some(Method::HoltWinters { season: length })
    });
    std::iter::once(Method::Holt).chain(seasonal).collect()
}
