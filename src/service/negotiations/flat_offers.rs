//! Negotiation for clients that speak JSON: a flat request opens a negotiation, and the answer has the possible offers.
//! Another one counters an offer, or only makes an offer known. An offer's id accepts it. Underneath are the same offers
//! and counter offers as in XML.

use domain::agreement::{Agreement, NegotiationInstance};
use planner::Initiate;
use scheduler::Time;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use store::negotiations;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::{
    NegotiationConstraints, NegotiationOffer as OfferDocument, NegotiationOfferContext, NegotiationRole,
    OfferState,
};
use wsag::time::DateTime;
use wsag::{NamedValue, ValuePlaces};

use crate::service::agreements::find::find_agreement;
use crate::service::codec::json::Json;
use crate::service::codec::json_check::{JsonCheck, LocatedValue};
use crate::service::codec::json_request::read_json_request;
use crate::service::codec::kept_offer::kept_offer_of_agreement;
use crate::service::codec::request::{DecisionTime, ReadRequest};
use crate::service::idempotency::{earlier_answer, keep_answer, text_to_keep};
use crate::service::negotiations::answers::answer_offer;
use crate::service::negotiations::demands::{self, read_demands};
use crate::service::negotiations::incoming_offer::IncomingOffer;
use crate::service::negotiations::negotiation::{
    OpenedNegotiation, OpeningRequest, negotiation_opened_by, negotiation_opening_to_keep,
    replaced_agreement, visible_negotiation,
};
use crate::service::request::offer::requests_of_offer;
use crate::service::views::offer::{AnswersView, WordedOffer, content_of_offer, view_offers};
use crate::service::{NegotiationView, RequestKey, Result, Scope, Service};

/// The members of a request that opens a negotiation, beside the wish.
const ABOUT: [&str; 4] = ["agreement", "expires", "hold", demands::MEMBER];
/// The members of a request in a negotiation, beside the wish.
const OF_ITSELF: [&str; 5] = ["id", "counterOfferTo", "state", "expires", demands::MEMBER];

/// A negotiation, and the answer to a request in it.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct NegotiatedView {
    /// The negotiation; its offers are the answers to the request, the best first.
    #[serde(flatten)]
    pub negotiation: NegotiationView,
    /// Why there is no offer, or none that can be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = json!({"reason": "NO_CAPACITY_IN_WINDOW", "bindingConstraint": "no node is free", "alternatives": [], "relaxations": []}))]
    pub refusal: Option<Value>,
}

/// The properties of a request in a negotiation.
#[derive(Debug, Default)]
pub(in crate::service) struct OfItself {
    id: Option<String>,
    to: Option<String>,
    state: Option<OfferState>,
    expires: Option<DateTime>,
    constraints: NegotiationConstraints,
}

impl OfItself {
    /// The properties of an answer to the offer of this name, in a state where that is not the usual one.
    pub(in crate::service) fn answering(offer: &str, state: Option<OfferState>) -> Self {
        Self {
            to: Some(offer.to_owned()),
            state,
            ..Self::default()
        }
    }
}

/// Opens a negotiation with a flat request, about a new agreement or in place of one, and answers the request in it.
///
/// # Errors
/// `Error::MalformedJson`, `Error::Invalid` and `Error::NotOffered` for faults of the request; and the errors of
/// opening a negotiation.
pub(in crate::service) async fn open_flat_negotiation(
    service: &Service,
    party: &str,
    body: Vec<u8>,
    key: Option<RequestKey>,
) -> Result<OpenedNegotiation> {
    if let Some(opened) = earlier_answer(service, key.as_ref()).await? {
        return Ok(opened);
    }
    let (request, (opening, of_itself)) = service
        .run_document_work(move |service| read_flat_opening(service, &body))
        .await??;
    open_with_flat_request(service, party, request, of_itself, &opening, key).await
}

/// Opens a negotiation with a request that was read, and answers it. The answers to one that names no state are held.
///
/// # Errors
/// The errors of [`open_flat_negotiation`] for such a request.
pub(in crate::service) async fn open_with_flat_request(
    service: &Service,
    party: &str,
    request: ReadRequest,
    of_itself: OfItself,
    opening: &OpeningRequest,
    key: Option<RequestKey>,
) -> Result<OpenedNegotiation> {
    let (base, replaced) = match opening.agreement {
        None => (None, None),
        Some(id) => {
            let replaced = find_agreement(service, &Scope::Party(party.to_owned()), id).await?;
            (
                Some(kept_offer_of_agreement(service, id).await?.offer),
                Some(replaced),
            )
        }
    };
    let state = OfferState::Solicited;
    let placed = flat_offer_from_request(service, party, request, of_itself, state, base, replaced).await?;
    open_with_offer(service, party, &placed, opening, key).await
}

