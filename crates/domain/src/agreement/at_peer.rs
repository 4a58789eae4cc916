//! What another domain, a peer, holds and carries out for agreements here.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AgreementState, GuaranteeState, JobEnd, Money};
use crate::clock::Micros;

/// A peer's offer behind an offer of ours: all that accepts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldAtPeer {
    /// The address of the negotiation there.
    pub negotiation: String,
    /// The id of the peer's offer.
    pub offer: String,
    /// Its words, which accept it.
    pub document: String,
    /// Its price there, where something is charged.
    pub price: Option<Money>,
    /// Its planned start and end there, in seconds.
    pub slot: (i64, i64),
    /// The address of the peer's agreement that it takes the place of, where it changes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

/// A guarantee of a peer's agreement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuaranteeAtPeer {
    /// The name that its term has there.
    pub name: String,
    /// Its state.
    pub state: GuaranteeState,
}

/// An agreement of ours that a peer carries out by an agreement with us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtPeer {
    /// The key under which the peer was asked for it.
    pub id: Uuid,
    /// Ours.
    pub agreement: Uuid,
    /// The name of the peer, which is that of its resource here.
    pub peer: String,
    /// The address of the peer's; none until it is known to be made.
    pub address: Option<String>,
    /// The peer's offer that it is made of, until then.
    pub intent: Option<HeldAtPeer>,
    /// Its price there.
    pub price: Option<Money>,
    /// When the peer was asked for it, by our clock.
    pub made: Micros,
    /// Its state there as it was last seen, in the word of the specification.
    pub state: String,
    /// The peer's charge for it, in millionths of the price's currency.
    pub charged: i64,
    /// The peer's payments for broken guarantees, in millionths of the same.
    pub paid_back: i64,
    /// Whether the peer has lost it: it was to carry it out and did not.
    pub lost: bool,
    /// Its guarantees as they were last seen there.
    pub guarantees: Vec<GuaranteeAtPeer>,
    /// When it was over there and its money was posted here; none before.
    pub settled: Option<Micros>,
}

impl AtPeer {
    /// An agreement for which a peer is to be asked under a key, by accepting what the peer holds.
    pub fn intended(key: Uuid, agreement: Uuid, peer: String, held: HeldAtPeer, now: Micros) -> Self {
        Self {
            id: key,
            agreement,
            peer,
            address: None,
            price: held.price,
            intent: Some(held),
            made: now,
            state: AgreementState::Pending.word().to_owned(),
            charged: 0,
            paid_back: 0,
            lost: false,
            guarantees: Vec::new(),
            settled: None,
        }
    }

    /// This agreement after the peer has made it, at an address.
    #[must_use]
    pub fn made_at(self, address: String) -> Self {
        Self {
            address: Some(address),
            intent: None,
            state: AgreementState::Observed.word().to_owned(),
            ..self
        }
    }

    /// This agreement after the peer has refused to make it.
    #[must_use]
    pub fn refused(self, now: Micros) -> Self {
        Self {
            state: AgreementState::Rejected.word().to_owned(),
            settled: Some(now),
            ..self
        }
    }
}

/// How an agreement at a peer stands, as it was seen there.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenAtPeer {
    /// The row as it is from now on.
    pub row: AtPeer,
    /// Its planned start and end there, in seconds, where they are said.
    pub slot: Option<(i64, i64)>,
    /// When the peer has handed its nodes over, where it runs nothing and that was not known.
    pub started: Option<Micros>,
    /// Why the peer does not carry it out any more, where that is so before its time.
    pub lost: Option<String>,
    /// How its work ended, where ours waits still: it ran earlier than was known here.
    pub ended: Option<JobEnd>,
}
