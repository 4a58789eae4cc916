//! Reservations in a cluster: one for each slot of the plan, on nodes by name.

pub(super) mod calendar;
pub(super) mod dedicated;
pub(super) mod follow_plan;
pub(super) mod handover;
pub(super) mod kept_nodes;
pub(super) mod marks;
pub(super) mod needs;
pub(super) mod node_choice;
pub(super) mod refused_targets;
pub(super) mod reservation;
pub(super) mod reservation_rate;
pub(super) mod target;
