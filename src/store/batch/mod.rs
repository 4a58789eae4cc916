//! Batches of decisions: their changes, the rows of these, the lease under which they are written, and the audit trail that each of
//! them goes on by.

pub(super) mod change;
pub(super) mod commit;
pub(super) mod held;
pub(super) mod known;
pub(super) mod leader;
pub(super) mod lease;
pub(super) mod room;
pub(super) mod sums;
pub(super) mod tables;
pub(super) mod trail;