/// Opens a negotiation with an offer that was found to be right, and answers it.
///
/// # Errors
/// The errors of opening a negotiation.
pub(in crate::service) async fn open_with_offer(
    service: &Service,
    party: &str,
    placed: &IncomingOffer,
    opening: &OpeningRequest,
    key: Option<RequestKey>,
) -> Result<OpenedNegotiation> {
    let mut instance = negotiation_opened_by(service, party, opening).await?;
    let initiation = Initiate {
        negotiation: instance.clone(),
        document: negotiation_opening_to_keep(opening.agreement),
        idempotency: None,
    };
    let once = key.as_ref().map(|key| key.step(0));
    let said = answer_offer(service, &instance, placed, once, Some(initiation)).await?;
    // Of the same request sent twice it is the one that was opened first.
    if let Some(first) = said
        .first()
        .map(|said| said.row.negotiation)
        .filter(|id| *id != instance.id)
    {
        instance = visible_negotiation(service, &Scope::Party(party.to_owned()), first).await?;
    }
    let AnswersView { offers, refusal } = AnswersView::of(view_offers(&said));
    let mut negotiation = NegotiationView::of(&instance, service.clock.now());
    negotiation.offers = offers;
    let opened = OpenedNegotiation {
        id: instance.id,
        json: text_to_keep(&NegotiatedView { negotiation, refusal }),
    };
    keep_answer(service, key, opened).await
}

/// The offer that a flat request makes in a negotiation, found to be right: it is made from a template, or changes the
/// agreement that the negotiation is about, or the offer that it answers.
pub(in crate::service) async fn flat_offer(
    service: &Service,
    instance: &NegotiationInstance,
    request: Json,
    pointer: String,
    otherwise: OfferState,
) -> Result<IncomingOffer> {
    let (request, of_itself) = service
        .run_document_work(move |service| {
            read_flat_offer(
                service,
                &LocatedValue {
                    value: &request,
                    pointer,
                },
            )
        })
        .await??;
    flat_offer_in_tree(service, instance, request, of_itself, otherwise).await
}

/// The offer of a request that was read, found to be right in the tree of its negotiation.
pub(in crate::service) async fn flat_offer_in_tree(
    service: &Service,
    instance: &NegotiationInstance,
    request: ReadRequest,
    of_itself: OfItself,
    otherwise: OfferState,
) -> Result<IncomingOffer> {
    let refused = |member: &str, message: &str| refuse_flat_member(&request.places, member, message);
    if let Some(name) = &of_itself.id
        && negotiations::negotiation_offer_named(&service.store, instance.id, name)
            .await?
            .is_some()
    {
        return refused("/id", "another offer of this negotiation has this id");
    }
    let base = if let Some(name) = &of_itself.to {
        let Some((row, document)) =
            negotiations::negotiation_offer_named(&service.store, instance.id, name).await?
        else {
            let message = "the id of an offer of this negotiation is expected";
            return refused("/counterOfferTo", message);
        };
        Some(Box::new(content_of_offer(
            &WordedOffer::read(row, &document)?.words,
        )))
    } else if let Some(agreement) = instance.agreement {
        Some(kept_offer_of_agreement(service, agreement).await?.offer)
    } else {
        None
    };
    let replaced = replaced_agreement(service, instance).await?;
    flat_offer_from_request(
        service,
        &instance.party,
        request,
        of_itself,
        otherwise,
        base,
        replaced,
    )
    .await
}

/// A request that opens a negotiation, with its members about the negotiation and its own properties.
fn read_flat_opening(service: &Service, body: &[u8]) -> Result<(ReadRequest, (OpeningRequest, OfItself))> {
    let body = Json::parse(body)?;
    read_json_request(service, &LocatedValue::root(&body), &ABOUT, |check, object| {
        let mut opening = OpeningRequest {
            expires: object
                .read(check, "expires", |check, at| {
                    read_flat_future_time(service, check, at)
                })
                .map(|at| Time(at.floor())),
            agreement: object.read(check, "agreement", |check, at| {
                let id = check.text(at)?.parse().ok();
                id.or_else(|| check.wrong(at, "the id of an agreement is expected"))
            }),
        };
        let is_held = object.read(check, "hold", JsonCheck::boolean).unwrap_or(true);
        if !is_held {
            // Prices that nothing keeps are no longer true by then.
            let end = service.clock.now() + service.planner.negotiating().hold;
            opening.expires.get_or_insert(end);
        }
        let of_itself = OfItself {
            // An advisory offer is answered in kind, and nothing is kept for it.
            state: (!is_held).then_some(OfferState::Advisory),
            constraints: read_demands(check, object),
            ..OfItself::default()
        };
        (opening, of_itself)
    })
}

