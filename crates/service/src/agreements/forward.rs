//! An offer that the own domain has refused is forwarded to peers: what one of them holds of exactly that is accepted at once.

use std::time::{Duration, Instant};

use domain::agreement::OfferKind;
use planner::{EndNegotiation, Initiate};
use uuid::Uuid;
use wsag::ValuePlaces;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::OfferState;

use crate::agreements::accept::accept;
use crate::codec::acceptance::AcceptanceInput;
use crate::negotiations::answers::answer_offer;
use crate::negotiations::flat_offers::{FlatOfferProperties, flat_offer_in_negotiation};
use crate::negotiations::incoming_offer::IncomingOffer;
use crate::negotiations::initiate::{OpeningRequest, initiated_negotiation, negotiation_opening_to_keep};
use crate::negotiations::peer_offers::may_seek_peer_offers;
use crate::views::worded_offer::WordedOffer;
use crate::{AcceptedView, Error, RefusalView, RequestKey, Result, Service};

/// How long a requester waits for a peer's word where peers are asked first.
const FORWARD_WITHIN: Duration = Duration::from_secs(9);

/// Has peers asked for an offer that the own domain has refused, and accepts at once what one of them holds of exactly that. None
/// where no peer does, or may be asked.
///
/// # Errors
/// The errors of accepting an offer that a peer holds.
pub(super) async fn forward_offer(
    service: &Service,
    party: &str,
    offer: &AgreementOffer,
    refusal: &RefusalView,
    key: Option<RequestKey>,
) -> Result<Option<AcceptedView>> {
    let asks =
        service.federation.is_some() && may_seek_peer_offers(refusal.reason) && !service.options.is_dry;
    if !asks {
        return Ok(None);
    }
    let since = Instant::now();
    let instance = initiated_negotiation(service, party, &OpeningRequest::default()).await?;
    let opening = Initiate {
        negotiation: instance.clone(),
        document: negotiation_opening_to_keep(None),
        idempotency: None,
    };
    let placed = IncomingOffer::new(
        flat_offer_in_negotiation(
            offer.clone(),
            FlatOfferProperties::default(),
            OfferState::Solicited,
        ),
        ValuePlaces::document("/wsag:AgreementOffer"),
    );
    let once = key.as_ref().map(|key| key.step(1));
    let said = answer_offer(service, &instance, &placed, once, Some(opening)).await?;
    let negotiation = said.first().map_or(instance.id, |said| said.row.negotiation);
    let is_it = |offer: &&WordedOffer| {
        let terms = offer.row.terms.as_ref();
        let exact = terms.filter(|terms| terms.kind == OfferKind::Exact && terms.peer.is_some());
        offer.row.is_held() && exact.is_some()
    };
    let accepted = match said.iter().find(is_it) {
        Some(found) => {
            let accepting = AcceptanceInput {
                within: FORWARD_WITHIN.saturating_sub(since.elapsed()),
                ..AcceptanceInput::as_it_stands(found.row.id)
            };
            Box::pin(accept(service, party, accepting, key)).await.map(Some)
        }
        None => Ok(None),
    };
    if !matches!(accepted, Ok(Some(_)) | Err(Error::AskingPeer)) {
        give_up_forwarded_offer(service, negotiation).await;
    }
    accepted
}

/// Ends the negotiation that was opened to forward an offer.
async fn give_up_forwarded_offer(service: &Service, negotiation: Uuid) {
    let end = EndNegotiation {
        id: negotiation,
        party: None,
        idempotency: None,
    };
    if let Some(federation) = &service.federation {
        federation.end_unused_at_asked_peers(negotiation, None, &[]);
    }
    // It lapses by itself otherwise.
    if let Err(why) = service.send(end).await {
        tracing::debug!(%negotiation, error = %why, "a negotiation with peers is not ended");
    }
}
