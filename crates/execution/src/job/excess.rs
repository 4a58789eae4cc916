//! A limit that a job exceeds.

use domain::agreement::Limit;
use serde::{Deserialize, Serialize};

/// More than a job may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Excess {
    /// The limited quantity.
    pub(crate) limit: Limit,
    /// How much there was; [`u64::MAX`] where there is no knowing.
    pub(crate) found: u64,
    /// How much there may be.
    pub(crate) most: u64,
}

impl Excess {
    /// In words for the job's standard error output.
    pub(crate) fn words(&self) -> String {
        let amount = |count: u64| match self.limit {
            Limit::Processes => count.to_string(),
            Limit::Memory | Limit::Files => format!("{} MiB", count.div_ceil(1 << 20)),
        };
        let what = match self.limit {
            Limit::Memory => "its processes had memory of",
            Limit::Processes => "its processes and their threads were",
            Limit::Files => "its files took",
        };
        if self.found == u64::MAX {
            let (what, why) = match self.limit {
                Limit::Files => (
                    "it wrote",
                    "it closes its folders, or runs a program that may not be read or threads that end before they are looked at",
                ),
                Limit::Memory | Limit::Processes => (
                    "memory it has",
                    "it runs a program that may not be read or threads that end before they are looked at",
                ),
            };
            return format!("bespeak: stopped, because there is no knowing how much {what}: {why}");
        }
        let (found, most) = (amount(self.found), amount(self.most));
        format!("bespeak: stopped, because {what} {found}; it may have {most}")
    }
}
