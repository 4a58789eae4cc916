//! `[scheduling]` of the configuration: the placement of offers, and the budget of work of a decision.

use scheduler::admission::LeastGain;
use scheduler::domain::Objective;
use scheduler::{Fraction, Order};
use serde::Deserialize;

use super::ranges::within;
use crate::planner;

/// Alternatives further away than this are no alternatives.
const ALTERNATIVES_PERCENT_MAX: u32 = 10_000;
/// Less work finds no agreement that could make room; more work takes minutes.
const DECISION_WORK: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000;
/// A slot that is made longer than by all of itself was none.
pub(super) const OVERRUN_PERCENT_MAX: u32 = 100;
/// Times told in steps of more than a day say nothing.
const COARSEN_SECONDS_MAX: u32 = 86_400;

/// How offers are placed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::cli) struct Scheduling {
    /// The criterion for the better of two resources for an offer.
    #[serde(with = "ObjectiveName")]
    pub(in crate::cli) objective: Objective,
    /// The order in which waiting agreements are placed when others come.
    #[serde(with = "OrderName")]
    pub(in crate::cli) order: Order,
    /// How much work one decision may do on one resource.
    pub(in crate::cli) decision_work: u64,
    /// After which percentage of its wait an agreement moves no more; none for never.
    pub(in crate::cli) fix_after_percent: Option<u32>,
    /// How far outside the window alternatives may lie, in percent of the duration.
    pub(in crate::cli) alternatives_percent: u32,
    /// Whether a refusal tells the smallest changes that would have been accepted.
    pub(in crate::cli) relaxations: bool,
    /// Whether it is told when nodes are free.
    pub(in crate::cli) availability: bool,
    /// Refusals show times in steps of this number of seconds.
    pub(in crate::cli) coarsen_seconds: u32,
    /// Whether idle moments are used to give waiting agreements earlier places.
    improve: bool,
    /// The least gain of a move that no command waits for: this number of seconds,
    improve_seconds_min: u32,
    /// and this percentage of the wait.
    improve_percent_min: u32,
    /// How often one agreement is moved by these in an hour at most.
    improve_moves_per_hour: u32,
    /// By how much slots are made longer for work that is not over, in percent of their duration.
    pub(in crate::cli) overrun_percent: u32,
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

/// The criteria by which a provider can rank resources.
#[derive(Deserialize)]
#[serde(remote = "Objective", rename_all = "kebab-case")]
enum ObjectiveName {
    EarliestCompletion,
    Cheapest,
    LatestStart,
}

impl Default for Scheduling {
    fn default() -> Self {
        Self {
            objective: Objective::EarliestCompletion,
            order: Order::Mdf,
            decision_work: scheduler::admission::BUDGET,
            fix_after_percent: None,
            alternatives_percent: 100,
            relaxations: true,
            availability: true,
            coarsen_seconds: 1,
            improve: true,
            improve_seconds_min: 60,
            improve_percent_min: 1,
            improve_moves_per_hour: 4,
            overrun_percent: 0,
        }
    }
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
        within("scheduling.decision_work", self.decision_work, DECISION_WORK)?;
        for (key, value, range) in [
            (
                "alternatives_percent",
                self.alternatives_percent,
                0..=ALTERNATIVES_PERCENT_MAX,
            ),
            ("coarsen_seconds", self.coarsen_seconds, 1..=COARSEN_SECONDS_MAX),
            ("improve_seconds_min", self.improve_seconds_min, 1..=86_400),
            ("improve_percent_min", self.improve_percent_min, 0..=100),
            ("improve_moves_per_hour", self.improve_moves_per_hour, 1..=3_600),
            ("overrun_percent", self.overrun_percent, 0..=OVERRUN_PERCENT_MAX),
        ] {
            within(&format!("scheduling.{key}"), value, range)?;
        }
        Ok(())
    }

    pub(in crate::cli) fn improving(&self) -> planner::Improving {
        planner::Improving {
            // Moves in idle moments would defeat the purpose of a latest start.
            idle: self.improve && !matches!(self.objective, Objective::LatestStart),
            least_gain: LeastGain {
                seconds: self.improve_seconds_min.into(),
                of_wait: Fraction::percent(self.improve_percent_min),
            },
            moves_per_hour: self.improve_moves_per_hour as usize,
        }
    }
}
