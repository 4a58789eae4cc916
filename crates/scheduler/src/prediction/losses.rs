//! Losses: of predictions that were off, and of runs that a resource lost.

use super::{count_as_real, whole_as_real};

/// The loss of a prediction in seconds: by how much its logarithm is off. Of work that was stopped it is known only that it needed
/// more, so a longer prediction loses nothing.
pub fn prediction_loss(predicted: f64, seconds: f64, stopped: bool) -> f64 {
    let error = predicted.max(1.0).ln() - seconds.max(1.0).ln();
    if stopped { (-error).max(0.0) } else { error.abs() }
}

/// The runs on a resource that ended by themselves or at their limit, and those that the resource lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunLosses {
    /// All of them.
    pub runs: usize,
    /// Those that were lost.
    pub lost: usize,
}

/// Runs on a resource that weigh as much as the experience with all resources together.
const PRIOR_RUNS: f64 = 10.0;

/// No resource is taken to lose more than all but this part of its runs: the time that it takes to complete work stays finite.
const KEPT_MIN: f64 = 0.01;

impl RunLosses {
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

/// The loss of having stated `stated` as the quantile `p` of a value that was `outcome`: p for each unit too little, 1 − p for
/// each too much. Its expectation is least for the true quantile, so it rewards being right and being sharp at once.
pub fn pinball_loss(p: f64, stated: f64, outcome: f64) -> f64 {
    if outcome >= stated {
        p * (outcome - stated)
    } else {
        (1.0 - p) * (stated - outcome)
    }
}
