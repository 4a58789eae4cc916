//! The lines of the audit trail besides the timelines of agreements: the course of negotiations, refusals, changes of keys, and
//! the states of nodes that operators set.

use scheduler::{Interval, counted, worded};
use uuid::Uuid;

use super::{
    Agreement, NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState, OfferTerms, ProposalReason,
};
use crate::clock::{Micros, time_in_words};

/// A line of the audit trail that is no agreement's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// When it happened.
    pub at: Micros,
    /// The kind of the event.
    pub kind: NoteKind,
    /// The negotiation, offer, request, key or saying that it happened to.
    pub subject: Uuid,
    /// The negotiation that it belongs to, where it is one's.
    pub negotiation: Option<Uuid>,
    /// The party that it belongs to, where that does not follow from the negotiation.
    pub party: Option<String>,
    /// The particulars, in words.
    pub detail: String,
}

worded! {
    /// The events that change no agreement.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum NoteKind {
        /// A negotiation was opened.
        Negotiating = "negotiating",
        /// The provider has opened a negotiation by itself.
        Proposed = "proposed",
        /// Its party has ended a negotiation.
        Withdrawn = "withdrawn",
        /// The requester has made an offer.
        Asked = "asked",
        /// The service has made an offer.
        Countered = "countered",
        /// The service has refused a request.
        Refused = "refused",
        /// The requester wants an offer no longer.
        Declined = "declined",
        /// An agreement was made from an offer.
        Taken = "taken",
        /// An offer is held no longer, because its time is over.
        Lapsed = "lapsed",
        /// An offer is held no longer, because another one was taken or something that it relied on has changed.
        Released = "released",
        /// A key was made.
        KeyAdded = "key-added",
        /// A key was revoked.
        KeyRevoked = "key-revoked",
        /// A key expires at another time than before.
        KeyExpires = "key-expires",
        /// A person has signed in to the pages with a key.
        SignedIn = "signed-in",
        /// Sign-ins have failed, one or many.
        SignInFailed = "sign-in-failed",
        /// The slot of an agreement begins in a while.
        Starting = "starting",
        /// Many agreements have moved, as a record says.
        MovesRecorded = "moves-recorded",
        /// An operator has set the states of nodes.
        NodesSaid = "nodes-said",
        /// A resource was added or changed, by an operator or by the configuration.
        ResourceChanged = "resource-changed",
        /// An operator has made an agreement for a party, moved it, or ended it.
        ByOperator = "by-operator",
        /// An operator has restored the database to the line before: later lines that were known are gone.
        Restored = "restored",
        /// Something was stored that no other line tells of.
        Stored = "stored",
        /// Executions of long ago became sums of their hours.
        Summed = "summed",
    }
}

impl Note {
    /// One about a subject, which may be of a negotiation, and of a party only where that follows from the negotiation.
    pub fn new(
        at: Micros,
        kind: NoteKind,
        (subject, negotiation): (Uuid, Option<Uuid>),
        detail: String,
    ) -> Self {
        Self {
            at,
            kind,
            subject,
            negotiation,
            party: None,
            detail,
        }
    }

    /// That a negotiation was opened.
    pub fn of_opening(instance: &NegotiationInstance) -> Self {
        let id = instance.id;
        let about = instance.agreement.map(|agreement| agreement.to_string());
        let about = about.as_deref().unwrap_or("something new");
        let (kind, detail) = match (instance.proposed, instance.agreement) {
            (Some(ProposalReason::BetterFit), _) => (
                NoteKind::Proposed,
                format!("another place for {about}, which would let others in, in {id}"),
            ),
            (Some(ProposalReason::Broken), _) => (
                NoteKind::Proposed,
                format!("other places instead of {about}, which could not be kept, in {id}"),
            ),
            (None, None) => (NoteKind::Negotiating, format!("about {about}, in {id}")),
            (None, Some(_)) => (
                NoteKind::Negotiating,
                format!("about a change of {about}, in {id}"),
            ),
        };
        Self {
            party: Some(instance.party.clone()),
            ..Self::new(instance.created, kind, (id, Some(id)), detail)
        }
    }

