//! Agreements, one file a verb.

pub(super) mod accept;
pub(super) mod at_peer;
mod begun;
pub(super) mod create;
pub(super) mod ending;
pub(super) mod evict;
pub(super) mod files;
pub(super) mod list;
pub(super) mod move_to;
pub(super) mod pending;
mod repeated;
pub(super) mod reservations;
pub(super) mod show;
mod sought;
pub(super) mod terminate;
