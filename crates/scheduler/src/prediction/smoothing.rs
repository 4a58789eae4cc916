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

use super::count_as_real;
use super::outlook::{Outlook, REST};
use super::series::{REPLAYED_MAX, Series};
use crate::time::{Interval, Seconds, Time};

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
    state: Option<SmoothingState>,
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
                let fitted = fit_smoothing_parameters(first, method).0;
                smoothing_error(values, fitted, first.len())
            };
            let mut least = error_of(Method::Simple);
            for method in candidate_smoothing_methods(series.step(), first.len()) {
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
        let (parameters, error) = fit_smoothing_parameters(series.values(), method);
        Self::with(series, parameters, error)
    }

    /// With given parameters.
    pub fn with_parameters(series: &Series, parameters: Parameters) -> Self {
        let error = smoothing_error(series.values(), parameters, 0);
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
            state: smooth_values(series.values(), parameters),
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

/// The methods that a series of this many steps can be fitted with, beside simple smoothing.
fn candidate_smoothing_methods(step: Seconds, steps: usize) -> Vec<Method> {
    let seasonal = SEASONS.into_iter().filter_map(|season| {
        let length = usize::try_from(season / step).ok()?;
        (season % step == 0 && length > 1 && steps >= SEASONS_MIN * length)
            .then_some(Method::HoltWinters { season: length })
    });
    std::iter::once(Method::Holt).chain(seasonal).collect()
}

/// A series as it was known at past instants, in their order. The parameters are those that fit all of it: to fit them again for each
/// instant would take fifty passes each time.
#[derive(Debug, Clone)]
pub struct SmoothingReplay<'a> {
    series: &'a Series,
    parameters: Parameters,
    /// After this number of steps.
    state: Option<SmoothingState>,
    steps: usize,
}

impl<'a> SmoothingReplay<'a> {
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
            _ => 2 * CHOICE_STEPS_MIN,
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
            _ => self.state = smooth_values(&values[..over], self.parameters),
        }
        self.steps = over;
    }
}

/// How a series is smoothed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A level (Brown).
    Simple,
    /// A level and a damped trend (Holt).
    Holt,
    /// A level, a damped trend and an additive season (Holt and Winters).
    HoltWinters {
        /// Steps of the season, at least 2.
        season: usize,
    },
}

impl Method {
    /// Its common name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple exponential smoothing",
            Self::Holt => "Holt's smoothing",
            Self::HoltWinters { .. } => "Holt–Winters' smoothing",
        }
    }
}

/// A method with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// The method.
    pub method: Method,
    /// How fast the level follows, from 0 to 1.
    pub level: f64,
    /// How fast the trend follows, from 0 to 1.
    pub trend: f64,
    /// How fast the season follows, from 0 to 1.
    pub season: f64,
    /// The part of the trend that is left after a step, from 0 to below 1.
    pub damping: f64,
}

/// The state after a step.
#[derive(Debug, Clone, PartialEq)]
struct SmoothingState {
    level: f64,
    /// The weight of all samples that the level is a mean of, the newest weighing 1: its inverse is the weight of the next one.
    weight: f64,
    trend: f64,
    /// Deviations of the phases of the season; empty without one.
    phases: Vec<f64>,
    /// The phase of the next step.
    phase: usize,
}

/// Where the search begins, and how far it steps at first and at last.
const LEVELS: [f64; 3] = [0.05, 0.3, 0.8];
const TRENDS: [f64; 2] = [0.02, 0.2];
const PHASES: [f64; 2] = [0.05, 0.3];
const DAMPINGS: [f64; 2] = [0.8, 0.97];
const STRIDE_FIRST: f64 = 0.16;
const STRIDE_LAST: f64 = 0.01;
const DAMPING_MAX: f64 = 0.995;

/// Observed steps that the first slope is taken from.
const SLOPE_STEPS: usize = 10;

impl SmoothingState {
    /// Before the first step: the level of the first season, or the first value; the trend of the first values; the mean
    /// deviations of the phases over the first two seasons. `None` without any value.
    fn before(values: &[Option<f64>], parameters: Parameters) -> Option<Self> {
        let known = || (0..).zip(values).filter_map(|(at, value)| Some((at, (*value)?)));
        let (first_at, first) = known().next()?;
        let (level, trend, phases) = match parameters.method {
            Method::HoltWinters { season } => {
                let season = season.max(1);
                let early = || known().take_while(|(at, _)| *at < 2 * season);
                let level = mean_to_smooth(early().map(|(_, value)| value)).unwrap_or(first);
                let mean_of_phase = |phase| {
                    let of_phase = early().filter(|(at, _)| at % season == phase);
                    mean_to_smooth(of_phase.map(|(_, value)| value - level)).unwrap_or(0.0)
                };
                (level, 0.0, (0..season).map(mean_of_phase).collect())
            }
            method => {
                let slope = match (method, known().take(SLOPE_STEPS).last()) {
                    (Method::Holt, Some((at, value))) if at > first_at => {
                        (value - first) / count_as_real(at - first_at)
                    }
                    _ => 0.0,
                };
                (first - parameters.damping * slope, slope, Vec::new())
            }
        };
        Some(Self {
            level,
            weight: 0.0,
            trend,
            phases,
            phase: 0,
        })
    }

