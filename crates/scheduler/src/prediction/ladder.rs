//! Which parts an estimate counts, and what the outcomes say of each choice.
//!
//! Each ladder of parts learns by itself, so that their statements can be compared: it has its weights for each resource, its
//! calibration, its errors for the trust, and its reliability. A statement is made from what was known when it was asked for;
//! outcomes are learned when work ends.

use std::collections::BTreeMap;

use super::calibration::Calibrations;
use super::estimate::{EstimateOutcome, TRUST_RUNS, rt};
use super::parts::{Part, Parts, Shares};
use super::weights::{Weight, prediction_loss};
use super::{Calibration, Reliability, whole_seconds};

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
    }
}

impl Ladder {
    /// The share of a part that is not learned: the wait for the process is a part of every execution time (algorithm 1, line 8),
    /// and the other parts are left out. `None` where it is learned for each resource.
    pub fn fixed(self, part: Part) -> Option<f64> {
        match (self, part) {
            (Self::All, _)
            | (Self::Load, Part::Load)
            | (Self::Trust, Part::Trust)
            | (Self::Transfers, Part::Transfers | Part::Queue) => None,
            (_, Part::Queue) => Some(1.0),
            _ => Some(0.0),
        }
    }

    /// Whether it counts a part.
    pub fn counts(self, part: Part) -> bool {
        self.fixed(part) != Some(0.0)
    }
}

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
    weights: BTreeMap<String, [Weight; Part::ALL.len()]>,
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
            let learned = weights.map_or_else(Weight::default, |weights| weights[part as usize]);
            self.ladder.fixed(part).unwrap_or(learned.value())
        })
    }

    /// The weights that were learned, by resource.
    pub fn weights(&self) -> impl Iterator<Item = (&str, &[Weight; Part::ALL.len()])> {
        self.weights.iter().map(|(name, weight)| (name.as_str(), weight))
    }

    /// RT of a resource: the mean of estimated − real over the last executions there. The estimates are those without the trust,
    /// so that a correction that is right does not take away its own reason. `None` without any.
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
        let untrusting = shares.with(Part::Trust, 0.0);
        let mean = parts.mean(&untrusting, calibration);
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
