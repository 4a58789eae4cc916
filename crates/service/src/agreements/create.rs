//! createAgreement: an offer becomes an agreement, or is refused with the reason.

use domain::agreement::Wording;
use domain::request::Request;
use planner::Place;
use scheduler::Time;
use wsag::agreements::AgreementOffer;
use wsag::scheduling::Moldability;
use wsag::{Document, Message, ValuePlaces};

use crate::agreements::accept::take_offer;
use crate::agreements::accept_at_peer::word_of_accepting_peer;
use crate::agreements::forward::forward_offer;
use crate::agreements::pending::pend_proposal;
use crate::agreements::repeated_offers::{OfferIdentity, first_answer_to_offer};
use crate::codec::acceptance::{
    ACCEPT_WITHIN, AcceptanceInput, accepted_offer_in_json, read_acceptance, read_acceptance_endpoint,
};
use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::codec::json_request::read_json_request;
use crate::codec::kept_offer::{KeptOffer, kept_wording_of_request};
use crate::codec::request::{DecisionTime, ReadRequest};
use crate::idempotency::{answer_of_repeated_request, earlier_answer, keep_refusal};
use crate::negotiations::relaxations::offerable_relaxations;
use crate::request::cluster_policy::note_barred_clusters;
use crate::request::offer::{only_request_of_offer, requests_of_offer, requests_of_offer_document};
use crate::templates::OfferedTemplate;
use crate::{AcceptedView, Error, Input, RefusalView, RequestKey, Result, Service};

/// Takes an offer: bare, in its CreateAgreementInput, or as a flat request. Of an offer that leaves a choice, the
/// first way to read it that can be had is taken; one that asks for it is answered as Pending. Once this answers, the agreement is stored, and the same request
/// under the same key gets the same answer for a day, also a refusal. An offer with an AgreementId that came before gets the answer of
/// that time.
///
/// Where it accepts a counter offer that cannot be had any more, there are fresh offers, held only where `holds` asks for that.
///
/// # Errors
/// [`Error::Malformed`], [`Error::MalformedJson`], [`Error::Invalid`] and [`Error::NotOffered`] for faults of the
/// offer, [`Error::Refused`] where the plan has no place, [`Error::Lost`] where it accepts a counter offer that
/// cannot be had any more, [`Error::IdTaken`] where another offer has its AgreementId, [`Error::KeyReused`], [`Error::Unavailable`].
pub async fn create_agreement(
    service: &Service,
    party: &str,
    input: Input,
    holds: bool,
    key: Option<RequestKey>,
) -> Result<AcceptedView> {
    // An accepted offer stays accepted, even if the same offer would come too late by now.
    if let Some(answer) = earlier_answer(service, key.as_ref()).await? {
        return word_of_accepting_peer(service, answer, ACCEPT_WITHIN).await;
    }
    let own_party = party.to_owned();
    let read = service
        .run_work_with_files(move |service| read_create_request(service, &input, &own_party))
        .await??;
    let (made, identity) = match read {
        CreateRequest::New {
            offer,
            requests,
            decision,
            identity,
        } => {
            if let Some(identity) = &identity
                && let Some(answer) = first_answer_to_offer(service, party, identity).await?
            {
                return Ok(answer);
            }
            let requests = requests?;
            let made = match decision {
                DecisionTime::Now => {
                    place_created_agreement(service, party, offer, requests, key.clone()).await
                }
                DecisionTime::Later(acceptance) => {
                    let request = only_request_of_offer(requests)?;
                    pend_proposal(service, request, acceptance, None, key.clone()).await
                }
            };
            (made, identity)
        }
        CreateRequest::Offered(accepting, decision) => {
            let accepting = AcceptanceInput { holds, ..accepting };
            let made = Box::pin(take_offer(service, party, accepting, decision, key.clone())).await;
            (made, None)
        }
    };
    let made = match (made, identity) {
        // The same offer came at the same time.
        (Err(Error::IdTaken(id)), Some(identity)) => {
            let first = first_answer_to_offer(service, party, &identity).await;
            first.and_then(|answer| answer.ok_or(Error::IdTaken(id)))
        }
        (made, _) => made,
    };
    keep_refusal(service, key, made).await
}

/// Has the first of the requests that has a place become an agreement.
pub(crate) async fn place_created_agreement(
    service: &Service,
    party: &str,
    offer: Box<AgreementOffer>,
    requests: Vec<planner::Request>,
    key: Option<RequestKey>,
) -> Result<AcceptedView> {
    let mut refusal = None;
    for mut request in requests {
        request.idempotency = key.clone().map(RequestKey::of_acceptance);
        request.spender = service.spender;
        let window = request.window(service.clock.now(), Time::MAX);
        note_barred_clusters(service, &mut request, &[]).await;
        match service.send(Place(request)).await {
            // The refusal is about the requester's first preference.
            Err(planner::Error::Refused(why)) if refusal.is_none() => {
                let view = RefusalView {
                    // A dry run is not noted in the end, and what is not noted cannot be explained.
                    id: why.noted.filter(|_| !service.options.is_dry),
                    ..RefusalView::of(&why, window)
                };
                let offer = offer.clone();
                refusal = Some(
                    service
                        .run_document_work(move |service| offerable_relaxations(service, view, &offer))
                        .await?,
                );
            }
            Err(planner::Error::Refused(_)) => {}
            accepted => {
                return answer_of_repeated_request(accepted, |accepted| AcceptedView::of(&accepted));
            }
        }
    }
    let Some(refusal) = refusal else {
        return Err(Error::Internal("an offer can be read in no way".to_owned()));
    };
    let forwarded = forward_offer(service, party, &offer, &refusal, key).await?;
    forwarded.ok_or(Error::Refused(refusal))
}

