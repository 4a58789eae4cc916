//! Reservations in a cluster: one for each slot of the plan, on nodes by name.

pub(super) mod change;
pub(super) mod dedicated;
pub(super) mod follow_plan;
pub(super) mod handover;
pub(super) mod node_choice;
pub(super) mod rate;
pub(super) mod target;
pub(super) mod targets;
