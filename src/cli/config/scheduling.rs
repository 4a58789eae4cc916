//! `[scheduling]` of the configuration: the placement of offers, and the budget of work of a decision.

use scheduler::domain::Objective;
use scheduler::schedule::{DecisionRule, LeastGain};
use scheduler::{Fraction, Order};
use serde::{Deserialize, Deserializer};

use super::ranges::table;

/// Alternatives further away than this are no alternatives.
const ALTERNATIVES_PERCENT_MAX: u32 = 10_000;
/// Less work finds no agreement that could make room; more work takes minutes.
const DECISION_WORK: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000;
/// A slot that is made longer than by all of itself was none.
pub(super) const OVERRUN_PERCENT_MAX: u32 = 100;
/// Times told in steps of more than a day say nothing.
const COARSEN_SECONDS_MAX: u32 = 86_400;

table! {
    "scheduling"
    /// How offers are placed.
    pub(in crate::cli) struct Scheduling {
        /// The criterion for the better of two resources for an offer, where it is set.
        #[serde(deserialize_with = "set_objective")]
        pub(in crate::cli) objective: Option<Objective> = None;
        /// The order in which waiting agreements are placed when others come.
        #[serde(with = "OrderName")]
        pub(in crate::cli) order: Order = Order::Mdf;
        /// What is decided about an offer that fits the plan as it stands.
        #[serde(with = "DecisionName")]
        pub(in crate::cli) decision: DecisionRule = DecisionRule::Standing;
        /// How much work one decision may do on one resource.
        pub(in crate::cli) decision_work: u64 = scheduler::schedule::BUDGET, DECISION_WORK;
        /// After which percentage of its wait an agreement moves no more; none for never.
        pub(in crate::cli) fix_after_percent: Option<u32> = None;
        /// How far outside the window alternatives may lie, in percent of the duration.
        alternatives_percent: u32 = 100, 0..=ALTERNATIVES_PERCENT_MAX;
        /// Whether a refusal tells the smallest changes that would have been accepted.
        relaxations: bool = true;
        /// Whether it is told when nodes are free.
        availability: bool = true;
        /// Refusals show times in steps of this number of seconds.
        coarsen_seconds: u32 = 1, 1..=COARSEN_SECONDS_MAX;
        /// Whether idle moments are used to give waiting agreements earlier places.
        improve: bool = true;
        /// The least gain of a move that no command waits for: this number of seconds,
        improve_seconds_min: u32 = 60, 1..=86_400;
        /// and this percentage of the wait.
        improve_percent_min: u32 = 1, 0..=100;
        /// How often one agreement is moved by these in an hour at most.
        improve_moves_per_hour: u32 = 4, 1..=3_600;
        /// By how much slots are made longer for work that is not over, in percent of their duration.
        pub(in crate::cli) overrun_percent: u32 = 0, 0..=OVERRUN_PERCENT_MAX;
    }
}

/// The orders that a provider can choose.
#[derive(Deserialize)]
#[serde(remote = "Order", rename_all = "lowercase")]
enum OrderName {
    Fifo,
    Bjf,
    Lff,
    Edf,
    Mdf,
    Brf,
}

/// The rules that a provider can choose for an offer that fits the plan as it stands.
#[derive(Deserialize)]
#[serde(remote = "DecisionRule", rename_all = "lowercase")]
enum DecisionName {
    Standing,
    Published,
}

/// The criteria by which a provider can rank resources.
#[derive(Deserialize)]
#[serde(remote = "Objective", rename_all = "kebab-case")]
enum ObjectiveName {
    EarliestCompletion,
    Cheapest,
    LatestStart,
    LeastWorkLost,
}

fn set_objective<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Objective>, D::Error> {
    ObjectiveName::deserialize(from).map(Some)
}

impl Scheduling {
    pub(in crate::cli) fn check(&self) -> Result<(), String> {
        if let Some(percent) = self.fix_after_percent
            && percent > 100
        {
            return Err(format!(
                "scheduling.fix_after_percent: expected 0 to 100, or none for never, found {percent}"
            ));
        }
        self.check_ranges()
    }

    pub(in crate::cli) fn refusals(&self) -> planner::Refusals {
        planner::Refusals {
            alternatives_phi: Fraction::percent(self.alternatives_percent),
            relaxations: self.relaxations,
            availability: self.availability,
            coarsen: i64::from(self.coarsen_seconds),
        }
    }

    pub(in crate::cli) fn improving(&self, objective: Objective) -> planner::ImprovementSettings {
        planner::ImprovementSettings {
            // Moves in idle moments would defeat the purpose of a start that is not the first fit.
            idle: self.improve && !matches!(objective, Objective::LatestStart | Objective::LeastWorkLost),
            least_gain: LeastGain {
                seconds: self.improve_seconds_min.into(),
                of_wait: Fraction::percent(self.improve_percent_min),
            },
            moves_per_hour: self.improve_moves_per_hour as usize,
        }
    }
}
