//! `[prediction]` of the configuration: what estimates decide.

use scheduler::prediction::Ladder;
use serde::Deserialize;

use super::ranges::table;

table! {
    "prediction"
    /// What estimates decide.
    pub(in crate::cli) struct Prediction {
        /// The parts of an estimate by which slots are sized and resources chosen.
        choice: Choice = Choice::All;
    }
}

/// The parts that a provider can choose.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Choice {
    /// None: slots are sized by past run times at the reference rate, and the earliest end of a slot is best.
    Off,
    /// The load of the processors.
    Load,
    /// The trust in the resources.
    Trust,
    /// All of them.
    All,
}

impl Prediction {
    /// The parts that decide; none where estimates decide nothing.
    pub(in crate::cli) fn ladder(&self) -> Option<Ladder> {
        match self.choice {
            Choice::Off => None,
            Choice::Load => Some(Ladder::Load),
            Choice::Trust => Some(Ladder::Trust),
            Choice::All => Some(Ladder::All),
        }
    }
}
