//! `[execution]` of the configuration: the limits of jobs on this machine, and how long their files are kept.

use scheduler::Seconds;
use serde::Deserialize;

use super::ranges::within;
use crate::catalogue::{JobLimits, LimitKeys};
use crate::execution::job::limits;

/// Files that are to be kept for longer than ten years are to be kept elsewhere.
const KEEP_DAYS_MAX: u32 = 3_650;
/// Mebibytes beyond this are a slip of the pen.
const MIB_MAX: u64 = 1 << 30;

/// The table as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::cli) struct Execution {
    /// The limits of a job where neither its application nor its resource sets any.
    limits: LimitKeys,
    /// Mebibytes that the folders of one party's jobs may have together.
    party_folders_mib: u64,
    /// Days after its end for which the folder of a job is kept.
    keep_folders_days: u32,
}

impl Default for Execution {
    fn default() -> Self {
        Self {
            limits: LimitKeys::default(),
            party_folders_mib: 65_536,
            keep_folders_days: 30,
        }
    }
}

impl Execution {
    /// Checks it. Returns the wrong key and the expected value, if there is one.
    pub(in crate::cli) fn check(&self) -> Result<(), String> {
        for (key, value, max) in [
            ("party_folders_mib", self.party_folders_mib, MIB_MAX),
            (
                "keep_folders_days",
                u64::from(self.keep_folders_days),
                u64::from(KEEP_DAYS_MAX),
            ),
        ] {
            within(&format!("execution.{key}"), value, 1..=max)?;
        }
        JobLimits::try_from(self.limits)
            .map(drop)
            .map_err(|why| format!("execution.{why}"))
    }

    /// The limits of a job where nothing else sets any.
    pub(in crate::cli) fn limits(&self) -> JobLimits {
        // It has been checked.
        let own = JobLimits::try_from(self.limits).unwrap_or_default();
        own.or(limits::defaults())
    }

    /// Bytes that the folders of one party's jobs may have together.
    pub(in crate::cli) fn party_folders(&self) -> u64 {
        self.party_folders_mib << 20
    }

    /// How long after its end the folder of a job is kept.
    pub(in crate::cli) fn folders_kept(&self) -> Seconds {
        i64::from(self.keep_folders_days) * 86_400
    }
}
