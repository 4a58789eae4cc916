//! Jobs in a cluster: submitted into their reservations, followed to their ends, and their folders on the shared disk.

pub(super) mod accounting;
pub(super) mod disk;
pub(super) mod dry_run;
mod earlier_attempt;
pub(super) mod shared_folder;
pub(super) mod status;