/// The requests that an offer makes: one, or one for each way to read it, and the time of its decision; or the
/// acceptance of a counter offer.
fn read_create_request(service: &Service, input: &Input, party: &str) -> Result<CreateRequest> {
    let body = match input {
        Input::Xml(body) => body,
        Input::Json(body) => return read_flat_create_request(service, &Json::parse(body)?, party),
    };
    let document = Document::parse(body).map_err(Error::Malformed)?;
    let mut decision = DecisionTime::Now;
    let offer = match wsag::read(&document).map_err(Error::Invalid)? {
        Message::AgreementOffer(offer) => offer,
        Message::CreateAgreementInput(input) => {
            match read_acceptance(&document, &input, "/wsag:CreateAgreementInput")? {
                Some(accepting) => return Ok(CreateRequest::Offered(accepting, decision)),
                None => Box::new(input.offer),
            }
        }
        Message::CreatePendingAgreementInput(input) => {
            decision = DecisionTime::Later(read_acceptance_endpoint(service, &document, &input)?);
            match read_acceptance(&document, &input, "/wsag:CreatePendingAgreementInput")? {
                Some(accepting) => return Ok(CreateRequest::Offered(accepting, decision)),
                None => Box::new(input.offer),
            }
        }
        _ => {
            let what = "wsag:AgreementOffer or wsag:CreateAgreementInput is expected here; negotiations begin at \
                        /negotiations";
            return Err(Error::not_offered(&document, what));
        }
    };
    let kept = KeptOffer::of_document(&document, offer)?;
    let requests = requests_of_offer_document(service, &document, &kept.offer, party, None);
    Ok(CreateRequest::New {
        requests: requests.map(|requests| requests_to_create_with_wording(requests, &kept.wording())),
        identity: OfferIdentity::of(&kept, decision != DecisionTime::Now),
        offer: kept.offer,
        decision,
    })
}

/// The requests of a flat request: it becomes an offer, which is checked as one that came as a document.
fn read_flat_create_request(service: &Service, request: &Json, party: &str) -> Result<CreateRequest> {
    if let Some((offer, decision)) = accepted_offer_in_json(service, request)? {
        return Ok(CreateRequest::Offered(
            AcceptanceInput::as_it_stands(offer),
            decision,
        ));
    }
    let (request, ()) = read_json_request(service, &LocatedValue::root(request), &[], |_, _| ())?;
    let ReadRequest {
        wish,
        places,
        offered,
        decision,
        ..
    } = request;
    let wish = wish.saying_duration(&offered.template, service.clock.now());
    let (offer, requests) = requests_of_flat_create_request(service, &wish, &offered, &places, party)?;
    check_create_request_says_enough(&wish, places.root())?;
    Ok(CreateRequest::New {
        offer,
        requests: Ok(requests),
        decision,
        identity: None,
    })
}

/// The offer from a template that a wish makes, and its requests.
pub(crate) fn requests_of_flat_create_request(
    service: &Service,
    wish: &Request,
    offered: &OfferedTemplate,
    places: &ValuePlaces,
    party: &str,
) -> Result<(Box<AgreementOffer>, Vec<planner::Request>)> {
    let offer = Box::new(wish.offer(&offered.template));
    let requests = requests_of_offer(service, &offer, places, party, None)?;
    Ok((
        offer,
        requests_to_create_with_wording(requests, &kept_wording_of_request(wish, offered)),
    ))
}

/// Refuses a request that leaves to its template how much it buys: the nodes are stated, and so is the duration where it runs
/// no application, whose duration is predicted or the template's.
pub(crate) fn check_create_request_says_enough(wish: &Request, root: &str) -> Result<()> {
    let law = &wish.scheduling.moldability;
    let says_nodes = wish.nodes.is_some() || matches!(law, Some(Moldability::Table(_)));
    let mut check = JsonCheck::default();
    if !says_nodes {
        check.add(&format!("{root}/nodes"), "a number of nodes is expected");
    }
    if wish.duration.is_none() && law.is_none() && wish.run.is_none() {
        let message = "a duration in seconds is expected, or a start and an end";
        check.add(&format!("{root}/durationSeconds"), message);
    }
    check.finish(Some(()))
}

/// The requests of an offer, with the words in which it came.
fn requests_to_create_with_wording(
    mut requests: Vec<planner::Request>,
    wording: &Wording,
) -> Vec<planner::Request> {
    for request in &mut requests {
        request.document = wording.clone();
    }
    requests
}

/// The source of a new agreement.
enum CreateRequest {
    /// An offer by itself.
    New {
        /// The offer.
        offer: Box<AgreementOffer>,
        /// The request for each way to read it, or what is wrong with it.
        requests: Result<Vec<planner::Request>>,
        /// When it is to be decided.
        decision: DecisionTime,
        /// By what it is known when it comes again, where it has an AgreementId.
        identity: Option<OfferIdentity>,
    },
    /// A counter offer of ours; and when that is to be decided.
    Offered(AcceptanceInput, DecisionTime),
}
