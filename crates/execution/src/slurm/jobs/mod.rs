//! Jobs in a cluster: submitted into their reservations, followed to their ends, and their folders on the shared disk.

pub(super) mod accounting;
pub(super) mod cancel;
pub(super) mod cluster_run;
pub(super) mod dry_run;
pub(super) mod ownership;
pub(super) mod script;
pub(crate) mod shared_disk;
pub(super) mod shared_folder;
pub(super) mod submission;
pub(super) mod verdict;
