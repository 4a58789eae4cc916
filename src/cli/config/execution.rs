//! `[execution]` of the configuration: the limits of jobs on this machine, and how long their files are kept.

use std::path::PathBuf;

use domain::catalogue::{JobLimits, LimitKeys};
use execution::files::cluster_records::ClusterRecords;
use execution::job::limits;
use scheduler::Seconds;

use super::ranges::table;

/// Files that are to be kept for longer than ten years are to be kept elsewhere.
const KEEP_DAYS_MAX: u32 = 3_650;
/// Mebibytes beyond this are a slip of the pen.
const MIB_MAX: u64 = 1 << 30;

table! {
    "execution"
    /// The table as written.
    pub(in crate::cli) struct Execution {
        /// The limits of a job where neither its application nor its resource sets any.
        limits: LimitKeys = LimitKeys::default();
        /// Mebibytes that the folders of one party's jobs may have together.
        party_folders_mib: u64 = 65_536, 1..=MIB_MAX;
        /// Days after its end for which the folder of a job is kept.
        keep_folders_days: u32 = 30, 1..=KEEP_DAYS_MAX;
        /// The folder with the records of clusters, which all processes on one database have in common; the data folder without.
        pub(in crate::cli) cluster_records: Option<PathBuf> = None;
    }
}

impl Execution {
    /// Checks it. Returns the wrong key and the expected value, if there is one.
    pub(in crate::cli) fn check(&self) -> Result<(), String> {
        self.check_ranges()?;
        if let Some(path) = self.cluster_records.as_ref().filter(|path| !path.is_absolute()) {
            let path = path.display();
            return Err(format!(
                "execution.cluster_records: expected an absolute path, found {path}"
            ));
        }
        JobLimits::try_from(self.limits)
            .map(drop)
            .map_err(|why| format!("execution.{why}"))
    }

    /// The folder with the records of clusters, where it is not the data folder.
    ///
    /// # Errors
    /// Where it cannot be used, in words.
    pub(in crate::cli) fn records(&self) -> Result<Option<ClusterRecords>, String> {
        let Some(path) = &self.cluster_records else {
            return Ok(None);
        };
        let opened = ClusterRecords::open(path).map(Some);
        opened.map_err(|why| format!("execution.cluster_records: {}: {why}", path.display()))
    }

    /// The limits of a job where nothing else sets any.
    pub(in crate::cli) fn limits(&self) -> JobLimits {
        // It has been checked.
        let own = JobLimits::try_from(self.limits).unwrap_or_default();
        own.or(limits::default_limits())
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
