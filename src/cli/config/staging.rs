//! `[staging]` of the configuration: where the files of jobs may come from and go to.

use address::{AllowedAddresses, Policy};
use execution::staging::TransferRules;

use super::ranges::table;

/// Mebibytes beyond this are a slip of the pen.
const MIB_MAX: u64 = 1 << 30;

table! {
    "staging"
    /// The table as written.
    pub(in crate::cli) struct Staging {
        /// What the addresses begin with that files may come from and go to; none without it.
        allowed: Vec<String> = Vec::new();
        /// Whether these may be addresses that are not public.
        private_addresses: bool = false;
        /// Mebibytes of files that may be brought for one job, and as many that may be sent.
        job_mib: u64 = 4_096, 1..=MIB_MAX;
        /// Kibibytes a second at which the files of one job are moved; as many as there are without it.
        job_kib_per_second: Option<u64> = None, 1..=MIB_MAX;
    }
}

impl Staging {
    /// Checks it. Returns the wrong key and the expected value, if there is one.
    pub(in crate::cli) fn check(&self) -> Result<(), String> {
        self.check_ranges()?;
        self.addresses().map(drop)
    }

    /// The rules for moving files.
    pub(in crate::cli) fn rules(&self) -> TransferRules {
        TransferRules {
            // They have been checked.
            allowed: self.addresses().unwrap_or_default(),
            bytes_max: self.job_mib << 20,
            rate_max: self.job_kib_per_second.map(|kib| kib << 10),
        }
    }

    fn addresses(&self) -> Result<AllowedAddresses, String> {
        let policy = Policy {
            private_addresses: self.private_addresses,
        };
        AllowedAddresses::new(&self.allowed, policy).map_err(|why| format!("staging.allowed: {why}"))
    }
}