    /// Where level, trend and season lead, `steps` from 1.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a power of the damping that is 0 long before the count is inexact"
    )]
    fn ahead(&self, steps: usize, parameters: Parameters) -> f64 {
        let damping = parameters.damping;
        // φ + φ² + … + φʰ
        let damped = damping * (1.0 - damping.powf(steps as f64)) / (1.0 - damping);
        let season = match self.phases.len() {
            0 => 0.0,
            length => self.phases[(self.phase + (steps - 1) % length) % length],
        };
        self.level + damped * self.trend + season
    }

    /// One step on; learns from the value, if there is one. Returns the error of the forecast for it.
    fn step(&mut self, value: Option<f64>, parameters: Parameters) -> Option<f64> {
        let trend = parameters.damping * self.trend;
        let foreseen = self.level + trend;
        let season = self.phases.get(self.phase).copied().unwrap_or(0.0);
        let error = value.map(|value| value - foreseen - season);
        // The error-correction form: the same recursions, written as the changes that an error makes.
        self.weight *= 1.0 - parameters.level;
        self.level = foreseen;
        self.trend = trend;
        if let Some(error) = error {
            self.weight += 1.0;
            let gain = 1.0 / self.weight;
            self.level += gain * error;
            self.trend += gain * parameters.trend * error;
            if let Some(phase) = self.phases.get_mut(self.phase) {
                *phase += parameters.season * (1.0 - gain) * error;
            }
        }
        if !self.phases.is_empty() {
            self.phase = (self.phase + 1) % self.phases.len();
        }
        error
    }
}

/// The state after all values. `None` without any.
fn smooth_values(values: &[Option<f64>], parameters: Parameters) -> Option<SmoothingState> {
    let mut state = SmoothingState::before(values, parameters)?;
    for value in values {
        state.step(*value, parameters);
    }
    Some(state)
}

/// The mean square error one step ahead, of the values from `from` on; 0 if there is nothing to compare. The first value
/// is compared with nothing: it begins the state.
fn smoothing_error(values: &[Option<f64>], parameters: Parameters, from: usize) -> f64 {
    let Some(mut state) = SmoothingState::before(values, parameters) else {
        return 0.0;
    };
    let first = values.iter().position(Option::is_some).unwrap_or(0);
    let from = from.max(first + 1);
    let squares = values.iter().enumerate().filter_map(|(at, value)| {
        let error = state.step(*value, parameters)?;
        (at >= from).then_some(error * error)
    });
    mean_to_smooth(squares).unwrap_or(0.0)
}

/// The parameters of least error one step ahead, and that error: the best of a coarse grid, improved along one parameter at a
/// time by strides that are halved.
fn fit_smoothing_parameters(values: &[Option<f64>], method: Method) -> (Parameters, f64) {
    let mut best = (starting_smoothing_parameters(method)[0], f64::INFINITY);
    for parameters in starting_smoothing_parameters(method) {
        let error = smoothing_error(values, parameters, 0);
        if error < best.1 {
            best = (parameters, error);
        }
    }
    let mut stride = STRIDE_FIRST;
    while stride >= STRIDE_LAST {
        let before = best.1;
        for (which, by) in (0..4).flat_map(|which| [(which, stride), (which, -stride)]) {
            let moved = best.0.moved(which, by);
            if moved == best.0 {
                continue;
            }
            let error = smoothing_error(values, moved, 0);
            if error < best.1 {
                best = (moved, error);
            }
        }
        if best.1 >= before {
            stride /= 2.0;
        }
    }
    best
}

impl Parameters {
    /// With one parameter moved, as far as its bounds and the method allow.
    fn moved(mut self, which: usize, by: f64) -> Self {
        let (trend, season) = match self.method {
            Method::Simple => (false, false),
            Method::Holt => (true, false),
            Method::HoltWinters { .. } => (true, true),
        };
        match which {
            0 => self.level = (self.level + by).clamp(0.001, 1.0),
            1 if trend => self.trend = (self.trend + by).clamp(0.0, 1.0),
            2 if season => self.season = (self.season + by).clamp(0.0, 1.0),
            3 if trend => self.damping = (self.damping + by).clamp(0.0, DAMPING_MAX),
            _ => {}
        }
        self
    }
}

fn starting_smoothing_parameters(method: Method) -> Vec<Parameters> {
    let none = &[0.0][..];
    let (trends, phases, dampings) = match method {
        Method::Simple => (none, none, none),
        Method::Holt => (&TRENDS[..], none, &DAMPINGS[..]),
        Method::HoltWinters { .. } => (&TRENDS[..], &PHASES[..], &DAMPINGS[..]),
    };
    let mut starts = Vec::new();
    for level in LEVELS {
        for trend in trends {
            for season in phases {
                starts.extend(dampings.iter().map(|damping| Parameters {
                    method,
                    level,
                    trend: *trend,
                    season: *season,
                    damping: *damping,
                }));
            }
        }
    }
    starts
}

fn mean_to_smooth(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0_usize), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / count_as_real(n))
}
