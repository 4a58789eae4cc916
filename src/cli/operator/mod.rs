//! Verbs of the operator, on the store, the service or a cluster.

pub(super) mod advise;
pub(super) mod backup;
pub(super) mod calibrate;
pub(super) mod cluster;
pub(super) mod config;
mod effects;
pub(super) mod evict;
pub(super) mod health;
pub(super) mod helper;
pub(super) mod key;
pub(super) mod ledger;
pub(super) mod maintenance;
pub(super) mod move_to;
pub(super) mod nodes;
pub(super) mod peers;
pub(super) mod resources;
pub(super) mod trail;
pub(super) mod verify;
