//! `[history]` of the configuration: how much of the past is kept.

use serde::Deserialize;

use super::ranges::within;
use crate::prediction::HistoryPolicy;
use crate::store::SamplesKept;

/// Data older than a hundred years cannot come from this service.
const DAYS_MAX: u32 = 36_500;
/// More executions of one application on one resource tell nothing more.
const EACH_MAX: u32 = 1_000_000;

/// The table as written.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::cli) struct History {
    /// Days for which each execution is kept.
    executions_days: u32,
    /// Executions of each application on each resource that are kept longer.
    executions_each: u32,
    /// Days for which single samples of resources are kept.
    samples_days: u32,
    /// Days for which their means over hours are kept.
    hours_days: u32,
    /// Days after which the records of an ended agreement are archived.
    archive_days: u32,
}

impl Default for History {
    fn default() -> Self {
        Self {
            executions_days: 730,
            executions_each: 1_000,
            samples_days: 7,
            hours_days: 730,
            archive_days: 90,
        }
    }
}

impl History {
    /// Checks it. Returns the wrong key and the expected value, if there is one.
    pub(in crate::cli) fn check(self) -> Result<(), String> {
        for (key, value, max) in [
            ("executions_days", self.executions_days, DAYS_MAX),
            ("executions_each", self.executions_each, EACH_MAX),
            ("samples_days", self.samples_days, DAYS_MAX),
            ("hours_days", self.hours_days, DAYS_MAX),
            ("archive_days", self.archive_days, DAYS_MAX),
        ] {
            within(&format!("history.{key}"), value, 1..=max)?;
        }
        Ok(())
    }

    /// As a policy.
    pub(in crate::cli) fn policy(self) -> HistoryPolicy {
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
