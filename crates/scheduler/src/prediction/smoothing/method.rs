//! The recursions of the methods, and the search for their parameters.

use super::count_as_real;

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
    pub fn name(self) -> &'static str {
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
pub(super) struct State {
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

impl State {
    /// Before the first step: the level of the first season, or the first value; the trend of the first values; the mean
    /// deviations of the phases over the first two seasons. `None` without any value.
    fn before(values: &[Option<f64>], parameters: Parameters) -> Option<Self> {
        let known = || (0..).zip(values).filter_map(|(at, value)| Some((at, (*value)?)));
        let (first_at, first) = known().next()?;
        let (level, trend, phases) = match parameters.method {
            Method::HoltWinters { season } => {
                let season = season.max(1);
                let early = || known().take_while(|(at, _)| *at < 2 * season);
                let level = mean(early().map(|(_, value)| value)).unwrap_or(first);
                let mean_of_phase = |phase| {
                    let of_phase = early().filter(|(at, _)| at % season == phase);
                    mean(of_phase.map(|(_, value)| value - level)).unwrap_or(0.0)
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
    pub(super) fn ahead(&self, steps: usize, parameters: Parameters) -> f64 {
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
    pub(super) fn step(&mut self, value: Option<f64>, parameters: Parameters) -> Option<f64> {
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
pub(super) fn smooth_values(values: &[Option<f64>], parameters: Parameters) -> Option<State> {
    let mut state = State::before(values, parameters)?;
    for value in values {
        state.step(*value, parameters);
    }
    Some(state)
}

/// The mean square error one step ahead, of the values from `from` on; 0 if there is nothing to compare. The first value
/// is compared with nothing: it begins the state.
pub(super) fn smoothing_error(values: &[Option<f64>], parameters: Parameters, from: usize) -> f64 {
    let Some(mut state) = State::before(values, parameters) else {
        return 0.0;
    };
    let first = values.iter().position(Option::is_some).unwrap_or(0);
    let from = from.max(first + 1);
    let squares = values.iter().enumerate().filter_map(|(at, value)| {
        let error = state.step(*value, parameters)?;
        (at >= from).then_some(error * error)
    });
    mean(squares).unwrap_or(0.0)
}

/// The parameters of least error one step ahead, and that error: the best of a coarse grid, improved along one parameter at a
/// time by strides that are halved.
pub(super) fn fit_parameters(values: &[Option<f64>], method: Method) -> (Parameters, f64) {
    let mut best = (starting_parameters(method)[0], f64::INFINITY);
    for parameters in starting_parameters(method) {
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

fn starting_parameters(method: Method) -> Vec<Parameters> {
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

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0_usize), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / count_as_real(n))
}
