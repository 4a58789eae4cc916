//! `[prediction]` of the configuration: what estimates decide.

use scheduler::prediction::Ladder;
use serde::Deserialize;

use super::ranges::table;

table! {
    "prediction"
    /// What estimates decide.
    pub(in crate::cli) struct Prediction {
        /// The parts of an estimate by which slots are sized and resources chosen.
        choice: PredictionParts = PredictionParts::All;
    }
}

/// The parts that a provider can choose.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PredictionParts {
    /// None: slots are sized by past run times at the reference rate, and the earliest end of a slot is best.
    Off,
    /// The load of the processors.
    Load,
    /// The trust in the resources.
    Trust,
    /// All of them.
    All,
    /// Paper 004's estimate as printed.
    Published,
}

impl Prediction {
    /// The parts that decide; none where estimates decide nothing.
    pub(in crate::cli) fn ladder(&self) -> Option<Ladder> {
        match self.choice {
            PredictionParts::Off => None,
            PredictionParts::Load => Some(Ladder::Load),
            PredictionParts::Trust => Some(Ladder::Trust),
            PredictionParts::All => Some(Ladder::All),
            PredictionParts::Published => Some(Ladder::Published),
        }
    }
}
