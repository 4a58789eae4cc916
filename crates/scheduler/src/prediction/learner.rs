//! What the outcomes say of the parts that an estimate counts.
//!
//! Each ladder of parts learns by itself, so that their statements can be compared: it has its weights for each resource, its
//! calibration, its errors for the trust, and its reliability. A statement is made from what was known when it was asked for;
//! outcomes are learned when work ends.
//!
//! A part counts as much as past outcomes say that it helps. Its two experts are the prediction with it and the prediction without
//! it. Their weights follow their losses by exponential weighting (Hedge: Freund and Schapire, 1997), with losses that fade, so
//! that a resource that has changed is learned anew. Without any evidence both weigh the same: nothing says which one is right.

use std::collections::BTreeMap;

use super::calibration::Calibrations;
use super::estimate::{EstimateOutcome, TRUST_RUNS, rt};
use super::losses::prediction_loss;
use super::parts::{Ladder, Part, Parts, Shares};
use super::{Calibration, Reliability, whole_seconds};

/// How long work really took, in seconds from the start of its slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RealDuration {
    /// The seconds that it was seen to take.
    pub seconds: f64,
    /// The seconds that a slot for it should have had: more, where it was stopped.
    pub needed: f64,
    /// Whether it was stopped before it was over.
    pub stopped: bool,
}

/// A statement held against its outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedStatement {
    /// Where the outcome fell in the distribution.
    level: f64,
    /// The estimate without the trust, and the outcome.
    error: EstimateOutcome,
    /// For each part, the losses of the estimate with all of it and with none; `None` for a part whose share is fixed.
    losses: [Option<(f64, f64)>; Part::ALL.len()],
}

/// The knowledge of one ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Learner<K> {
    ladder: Ladder,
    weights: BTreeMap<String, [LearnedWeight; Part::ALL.len()]>,
    /// By resource, oldest first.
    errors: BTreeMap<String, Vec<EstimateOutcome>>,
    calibrations: Calibrations<K>,
    reliability: Reliability,
}

impl<K: Ord + Clone> Learner<K> {
    /// One that knows nothing.
    pub fn new(ladder: Ladder) -> Self {
        Self {
            ladder,
            weights: BTreeMap::new(),
            errors: BTreeMap::new(),
            calibrations: Calibrations::default(),
            reliability: Reliability::default(),
        }
    }

    /// Its ladder.
    pub fn ladder(&self) -> Ladder {
        self.ladder
    }

    /// How much each part counts on a resource.
    pub fn shares(&self, resource: &str) -> Shares {
        let weights = self.weights.get(resource);
        Shares::new(|part| {
            let learned = weights.map_or_else(LearnedWeight::default, |weights| weights[part as usize]);
            self.ladder.fixed(part).unwrap_or(learned.value())
        })
    }

    /// The weights that were learned, by resource.
    pub fn weights(&self) -> impl Iterator<Item = (&str, &[LearnedWeight; Part::ALL.len()])> {
        self.weights.iter().map(|(name, weight)| (name.as_str(), weight))
    }

    /// RT of a resource: the mean of estimated − real over the last executions there. The estimates are those without the trust,
    /// so that a correction that is right does not take away its own reason; the published ones have it, as printed. `None` without
    /// any.
    pub fn rt(&self, resource: &str) -> Option<f64> {
        rt(self.errors.get(resource)?)
    }

    /// The seconds that the trust in a resource adds (algorithm 2, lines 11 and 12).
    pub fn trust(&self, resource: &str) -> f64 {
        self.rt(resource).map_or(0.0, |rt| (-rt).max(0.0))
    }

    /// The correction of statements about a group.
    pub fn calibration(&self, group: &K) -> &Calibration {
        self.calibrations.of(group)
    }

    /// How good its statements have been.
    pub fn reliability(&self) -> &Reliability {
        &self.reliability
    }

    /// Holds the statement that it makes now against what came, and notes how good it was. The parts are those for the time of
    /// the work; their trust is its own.
    pub fn judge(
        &mut self,
        resource: &str,
        group: &K,
        parts: &Parts<'_>,
        came: RealDuration,
    ) -> JudgedStatement {
        let parts = Parts {
            trust: self.trust(resource),
            ..*parts
        };
        let shares = self.shares(resource);
        let calibration = self.calibrations.of(group);
        self.reliability
            .add(|p| parts.quantile(calibration.level(p), &shares), came.needed);
        let losses = Part::ALL.map(|part| {
            let with = |share| {
                let predicted = parts.quantile(0.5, &shares.with(part, share));
                prediction_loss(predicted, came.seconds, came.stopped)
            };
            let learns = self.ladder.fixed(part).is_none();
            learns.then(|| (with(1.0), with(0.0)))
        });
        let compared = match self.ladder {
            Ladder::Published => shares,
            _ => shares.with(Part::Trust, 0.0),
        };
        let mean = parts.mean(&compared, calibration);
        let estimated = mean.seconds(parts.load_factor(&shares), parts.transfers);
        let estimated = whole_seconds(estimated);
        let real = whole_seconds(came.seconds);
        JudgedStatement {
            level: parts.level(came.needed, &shares),
            error: EstimateOutcome {
                estimated,
                // Of stopped work it is known by how much it exceeded its estimate, and nothing where it did not.
                real: if came.stopped { real.max(estimated) } else { real },
            },
            losses,
        }
    }

    /// Learns a statement that was judged, once its outcome is known.
    pub fn learn(&mut self, resource: &str, group: &K, judged: JudgedStatement) {
        self.calibrations.observe(group, judged.level);
        let errors = self.errors.entry(resource.to_owned()).or_default();
        errors.push(judged.error);
        if errors.len() > TRUST_RUNS {
            errors.remove(0);
        }
        let weights = self.weights.entry(resource.to_owned()).or_default();
        for (weight, losses) in weights.iter_mut().zip(judged.losses) {
            if let Some((with, without)) = losses {
                weight.learn(with, without);
            }
        }
    }
}

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
pub struct LearnedWeight {
    /// The losses without it less those with it, each outcome counting less than the next.
    lead: f64,
    outcomes: usize,
}

impl LearnedWeight {
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