    /// That the next slot of an agreement begins in a while.
    pub fn of_start(agreement: &Agreement, at: Micros) -> Self {
        let detail = format!(
            "{} begins at {}",
            agreement.id,
            time_in_words(agreement.slot().start)
        );
        Self {
            party: Some(agreement.party.clone()),
            ..Self::new(at, NoteKind::Starting, (agreement.id, None), detail)
        }
    }

    /// What an operator of a party has done with an agreement.
    pub fn of_operator(at: Micros, operator: &str, agreement: Uuid, detail: String) -> Self {
        Self {
            party: Some(operator.to_owned()),
            ..Self::new(at, NoteKind::ByOperator, (agreement, None), detail)
        }
    }

    /// That a negotiation was ended before its time.
    pub fn of_ending(negotiation: Uuid, at: Micros) -> Self {
        let detail = format!("ended {negotiation}");
        Self::new(at, NoteKind::Withdrawn, (negotiation, Some(negotiation)), detail)
    }

    /// That an offer was made.
    pub fn of_new_offer(offer: &NegotiationOffer) -> Self {
        let note = |kind, detail| Self::of(offer, offer.created, kind, detail);
        let name = &offer.name;
        match (offer.creator, offer.state) {
            (NegotiationRole::Initiator, state) => note(NoteKind::Asked, format!("{name}: {}", state.word())),
            (NegotiationRole::Responder, OfferState::Rejected) => note(
                NoteKind::Refused,
                format!("{name}: {}", note_of_rejected_offer(offer)),
            ),
            (NegotiationRole::Responder, state) => {
                let terms = offer.terms.as_ref().map_or_else(String::new, note_of_offer_terms);
                let held = if offer.is_held() { ", held" } else { "" };
                note(
                    NoteKind::Countered,
                    format!("{name}: {}{held}{terms}", state.word()),
                )
            }
        }
    }

    /// The end of an offer, by `now` where it does not say when.
    pub fn of_offer(offer: &NegotiationOffer, now: Micros) -> Self {
        let at = offer.released.unwrap_or(now);
        let note = |kind, detail| Self::of(offer, at, kind, detail);
        let name = &offer.name;
        match (offer.agreement, offer.state) {
            (Some(agreement), _) => note(NoteKind::Taken, format!("{name} by {agreement}")),
            // Something that it relied on is gone.
            (None, _) if offer.is_withdrawn() => note(
                NoteKind::Released,
                format!("{name}: {}", note_of_rejected_offer(offer)),
            ),
            (None, OfferState::Rejected) => note(NoteKind::Declined, name.clone()),
            _ => {
                let lapsed = offer.is_expired(crate::clock::second_of(at));
                let kind = if lapsed {
                    NoteKind::Lapsed
                } else {
                    NoteKind::Released
                };
                note(kind, name.clone())
            }
        }
    }

    fn of(offer: &NegotiationOffer, at: Micros, kind: NoteKind, detail: String) -> Self {
        Self::new(at, kind, (offer.id, Some(offer.negotiation)), detail)
    }
}

/// The terms of an offer, in words.
fn note_of_offer_terms(terms: &OfferTerms) -> String {
    let Interval { start, end } = terms.placement();
    let (start, end) = (time_in_words(start), time_in_words(end));
    let price = terms.price.map(|price| format!(" for {price}"));
    let price = price.unwrap_or_default();
    let pieces = match terms.slots.pieces().len() {
        0 => String::new(),
        count => format!(" in {count} pieces"),
    };
    let (nodes, resource) = (counted(terms.nodes(), "node"), &terms.resource);
    format!(": {nodes} of {resource} from {start} to {end}{pieces}{price}")
}

/// Why an offer was rejected, as far as it is stored.
fn note_of_rejected_offer(offer: &NegotiationOffer) -> String {
    let refusal = offer.refusal.as_deref().unwrap_or_default();
    let refusal: serde_json::Value = serde_json::from_str(refusal).unwrap_or_default();
    match (refusal["reason"].as_str(), refusal["bindingConstraint"].as_str()) {
        (Some(reason), Some(binding)) => format!("{reason}: {binding}"),
        _ => "it breaks rules of its template or of the negotiation".to_owned(),
    }
}
