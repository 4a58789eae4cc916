//! The time from the start of a slot to the end of its work on one candidate resource, as a sum of parts.
//!
//! The parts are the run under the load that is foreseen, the wait for the process, the transfers, and the seconds that the trust
//! in the resource adds. Each part beside the run counts with a weight ([`Shares`]). The distribution of the sum has as its quantile
//! of p the sum of the parts' quantiles of p. This is exact where parts are long together and too wide where they are not; a
//! [`Calibration`] of the sum as a whole corrects it (`docs/concepts/prediction.md`).

use super::runs::BlendedHistory;
use super::{Calibration, Distribution, count_as_real};

/// Probabilities that a mean is taken at, in the middles of equal parts.
const MEAN_POINTS: usize = 10;

/// Halvings of the interval in which a level is searched: to less than a millionth.
const HALVINGS: usize = 22;

/// Times that differ by less than this part are the same: logarithms round.
const ROUNDING: f64 = 1e-9;

crate::worded! {
    /// A part of an estimate beside the run itself.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Part {
        /// The load of the processors (algorithm 1, line 10).
        Load = "load",
        /// RT, which is added where it is negative (algorithm 2, line 12).
        Trust = "trust",
        /// The transfers before and after (algorithm 2, lines 8 and 9).
        Transfers = "transfers",
        /// The wait for the process after the slot has begun.
        Queue = "queue",
    }
}

crate::worded! {
    /// The parts beside the run itself that an estimate counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Ladder {
        /// None: the past run times, scaled by the rates, with the waits for the process.
        History = "history alone",
        /// The load.
        Load = "with load",
        /// The trust in the resource.
        Trust = "with trust",
        /// The transfers, and the wait for the process.
        Transfers = "with transfers",
        /// All of them.
        All = "all",
        /// Paper 004's estimate as printed: a mean that has the waits in it, and load, trust and transfers in full.
        Published = "published",
    }
}

impl Ladder {
    /// The share of a part that is not learned: the wait for the process is a part of every execution time (algorithm 1, line 8),
    /// and the other parts are left out. The published estimate has it in its mean, and the others in full. `None` where it is learned for each resource.
    pub(crate) fn fixed(self, part: Part) -> Option<f64> {
        match (self, part) {
            (Self::All, _)
            | (Self::Load, Part::Load)
            | (Self::Trust, Part::Trust)
            | (Self::Transfers, Part::Transfers | Part::Queue) => None,
            (Self::Published, part) => Some(if part == Part::Queue { 0.0 } else { 1.0 }),
            (_, Part::Queue) => Some(1.0),
            _ => Some(0.0),
        }
    }

    /// Whether it counts a part.
    pub fn counts(self, part: Part) -> bool {
        self.fixed(part) != Some(0.0)
    }
}

/// How much each part counts, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares([f64; Part::ALL.len()]);

impl Shares {
    /// The share that `of` gives each part.
    pub fn new(function: impl Fn(Part) -> f64) -> Self {
        Self(Part::ALL.map(|part| function(part).clamp(0.0, 1.0)))
    }

    /// That of a part.
    pub fn of(&self, part: Part) -> f64 {
        self.0[part as usize]
    }

    /// The same with another share of one part.
    #[must_use]
    pub(crate) fn with(mut self, part: Part, share: f64) -> Self {
        self.0[part as usize] = share;
        self
    }
}

/// What is known of work on one resource for one start.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The histories of its run time, as logarithms of seconds of work.
    pub base: &'a BlendedHistory,
    /// Work done in a second there.
    pub speed: f64,
    /// The factor by which the load is foreseen to make it longer: 2 − `CPU_free`. `None` where no load is known.
    pub load: Option<f64>,
    /// The waits for the process there, in seconds; `None` where none is known.
    pub queue: Option<&'a Distribution>,
    /// The seconds of its transfers at the bandwidth that is foreseen.
    pub transfers: f64,
    /// The real times of past transfers there by their estimates, as logarithms; `None` where none is known.
    pub spread: Option<&'a Distribution>,
    /// The seconds that the trust in the resource adds: −RT where that is negative, else 0.
    pub trust: f64,
}

