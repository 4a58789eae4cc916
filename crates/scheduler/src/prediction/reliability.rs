//! How good statements about run times were: a reliability table and the pinball loss.

use super::count_as_real;
use super::losses::pinball_loss;

/// The probabilities that are looked at: 5 % to 95 % by 5.
pub const LEVELS: [f64; 19] = [
    0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85,
    0.90, 0.95,
];

/// Statements and outcomes, added up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reliability {
    outcomes: usize,
    /// Outcomes at or below each of [`LEVELS`].
    held: [usize; LEVELS.len()],
    loss: [f64; LEVELS.len()],
    /// Outcomes inside the intervals around the median, the widest first, and the sums of their widths.
    inside: [usize; INTERVALS],
    width: [f64; INTERVALS],
}

/// Intervals around the median that [`LEVELS`] bound: 90 %, 80 %, …
pub const INTERVALS: usize = LEVELS.len() / 2;

impl Reliability {
    /// Adds an outcome for which `quantile` had been stated. A single number stated for all probabilities is a point forecast;
    /// its mean loss is half its mean absolute error.
    pub fn add(&mut self, quantile: impl Fn(f64) -> f64, outcome: f64) {
        let stated = LEVELS.map(quantile);
        self.outcomes += 1;
        for (at, (p, stated)) in LEVELS.into_iter().zip(stated).enumerate() {
            self.held[at] += usize::from(outcome <= stated);
            self.loss[at] += pinball_loss(p, stated, outcome);
        }
        for at in 0..INTERVALS {
            let (low, high) = (stated[at], stated[LEVELS.len() - 1 - at]);
            self.inside[at] += usize::from(low <= outcome && outcome <= high);
            self.width[at] += high - low;
        }
    }

    /// Outcomes added.
    pub fn outcomes(&self) -> usize {
        self.outcomes
    }

    /// For each of [`LEVELS`]: the share of outcomes at or below the stated value, and the mean pinball loss. 0 for no outcome.
    pub fn levels(&self) -> [(f64, f64, f64); LEVELS.len()] {
        let n = count_as_real(self.outcomes.max(1));
        std::array::from_fn(|at| (LEVELS[at], count_as_real(self.held[at]) / n, self.loss[at] / n))
    }

    /// For each interval around the median, the widest first: the stated share (0.9, 0.8, …), the share of outcomes inside, and
    /// its mean width. 0 for no outcome.
    pub fn intervals(&self) -> [(f64, f64, f64); INTERVALS] {
        let n = count_as_real(self.outcomes.max(1));
        std::array::from_fn(|at| {
            let stated = LEVELS[LEVELS.len() - 1 - at] - LEVELS[at];
            (stated, count_as_real(self.inside[at]) / n, self.width[at] / n)
        })
    }

    /// The mean pinball loss over all [`LEVELS`].
    pub fn mean_loss(&self) -> f64 {
        self.loss.iter().sum::<f64>() / count_as_real(LEVELS.len() * self.outcomes.max(1))
    }
}
