//! The opening of a negotiation.

use domain::agreement::{AgreementState, NegotiationInstance};
use domain::clock::second_of;
use planner::Initiate;
use scheduler::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;
use wsag::endpoint::EndpointReference;
use wsag::negotiations::{
    InitiateNegotiationInput, NegotiationKind, NegotiationRole, OfferState, initiate_negotiation_output,
};
use wsag::{Document, Message, Violations};

use crate::agreements::find::find_agreement;
use crate::codec::acceptance::id_in_address;
use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::codec::json_request::read_json_request;
use crate::codec::kept_offer::kept_offer_of_agreement;
use crate::codec::request::ReadRequest;
use crate::idempotency::{answer_of_repeated_request, earlier_answer, keep_answer, text_to_keep};
use crate::negotiations::answers::answer_offer;
use crate::negotiations::demands::{self, read_demands};
use crate::negotiations::flat_offers::{
    FlatOfferProperties, flat_offer_from_request, read_future_time_of_flat_offer,
};
use crate::negotiations::incoming_offer::IncomingOffer;
use crate::negotiations::negotiation::visible_negotiation;
use crate::views::answers::AnswersView;
use crate::views::worded_offer::view_offers;
use crate::{Error, Input, NegotiationView, RequestKey, Result, Scope, Service, error};

/// The members of a request that opens a negotiation, beside the wish.
const ABOUT: [&str; 4] = ["agreement", "expires", "hold", demands::MEMBER];

/// Opens a negotiation, as an InitiateNegotiationInput asks, or a flat request, which is answered in it.
///
/// # Errors
/// [`Error::Malformed`], [`Error::MalformedJson`] and [`Error::Invalid`] for faults of the document,
/// [`Error::NotFound`] where its agreement is not the party's, [`Error::Conflict`] where that is over,
/// [`Error::Refused`] where the party has too many going on, [`Error::KeyReused`], [`Error::Unavailable`].
pub async fn initiate_negotiation(
    service: &Service,
    party: &str,
    input: Input,
    key: Option<RequestKey>,
) -> Result<OpenedNegotiation> {
    let body = match input {
        Input::Xml(body) => body,
        Input::Json(body) => return initiate_flat_negotiation(service, party, body, key).await,
    };
    if let Some(opened) = earlier_answer(service, key.as_ref()).await? {
        return Ok(opened);
    }
    let (opening, document) = service
        .run_document_work(move |service| read_opening(service, &body))
        .await??;
    let initiation = Initiate {
        negotiation: initiated_negotiation(service, party, &opening).await?,
        document,
        idempotency: key.map(|key| key.kept(|opened| text_to_keep(&OpenedNegotiation::of(opened)))),
    };
    answer_of_repeated_request(service.send(initiation).await, |opened| {
        OpenedNegotiation::of(&opened)
    })
}

fn read_opening(service: &Service, body: &[u8]) -> Result<(OpeningRequest, String)> {
    let document = Document::parse(body).map_err(Error::Malformed)?;
    let (input, place) = match wsag::read(&document).map_err(Error::Invalid)? {
        Message::InitiateNegotiationInput(input) => (
            *input,
            "/wsag-neg:InitiateNegotiationInput/wsag-neg:NegotiationContext",
        ),
        Message::NegotiationContext(context) => (
            InitiateNegotiationInput::of(*context),
            "/wsag-neg:NegotiationContext",
        ),
        _ => {
            let what = "wsag-neg:InitiateNegotiationInput or wsag-neg:NegotiationContext is expected here";
            return Err(Error::not_offered(&document, what));
        }
    };
    let context = &input.context;
    let mut found = Vec::new();
    let mut wrong = |below: &str, message: &str| {
        found.push(error::violation_at_path(
            format!("{place}/wsag-neg:{below}"),
            message,
        ));
    };
    if context.agreement_responder != NegotiationRole::Responder {
        wrong(
            "AgreementResponder",
            "NegotiationResponder is expected: the service answers the agreement's offer",
        );
    }
    let expires = context.expiration_time.map(|at| Time(at.floor()));
    if expires.is_some_and(|at| at <= service.clock.now()) {
        wrong("ExpirationTime", "an instant in the future is expected");
    }
    let agreement = match &context.kind {
        NegotiationKind::Negotiation(_) => None,
        NegotiationKind::Renegotiation {
            responder_agreement, ..
        } => {
            let id = id_in_address(responder_agreement);
            if id.is_none() {
                wrong(
                    "NegotiationType/wsag-neg:Renegotiation/wsag-neg:ResponderAgreementEPR",
                    "the address of an agreement here is expected, such as http://…/agreements/ID",
                );
            }
            id
        }
    };
    if found.is_empty() {
        Ok((OpeningRequest { expires, agreement }, text_to_keep(&input)))
    } else {
        Err(Error::Invalid(Violations::of(found)))
    }
}

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