/// The parts at one probability, or in the mean, before load and bandwidth of a start are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Amounts {
    /// Seconds of the run on free processors.
    pub run: f64,
    /// Seconds of waiting and of trust.
    pub fixed: f64,
    /// For each second of transfers at the bandwidth that is foreseen, this many.
    pub transfers: f64,
}

impl Amounts {
    /// The sum under a load that makes the run longer by a factor, with transfers of so many seconds.
    pub fn seconds(&self, load: f64, transfers: f64) -> f64 {
        self.run * load + self.fixed + self.transfers * transfers
    }
}

impl Parts<'_> {
    /// The factor of the load as far as its share goes. Logarithms are weighed, as errors of run times are factors.
    pub fn load_factor(&self, shares: &Shares) -> f64 {
        match (self.load, &self.base.unloaded) {
            (Some(factor), Some(_)) => factor.powf(shares.of(Part::Load)),
            _ => 1.0,
        }
    }

    /// The parts at probability `p`.
    pub fn amounts(&self, p: f64, shares: &Shares) -> Amounts {
        let mut run = self.base.plain.quantile(p);
        if let (Some(_), Some(unloaded)) = (self.load, &self.base.unloaded) {
            let share = shares.of(Part::Load);
            run = (1.0 - share) * run + share * unloaded.quantile(p);
        }
        let queue = self.queue.map_or(0.0, |queue| queue.quantile(p).max(0.0));
        let spread = self.spread.map_or(1.0, |spread| spread.quantile(p).exp());
        Amounts {
            run: run.exp() / self.speed,
            fixed: shares.of(Part::Trust) * self.trust + shares.of(Part::Queue) * queue,
            transfers: shares.of(Part::Transfers) * spread,
        }
    }

    /// The parts in the mean of the distribution that a calibration corrects.
    pub fn mean(&self, shares: &Shares, calibration: &Calibration) -> Amounts {
        let mut mean = Amounts::default();
        for point in 0..MEAN_POINTS {
            let p = (count_as_real(point) + 0.5) / count_as_real(MEAN_POINTS);
            let at = self.amounts(calibration.level(p), shares);
            mean.run += at.run / count_as_real(MEAN_POINTS);
            mean.fixed += at.fixed / count_as_real(MEAN_POINTS);
            mean.transfers += at.transfers / count_as_real(MEAN_POINTS);
        }
        mean
    }

    /// The seconds within which the work ends with probability `p`, before any calibration. Never less for a larger `p`.
    pub fn quantile(&self, p: f64, shares: &Shares) -> f64 {
        let amounts = self.amounts(p, shares);
        amounts.seconds(self.load_factor(shares), self.transfers)
    }

    /// The probability of less than these seconds, half of what is equal included, before any calibration: the inverse of
    /// [`Parts::quantile`]. Some forty readings of it.
    pub fn level(&self, seconds: f64, shares: &Shares) -> f64 {
        if seconds.is_nan() || seconds <= 0.0 {
            return 0.0;
        }
        let upto = |bound: f64| {
            let (mut low, mut high) = (0.0, 1.0);
            if self.quantile(low, shares) >= bound {
                return low;
            }
            if self.quantile(high, shares) < bound {
                return high;
            }
            for _ in 0..HALVINGS {
                let middle = f64::midpoint(low, high);
                if self.quantile(middle, shares) < bound {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            high
        };
        let below = upto(seconds * (1.0 - ROUNDING));
        // Where nothing is equal, the second search would find the same.
        let above = if self.quantile(below, shares) <= seconds * (1.0 + ROUNDING) {
            upto(seconds * (1.0 + ROUNDING))
        } else {
            below
        };
        f64::midpoint(below, above)
    }
}
