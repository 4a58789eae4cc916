//! Agreements, one file a verb.

pub(super) mod accept;
pub(super) mod accept_at_peer;
pub(super) mod charges_at_peer;
mod check_acceptance;
pub(super) mod create;
pub(super) mod ending;
pub(super) mod evict;
pub(super) mod find;
mod forward;
pub(super) mod list;
pub(super) mod move_to;
pub(super) mod pending;
pub(super) mod place_at_peer;
mod repeated_offers;
pub(super) mod reservations;
pub(super) mod show;
pub(super) mod terminate;
