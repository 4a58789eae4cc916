//! What another has to hold before it is promised here: a cluster, or a peer.
//!
//! Both go the same way. Something is wanted that this domain can promise only if another holds it. The plan keeps what it needs meanwhile. The
//! holder is asked outside of the decisions, by the executor of the cluster or by the service. Its word comes back as a command: it holds
//! it, it refuses, or it is silent ([`HolderWord`]). Then the promise is made, the same for both ([`promise`]), or what was kept is undone.
//!
//! | | a cluster ([`cluster`]) | a peer ([`peer`]) |
//! |---|---|---|
//! | wanted | a slot that begins soon | an offer that a peer holds; a place for an agreement that has lost its own |
//! | kept | a fixed slot, with the command ([`waiting_commands`]), in memory | the pending agreement with the offer; or the agreement on the peer's resource, with the peer's offer in a row: stored |
//! | asked | by the cluster's executor, which reads what is planned | under the agreement's key, as often as needed |
//! | its word | `KeepNodes`, `ReportReserving`; the command is decided again | `DecidePending`; `MoveToPeer`, `EndWithoutPeer` |
//! | silent | 20 seconds, then refused | no end, since it may hold it; a lost place: until its slot begins |
//! | refused | later slots, then refused here | rejected; a lost place: two more peers' offers |
//! | undone | what moved moves back | theirs is ended first |
//! | a crash | nothing was stored or promised: all is forgotten | nothing is forgotten: the question is repeated |
//!
//! The states stay two, because the last line is true of each for a reason. A cluster answers within seconds, while the requester
//! waits, and what it reserved for nothing it gives back. A peer is another domain, with an agreement of its own that costs money: that is in
//! force there whether or not this process lives.

pub(super) mod cluster;
pub(super) mod peer;
pub(super) mod promise;
pub(super) mod waiting_commands;

/// The word of a holder about what it was asked to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderWord<H, R> {
    /// It holds it.
    Held(H),
    /// It does not hold it, and will not.
    Refused(R),
    /// It has not said whether it does.
    Silent,
}