/// A request in a negotiation, with its own properties.
fn read_flat_offer(service: &Service, request: &LocatedValue<'_>) -> Result<(ReadRequest, OfItself)> {
    read_json_request(service, request, &OF_ITSELF, |check, object| OfItself {
        constraints: read_demands(check, object),
        id: object.read(check, "id", JsonCheck::token),
        to: object.read(check, "counterOfferTo", JsonCheck::token),
        state: object.read(check, "state", |check, at| {
            let state = OfferState::parse(&check.text(at)?);
            let message = "Advisory, Solicited, Acceptable or Rejected is expected";
            state.or_else(|| check.wrong(at, message))
        }),
        expires: object.read(check, "expires", |check, at| {
            read_flat_future_time(service, check, at)
        }),
    })
}

fn read_flat_future_time(
    service: &Service,
    check: &mut JsonCheck,
    at: &LocatedValue<'_>,
) -> Option<DateTime> {
    let time = check.date_time(at)?;
    if time.floor() <= service.clock.now().seconds() {
        check.add(&at.pointer, "an instant in the future is expected");
    }
    Some(time)
}

/// The offer that a request asks with, found to be right: a change of the offer `base`, or else made from a template. It is in
/// the state `otherwise` where the request names none.
async fn flat_offer_from_request(
    service: &Service,
    party: &str,
    request: ReadRequest,
    of_itself: OfItself,
    otherwise: OfferState,
    base: Option<Box<AgreementOffer>>,
    replaced: Option<Agreement>,
) -> Result<IncomingOffer> {
    let party = party.to_owned();
    service
        .run_work_with_files(move |service| {
            let ReadRequest { wish, places, .. } = request;
            if request.decision != DecisionTime::Now {
                let message = "an offer of a negotiation is decided by its acceptance";
                return refuse_flat_member(&places, "/pending", message);
            }
            let offer = match base {
                None => {
                    let template = &request.offered.template;
                    wish.saying_duration(template, service.clock.now())
                        .offer(template)
                }
                Some(offer) => {
                    let template_id = offer.context.template_id.as_deref().unwrap_or_default();
                    if let Some(named) = &request.named
                        && named != template_id
                    {
                        let message = format!("what it changes was made from the template {template_id:?}");
                        return refuse_flat_member(&places, "/template", &message);
                    }
                    let offered = service.templates.get(template_id);
                    wish.change(&offer, offered.as_ref().map(|offered| &offered.template))
                }
            };
            let requests = requests_of_offer(service, &offer, &places, &party, replaced.as_ref())?;
            let offer = offer_in_negotiation(offer, of_itself, otherwise);
            Ok(IncomingOffer::checked(offer, requests, places))
        })
        .await?
}

/// The refusal of a request for one of its members.
fn refuse_flat_member<T>(places: &ValuePlaces, member: &str, message: &str) -> Result<T> {
    let mut check = JsonCheck::default();
    check.add(&format!("{}{member}", places.root()), message);
    check.finish(None)
}

/// An offer as it enters a negotiation, with the defaults of the members that it leaves out.
pub(in crate::service) fn offer_in_negotiation(
    offer: AgreementOffer,
    of_itself: OfItself,
    otherwise: OfferState,
) -> OfferDocument {
    let template = offer.context.template_id.clone().unwrap_or_default();
    OfferDocument {
        offer_id: Some(of_itself.id.unwrap_or_else(|| Uuid::now_v7().to_string())),
        agreement_id: None,
        name: offer.name,
        offer_context: NegotiationOfferContext {
            counter_offer_to: of_itself.to.unwrap_or(template),
            expiration_time: of_itself.expires,
            creator: NegotiationRole::Initiator,
            state: of_itself.state.unwrap_or(otherwise),
            state_extensions: Vec::new(),
            extensions: Vec::new(),
        },
        context: offer.context,
        terms: offer.terms,
        constraints: of_itself.constraints,
    }
}