/// Opens a negotiation with a flat request, about a new agreement or in place of one, and answers the request in it.
///
/// # Errors
/// `Error::MalformedJson`, `Error::Invalid` and `Error::NotOffered` for faults of the request; and the errors of
/// opening a negotiation.
pub(crate) async fn initiate_flat_negotiation(
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
    initiate_with_flat_request(service, party, request, of_itself, &opening, key).await
}

/// Opens a negotiation with a request that was read, and answers it. The answers to one that names no state are held.
///
/// # Errors
/// The errors of [`initiate_flat_negotiation`] for such a request.
pub(crate) async fn initiate_with_flat_request(
    service: &Service,
    party: &str,
    request: ReadRequest,
    of_itself: FlatOfferProperties,
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
    initiate_with_offer(service, party, &placed, opening, key).await
}

/// Opens a negotiation with an offer that was found to be right, and answers it.
///
/// # Errors
/// The errors of opening a negotiation.
pub(crate) async fn initiate_with_offer(
    service: &Service,
    party: &str,
    placed: &IncomingOffer,
    opening: &OpeningRequest,
    key: Option<RequestKey>,
) -> Result<OpenedNegotiation> {
    let mut instance = initiated_negotiation(service, party, opening).await?;
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

/// A request that opens a negotiation, with its members about the negotiation and its own properties.
fn read_flat_opening(
    service: &Service,
    body: &[u8],
) -> Result<(ReadRequest, (OpeningRequest, FlatOfferProperties))> {
    let body = Json::parse(body)?;
    read_json_request(service, &LocatedValue::root(&body), &ABOUT, |check, object| {
        let mut opening = OpeningRequest {
            expires: object
                .read(check, "expires", |check, at| {
                    read_future_time_of_flat_offer(service, check, at)
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
        let of_itself = FlatOfferProperties {
            // An advisory offer is answered in kind, and nothing is kept for it.
            state: (!is_held).then_some(OfferState::Advisory),
            constraints: read_demands(check, object),
            ..FlatOfferProperties::default()
        };
        (opening, of_itself)
    })
}

/// The answer to the opening of a negotiation, as it is kept for a repeated request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenedNegotiation {
    /// Its id.
    pub id: Uuid,
    /// It, as a flat value.
    pub json: String,
}

impl OpenedNegotiation {
    pub(crate) fn of(instance: &NegotiationInstance) -> Self {
        Self {
            id: instance.id,
            json: text_to_keep(&NegotiationView::of(instance, second_of(instance.created))),
        }
    }

    /// Its path under the service's address.
    pub fn path(&self) -> String {
        format!("/negotiations/{}", self.id)
    }

    /// The InitiateNegotiationOutput with its address below the service's.
    pub fn document(&self, base: &str) -> String {
        initiate_negotiation_output(&EndpointReference::new(format!("{base}{}", self.path())))
    }
}

/// The request for a negotiation, from any form.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpeningRequest {
    /// Until when it is to last; as long as the provider lets it where this is not said.
    pub expires: Option<Time>,
    /// The agreement that is to be replaced.
    pub agreement: Option<Uuid>,
}

/// The negotiation that is asked for; nothing is stored.
pub(crate) async fn initiated_negotiation(
    service: &Service,
    party: &str,
    opening: &OpeningRequest,
) -> Result<NegotiationInstance> {
    if let Some(agreement) = opening.agreement {
        let scope = Scope::Party(party.to_owned());
        let found = find_agreement(service, &scope, agreement).await?;
        if found.state != AgreementState::Observed {
            return Err(Error::Conflict(format!(
                "the agreement is {}, and can be changed while it is Observed only",
                found.state
            )));
        }
    }
    let latest = service.clock.now() + service.planner.negotiating().lasts;
    Ok(NegotiationInstance {
        id: Uuid::now_v7(),
        party: party.to_owned(),
        agreement: opening.agreement,
        created: service.clock.micros(),
        expires: opening.expires.unwrap_or(latest).min(latest),
        ended: None,
        proposed: None,
    })
}

/// What asks for a negotiation about a new agreement, or one in place of an agreement, as it is kept.
pub(crate) fn negotiation_opening_to_keep(agreement: Option<Uuid>) -> String {
    let address = agreement.map(|agreement| EndpointReference::new(format!("/agreements/{agreement}")));
    text_to_keep(&InitiateNegotiationInput::about(address))
}
