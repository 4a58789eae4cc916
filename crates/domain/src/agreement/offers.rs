//! Negotiations and their offers as values: the proposal, its side, the offer that it answers, and the nodes that are held for
//! it.
//!
//! An offer never changes its words. Two things change. Its state only ever goes to Rejected. The nodes held for it are taken
//! over by an agreement, given back, or lapse with the offer.

use scheduler::{Interval, Seconds, Time, worded};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::stored_time::StoredTime;
use super::{
    EnergyUse, Guarantee, HeldAtPeer, Job, Money, NegotiationRole, OfferKind, OfferState,
    PlacementConstraints, Slots, Stretch,
};
use crate::clock::Micros;

/// A negotiation as the planner holds it and the store keeps it, without its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiationInstance {
    /// Assigned by the service; `UUIDv7`, so that ids sort by creation.
    pub id: Uuid,
    /// The party that asked for it and alone may see it.
    pub party: String,
    /// The agreement that it is to replace, where it is a renegotiation.
    pub agreement: Option<Uuid>,
    /// When it was asked for.
    pub created: Micros,
    /// From when on nothing more is negotiated or accepted.
    pub expires: Time,
    /// When it was ended before that, if it was.
    pub ended: Option<Micros>,
    /// Why the provider has opened it by itself; none where its party has.
    pub proposed: Option<ProposalReason>,
}

worded! {
    /// Why the provider proposes a change by itself.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ProposalReason {
        /// Another place for the agreement would make room for another request.
        BetterFit = "better-fit",
        /// The agreement could not be kept: this is offered instead.
        Broken = "broken",
    }
}

impl NegotiationInstance {
    /// The agreement that each of its offers would change. None for a new one, and in place of one that could not be kept.
    pub fn changed_agreement(&self) -> Option<Uuid> {
        self.agreement
            .filter(|_| self.proposed != Some(ProposalReason::Broken))
    }

    /// How it stands at `now`.
    pub fn state(&self, now: Time) -> NegotiationState {
        if self.ended.is_some() {
            NegotiationState::Terminated
        } else if self.expires <= now {
            NegotiationState::Expired
        } else {
            NegotiationState::Open
        }
    }
}

worded! {
    /// How a negotiation stands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum NegotiationState {
        /// Offers are taken.
        Open = "open",
        /// Its time is over.
        Expired = "expired",
        /// Its party has ended it.
        Terminated = "terminated",
    }
}

/// An offer or counter offer, without its document.
#[derive(Debug, Clone, PartialEq)]
pub struct NegotiationOffer {
    /// Assigned by the service; `UUIDv7`, so that ids sort by creation.
    pub id: Uuid,
    /// The negotiation that it was made in.
    pub negotiation: Uuid,
    /// Its `OfferId`, unique in its negotiation: the requester's own choice, or the id in words.
    pub name: String,
    /// The offer that it answers; none where that is the template.
    pub parent: Option<Uuid>,
    /// The side that made it.
    pub creator: NegotiationRole,
    /// Its state.
    pub state: OfferState,
    /// When it came or was made.
    pub created: Micros,
    /// From when on it is no longer taken.
    pub expires: Option<Time>,
    /// The terms of a counter offer that can be accepted.
    pub terms: Option<OfferTerms>,
    /// Of one that is rejected: why, as JSON of the refusal's flat rendering.
    pub refusal: Option<String>,
    /// Since when its nodes are held, if ever.
    pub held: Option<Micros>,
    /// Since when they are no longer, if so.
    pub released: Option<Micros>,
    /// The agreement that was made from it.
    pub agreement: Option<Uuid>,
}

impl NegotiationOffer {
    /// Whether nodes are kept for it at the moment.
    pub fn is_held(&self) -> bool {
        self.held.is_some() && self.released.is_none()
    }

    /// Whether it may still be answered: it is neither rejected nor accepted.
    pub fn is_open(&self) -> bool {
        self.state != OfferState::Rejected && self.agreement.is_none()
    }

    /// Whether the service has taken it back: it was held, and could not be kept any longer.
    pub fn is_withdrawn(&self) -> bool {
        self.state == OfferState::Rejected && self.held.is_some() && self.refusal.is_some()
    }

    /// Whether its time is over at `now`.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// The terms of a counter offer: place, time and price.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferTerms {
    /// The resource that it lies on.
    pub resource: String,
    /// The slots that the agreement would have at first; it may move inside its window afterwards.
    #[serde(flatten, with = "super::slots::stored_slots")]
    pub slots: Slots,
    /// Earliest start of the agreement that it would become.
    #[serde(with = "StoredTime")]
    pub ready: Time,
    /// Latest completion of that agreement.
    #[serde(with = "StoredTime")]
    pub deadline: Time,
    /// Until when its last slot is held: one that begins before the offer expires is held for
    /// as long as it takes to begin it at the last moment.
    #[serde(with = "StoredTime")]
    pub kept_until: Time,
    /// How far it lies from the request: the greatest of its deviations in time, size and length.
    pub deviation: f64,
    /// In which way it differs from the request.
    pub kind: OfferKind,
    /// Probability that it completes in time, where it is known.
    pub confidence: Option<f64>,
    /// Its price, where something is charged.
    pub price: Option<Money>,
    /// By how much that is more than the agreement that it replaces costs.
    pub difference: Option<Money>,
    /// The price of changing an agreement, besides.
    pub fee: Option<Money>,
    /// Why that is as much, in words, where there is one and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee_why: Option<String>,
    /// The parts of that price for the shapes that it may have, where it is less by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discounts: Option<PriceDiscounts>,
    /// The peer's offer behind it, where a peer would carry it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Box<HeldAtPeer>>,
    /// The energy of its slots, where the power of their nodes is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyUse>,
    /// The rest of the agreement, as it was understood when this was offered: a later change of templates or applications does
    /// not change it. None where it cannot be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Box<Promise>>,
}

/// How much less something costs by the shapes that the provider may choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PriceDiscounts {
    /// Because its work may be cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptive: Option<Money>,
    /// By how many shapes it may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shapes: Option<Money>,
}

/// The promises of an offer beside its place and price.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// The template that it was made from.
    pub template: String,
    /// The other places and sizes that the agreement may have.
    #[serde(rename = "leeway")]
    pub constraints: PlacementConstraints,
    /// The job to run.
    pub job: Option<Job>,
    /// The guarantee terms.
    pub guarantees: Vec<Guarantee>,
}

impl OfferTerms {
    /// Nodes: the most that one of its slots has.
    pub fn nodes(&self) -> u32 {
        self.slots.nodes()
    }

    /// Seconds of its slots together.
    pub fn duration(&self) -> Seconds {
        self.slots.seconds()
    }

    /// Where the agreement would lie at first: from the start of its first slot to the end of its last.
    pub fn placement(&self) -> Interval {
        self.slots.placement()
    }

    /// Where the agreement may lie.
    pub fn window(&self) -> Interval {
        Interval::new(self.ready, self.deadline)
    }

    /// Node-seconds.
    pub fn node_seconds(&self) -> u128 {
        self.slots.node_seconds()
    }

    /// The nodes that are held for it, in order of time: the time between two slots is not held, nor the rest of a slot that was
    /// over before.
    pub fn kept(&self) -> Vec<Stretch> {
        let occupied = self.slots.iter().map(|slot| (slot.occupied(), slot.nodes));
        let mut kept: Vec<_> = occupied.collect();
        if let Some((last, _)) = kept.last_mut() {
            last.end = self.kept_until;
        }
        kept
    }
}
