//! `[history]` of the configuration: how much of the past is kept.

use learning::HistoryPolicy;
use store::samples::SamplesKept;

use super::ranges::table;

/// Data older than a hundred years cannot come from this service.
const DAYS_MAX: u32 = 36_500;
/// More executions of one application on one resource tell nothing more.
const EACH_MAX: u32 = 1_000_000;

table! {
    "history"
    /// The table as written.
    pub(in crate::cli) struct History {
        /// Days for which each execution is kept.
        executions_days: u32 = 730, 1..=DAYS_MAX;
        /// Executions of each application on each resource that are kept longer.
        executions_each: u32 = 1_000, 1..=EACH_MAX;
        /// Days for which single samples of resources are kept.
        samples_days: u32 = 7, 1..=DAYS_MAX;
        /// Days for which their means over hours are kept.
        hours_days: u32 = 730, 1..=DAYS_MAX;
        /// Days after which the records of an ended agreement are archived.
        archive_days: u32 = 90, 1..=DAYS_MAX;
    }
}

impl History {
    /// As a policy.
    pub(in crate::cli) fn policy(&self) -> HistoryPolicy {
        let seconds = |days: u32| i64::from(days) * 86_400;
        HistoryPolicy {
            kept: seconds(self.executions_days),
            each: self.executions_each,
            samples: SamplesKept {
                samples: seconds(self.samples_days),
                hours: seconds(self.hours_days),
            },
            archive_after: seconds(self.archive_days),
        }
    }
}
