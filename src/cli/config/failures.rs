//! `[failures]` of the configuration: how failures of nodes are taken.

use serde::Deserialize;

use super::ranges::table;

/// Nodes that are thought to be gone for longer than a year are gone.
const REPAIR_HOURS_MAX: u32 = 8_760;

/// A node that has been up for a day is up.
const SETTLE_SECONDS_MAX: u32 = 86_400;

table! {
    "failures"
    /// How failures of nodes are taken, as written.
    pub(in crate::cli) struct Failures {
        repair_hours: u32 = 24, 1..=REPAIR_HOURS_MAX;
        settle_seconds: u32 = 300, 0..=SETTLE_SECONDS_MAX;
        /// The treatment of the guarantees when an operator takes back the time of an agreement.
        taken_back: TakenBack = TakenBack::Violated;
    }
}

/// How guarantees are judged where an operator takes the time of an agreement back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TakenBack {
    /// As always: a guarantee that was not kept is violated, and pays.
    Violated,
    /// A guarantee that was not kept pays nothing.
    Excused,
}

impl Failures {
    pub(in crate::cli) fn planner(&self) -> planner::Failures {
        planner::Failures {
            repair: i64::from(self.repair_hours) * 3_600,
            settle: i64::from(self.settle_seconds),
            taken_back_pays: self.taken_back == TakenBack::Violated,
        }
    }
}
