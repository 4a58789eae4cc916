//! Negotiations: opened, shown and ended, and the offers that are exchanged in them.

pub(super) mod answers;
pub(super) mod counter_offers;
pub(super) mod demands;
pub(super) mod end;
pub(super) mod exchange;
pub(super) mod flat_offers;
pub(super) mod incoming_offer;
pub(super) mod initiate;
pub(super) mod list;
pub(super) mod negotiation;
pub(super) mod peer_offers;
pub(super) mod proposals;
pub(super) mod relaxations;
pub(super) mod show;
