//! How much a correction counts: as much as past outcomes say that it helps.
//!
//! The two experts of a correction are the prediction with it and the prediction without it. Their weights follow their losses
//! by exponential weighting (Hedge: Freund and Schapire, 1997), with losses that fade, so that a resource that has changed is
//! learned anew. Without any evidence both weigh the same: nothing says which one is right.

use super::{count_as_real, whole_as_real};

/// The part of the lead that is left after one more outcome: the last hundred count.
const MEMORY: f64 = 0.99;

/// How fast the weight follows the losses. A correction that makes ten predictions better by a fifth has 98 % of the weight.
const LEARNING_RATE: f64 = 2.0;

/// The greatest loss: one wild run must not decide alone. It is an error by the factor e.
const LOSS_MAX: f64 = 1.0;

/// Losses that differ by less are rounding errors, and no evidence.
const DIFFERENCE_MIN: f64 = 1e-6;

/// The weight of a correction, from 0 (it is left out) to 1 (it counts as it is).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weight {
    /// The losses without it less those with it, each outcome counting less than the next.
    lead: f64,
    outcomes: usize,
}

impl Weight {
    /// Learns from an outcome how far the predictions with and without the correction were off. Outcomes on which both say the
    /// same are not counted.
    pub fn learn(&mut self, with: f64, without: f64) {
        let [with, without] = [with, without].map(|loss| loss.clamp(0.0, LOSS_MAX));
        if !(with.is_finite() && without.is_finite()) || (without - with).abs() < DIFFERENCE_MIN {
            return;
        }
        self.lead = MEMORY * self.lead + without - with;
        self.outcomes += 1;
    }

    /// The weight: a half before the first outcome.
    pub fn value(&self) -> f64 {
        1.0 / (1.0 + (-LEARNING_RATE * self.lead).exp())
    }

    /// The outcomes that it was learned from.
    pub fn outcomes(&self) -> usize {
        self.outcomes
    }
}

/// The loss of a prediction in seconds: by how much its logarithm is off. Of work that was stopped it is known only that it needed
/// more, so a longer prediction loses nothing.
pub fn prediction_loss(predicted: f64, seconds: f64, stopped: bool) -> f64 {
    let error = predicted.max(1.0).ln() - seconds.max(1.0).ln();
    if stopped { (-error).max(0.0) } else { error.abs() }
}

/// The runs on a resource that ended by themselves or at their limit, and those that the resource lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// All of them.
    pub runs: usize,
    /// Those that were lost.
    pub lost: usize,
}

/// Runs on a resource that weigh as much as the experience with all resources together.
const PRIOR_RUNS: f64 = 10.0;

/// No resource is taken to lose more than all but this part of its runs: the time that it takes to complete work stays finite.
const KEPT_MIN: f64 = 0.01;

impl Losses {
    /// The probability that a run is not lost, where this is what is known of the resource and `all` of all resources together.
    /// Few runs say little: they are counted beside ten that went as those on all resources did. 1 where nothing was ever
    /// lost.
    pub fn kept(self, all: Self) -> f64 {
        let usual = count_as_real(all.lost) / (count_as_real(all.runs) + PRIOR_RUNS);
        let lost = (count_as_real(self.lost) + PRIOR_RUNS * usual) / (count_as_real(self.runs) + PRIOR_RUNS);
        (1.0 - lost).max(KEPT_MIN)
    }
}

/// The expected seconds to the completion of work that is run again from its start, in a slot of `hold` seconds, until it is not
/// lost: `once` where it is kept at once, and before that (1 − p) / p times a slot that was for nothing. A loss is noticed
/// and the nodes are back at the end of such a slot at the earliest, so it counts as a whole.
pub fn expected_completion(once: f64, hold: i64, kept: f64) -> f64 {
    once + (1.0 - kept) / kept.max(KEPT_MIN) * whole_as_real(hold)
}
