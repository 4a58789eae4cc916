//! Batches of decisions: their changes, the rows of these, the lease under which they are written, and the audit trail that each of
//! them goes on by.

pub(super) mod commit;
pub mod free_space;
pub(super) mod held_nodes;
pub mod known_trail;
pub mod leader;
pub(super) mod lease;
pub(super) mod rows;
pub(super) mod sums;
pub(super) mod tables;
pub(super) mod trail;
pub mod trail_end;
