//! What another has to hold before it is promised here: a cluster, or a peer.
//!
//! Both go the same way. Something is wanted that this domain can promise only if another, the holder, keeps it. The plan keeps what it needs
//! meanwhile. The holder is asked outside of the decisions, by the executor of the cluster or by the service. Its word comes back as a
//! command: it holds, refuses, or is silent ([`HolderWord`]). Then the promise is made, or what was kept is undone. An offer that is accepted
//! becomes an agreement in one way for both ([`promise`]).
//!
//! | | a cluster ([`cluster`]) | a peer ([`peer`]) |
//! |---|---|---|
//! | wanted | a slot that begins soon | an offer that a peer holds; a place for an agreement that has lost its own |
//! | kept | a fixed slot, with the command ([`waiting_commands`]), in memory | the pending agreement with the offer; or the agreement on the peer's resource, with the peer's offer in a row: stored |
//! | asked | by the cluster's executor, which reads what is planned | by the service, under a key that is stored first |
//! | its word | `KeepNodes`, `ReportReserving`; the command is decided again | `DecidePending`; `MoveToPeer`, `EndWithoutPeer` |
//! | silent | 20 seconds, then refused | asked again without end, since it may hold it; a lost place: until its slot begins |
//! | refused | a later slot, five in all | ours is rejected; a lost place: another offer of peers, three in all |
//! | undone | what moved moves back | theirs is ended first; of a lost place ours, and then theirs by the follower |
//! | a crash | nothing was stored or promised: all is forgotten | nothing is forgotten: the question is repeated |
//!
//! There are two states, for the reason in the last line. A cluster answers within seconds, while the requester waits, and its executor gives back
//! what was reserved for nothing. A peer is another domain: its agreement is in force there, and costs money, whether or not this process
//! lives. So all that is known of it stands in agreements and rows, and a value in memory beside them could only differ from these.

pub(super) mod cluster;
pub(super) mod peer;
pub(super) mod promise;
pub(super) mod waiting_commands;

/// The word of a holder about what it was asked to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderWord<H, R> {
    /// The holder keeps the nodes, or has made the agreement, that it was asked for.
    Held(H),
    /// The holder keeps and makes nothing, and will not.
    Refused(R),
    /// The holder has not said whether it does.
    Silent,
}
