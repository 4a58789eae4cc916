//! `[execution]` of the configuration: what jobs on this machine may have.

use serde::Deserialize;

use crate::catalogue::{JobLimits, LimitKeys};
use crate::execution::limits;

/// The table as written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Execution {
    /// What a job may have where neither its application nor its resource says anything.
    limits: LimitKeys,
}

impl Execution {
    /// Checks it; the key that is wrong and what was expected, if one is.
    pub(super) fn check(&self) -> Result<(), String> {
        JobLimits::try_from(self.limits)
            .map(drop)
            .map_err(|why| format!("execution.{why}"))
    }

    /// What a job may have where nobody else says anything.
    pub(super) fn limits(&self) -> JobLimits {
        // It has been checked.
        let own = JobLimits::try_from(self.limits).unwrap_or_default();
        own.or(limits::defaults())
    }
}
