//! The promise: an agreement is made of an offer, now that its nodes are held here, by a cluster, or by a peer.

use domain::agreement::{
    Agreement, Event, EventKind, NegotiationOffer, OfferTerms, ServiceState, Spender, Wording,
};
use domain::change::Change;
use uuid::Uuid;

use crate::context::Search;
use crate::decider::Decider;
use crate::error::Result;
use crate::life::succession;
use crate::limits::spending;
use crate::request::Request;
use crate::schedules::need::placed_requests;
use crate::table::{holds, negotiations};

/// An agreement that lies in the plan where it was held for an offer, and is to be promised.
pub(crate) struct Promise<'a> {
    /// The offer.
    pub(crate) offer: &'a NegotiationOffer,
    /// The terms of the offer.
    pub(crate) terms: &'a OfferTerms,
    /// The key that pays for the agreement, where the key has a cap.
    pub(crate) spender: Option<Spender>,
    /// The agreement.
    pub(crate) agreement: Agreement,
    /// The number by which the schedule knows the first slot of the agreement.
    pub(crate) number: u64,
    /// How the agreement came to its place and its price, in words for its party.
    pub(crate) detail: String,
    /// The words that accept the offer; none where the agreement is stored as pending.
    pub(crate) document: Option<Wording>,
    /// The agreement in whose place this one is offered.
    pub(crate) replaced: Option<Uuid>,
    /// The replaced agreement as it is; none where it could not be kept and is over.
    pub(crate) predecessor: Option<Predecessor>,
}

/// An agreement that ends because another one takes its place.
pub(crate) struct Predecessor {
    /// The agreement.
    pub(crate) agreement: Agreement,
    /// Whether the work of the agreement goes on under its successor.
    pub(crate) goes_on: bool,
    /// The lines for the timeline of the agreement about its guarantees, which are settled.
    pub(crate) settled: Vec<Event>,
}

/// Makes an agreement of an accepted offer, ends the agreement that it replaces, and lets go of the other offers of the choice.
pub(crate) fn promise(decider: &mut Decider<'_>, promise: Promise<'_>) -> Result<Agreement> {
    let Promise {
        offer,
        terms,
        spender,
        mut agreement,
        number,
        detail,
        document,
        replaced,
        predecessor,
    } = promise;
    decider.state.insert(agreement.clone(), number);
    let spent = spending::note_spending(&mut decider.state.limits, spender, &agreement);
    decider.batch.extend(spent);
    let mut events = vec![decider.event(EventKind::Accepted, detail)];
    let broken = replaced.filter(|_| predecessor.is_none());
    if let Some(old) = replaced {
        let why = broken.map_or("", |_| ", which could not be kept");
        events.push(decider.event(EventKind::Superseded, format!("in place of {old}{why}")));
    }
    // The work that it takes over follows.
    let stored = Box::new(Agreement {
        service: ServiceState::NotReady,
        ..agreement.clone()
    });
    decider.batch.push(match document {
        None => Change::UpdateAgreement {
            agreement: stored,
            events,
        },
        Some(document) => Change::CreateAgreement {
            agreement: stored,
            document,
            events,
        },
    });
    if let Some(old) = broken {
        let new = agreement.id;
        decider.batch.push(Change::Supersede { old, new });
    }
    // Before its siblings, so that none of them counts on a place that is no longer there.
    negotiations::note_offer_accepted(&mut decider.bargaining(), offer, agreement.id);
    if let Some(Predecessor {
        agreement: old,
        goes_on,
        settled,
    }) = predecessor
    {
        if goes_on {
            agreement = succession::take_over_as_successor(decider, &old, agreement);
        }
        succession::supersede_offers(decider, old, settled, agreement.id, terms)?;
    }
    let siblings = negotiations::sibling_offers(decider.view(), offer);
    holds::release_holds_of_offers(&mut decider.bargaining(), siblings);
    Ok(agreement)
}

/// Puts an agreement where its slots were kept until now.
pub(crate) fn put_promised_where_kept(
    search: &mut Search<'_>,
    agreement: &Agreement,
    number: u64,
    at: usize,
) {
    for (request, start) in placed_requests(agreement, number) {
        search
            .schedules
            .put_back(at, search.present_second(), &request, start);
    }
}

/// Gives a request the names of the agreement that has been pending for it: they are in the words that accepted the offer.
pub(crate) fn name_request_of_promise(request: &mut Request, pending: &Agreement) {
    request.id = pending.id;
    request.name.clone_from(&pending.name);
    request.initiator_id.clone_from(&pending.initiator_id);
}
