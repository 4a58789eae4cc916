//! What happens to resources: operators and the configuration change them, and their nodes fail and come back.

pub(super) mod change;
pub(super) mod machines;
mod maintenance;
pub(super) mod node_status;
pub(super) mod orders;
pub(super) mod repair;
