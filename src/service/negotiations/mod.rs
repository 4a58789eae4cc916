//! Negotiations: opened, shown and ended.

pub(super) mod answers;
pub(super) mod change_at_peer;
pub(super) mod counter;
pub(super) mod demands;
pub(super) mod exchange;
pub(super) mod flat_offers;
pub(super) mod forms;
pub(super) mod list;
pub(super) mod offers;
pub(super) mod peer_offers;
pub(super) mod proposals;
pub(super) mod relaxations;

use domain::agreement::{Agreement, AgreementState, NegotiationInstance, NegotiationState, ProposalReason};
use domain::clock::second_of;
use planner::{EndNegotiation, Initiate};
use scheduler::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{agreements, negotiations};
use uuid::Uuid;
use wsag::endpoint::EndpointReference;
use wsag::negotiations::{
    InitiateInput, NegotiationKind, NegotiationProperties, NegotiationRole, initiate_negotiation_output,
    terminate_negotiation_input, terminate_negotiation_response,
};
use wsag::time::DateTime;
use wsag::{Document, Message, Violations};

use super::codec::read_request_to_end;
use super::idempotency::{StoredAnswer, answer_of_repeated_request, earlier_answer, text_to_keep};
use super::views::values::{MoneyView, instant_as_date_time, second_as_date_time};
use super::{Error, Input, RequestKey, Result, Scope, Service, error};
use crate::service::agreements::find::stored_agreement;
use crate::service::codec::kept::read_kept;
use crate::service::negotiations::flat_offers::open_flat_negotiation;
use crate::service::negotiations::offers::worded_offer;
use crate::service::negotiations::proposals::penalties_about;
use crate::service::views::offer::{
    FoundOfferView, OfferView, WordedOffer, documents_of_offers, view_offers,
};
use crate::service::views::schemas;

/// A negotiation.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct NegotiationView {
    /// The id.
    pub id: Uuid,
    /// The party that asked for it.
    #[schemars(example = &"physics")]
    pub party: String,
    /// The agreement that it is to replace, where it is a renegotiation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Uuid>,
    /// The state.
    #[schemars(extend("enum" = ["open", "expired", "terminated"]), example = &"open")]
    pub state: &'static str,
    /// When it was asked for.
    #[schemars(with = "schemas::Instant")]
    pub created: String,
    /// From when on nothing more is negotiated or accepted.
    #[schemars(with = "schemas::Instant")]
    pub expires: String,
    /// Why the provider has opened it by itself: better-fit or broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"better-fit")]
    pub proposed: Option<&'static str>,
    /// The payment because the agreement could not be kept, where this is the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<MoneyView>,
    /// Every offer and counter offer, oldest first; each names the one that it answers.
    pub offers: Vec<OfferView>,
}

impl NegotiationView {
    /// The view of a negotiation as it stands at `now`.
    pub(super) fn of(instance: &NegotiationInstance, now: Time) -> Self {
        Self {
            id: instance.id,
            party: instance.party.clone(),
            agreement: instance.agreement,
            state: instance.state(now).word(),
            created: instant_as_date_time(instance.created),
            expires: second_as_date_time(instance.expires),
            proposed: instance.proposed.map(ProposalReason::word),
            penalties: Vec::new(),
            offers: Vec::new(),
        }
    }
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
    fn of(instance: &NegotiationInstance) -> Self {
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
pub(super) struct OpeningRequest {
    /// Until when it is to last; as long as the provider lets it where this is not said.
    pub expires: Option<Time>,
    /// The agreement that is to be replaced.
    pub agreement: Option<Uuid>,
}

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
        Input::Json(body) => return open_flat_negotiation(service, party, body, key).await,
    };
    if let Some(opened) = earlier_answer(service, key.as_ref()).await? {
        return Ok(opened);
    }
    let (opening, document) = service
        .run_document_work(move |service| read_opening(service, &body))
        .await??;
    let initiation = Initiate {
        negotiation: opened_by(service, party, &opening).await?,
        document,
        idempotency: key.map(|key| key.kept(|opened| text_to_keep(&OpenedNegotiation::of(opened)))),
    };
    answer_of_repeated_request(service.send(initiation).await, |opened| {
        OpenedNegotiation::of(&opened)
    })
}

/// The negotiation that is asked for; nothing is stored.
pub(super) async fn opened_by(
    service: &Service,
    party: &str,
    opening: &OpeningRequest,
) -> Result<NegotiationInstance> {
    if let Some(agreement) = opening.agreement {
        let scope = Scope::Party(party.to_owned());
        let found = stored_agreement(service, &scope, agreement).await?;
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

fn read_opening(service: &Service, body: &[u8]) -> Result<(OpeningRequest, String)> {
    let document = Document::parse(body).map_err(Error::Malformed)?;
    let (input, place) = match wsag::read(&document).map_err(Error::Invalid)? {
        Message::InitiateNegotiationInput(input) => (
            *input,
            "/wsag-neg:InitiateNegotiationInput/wsag-neg:NegotiationContext",
        ),
        Message::NegotiationContext(context) => (InitiateInput::of(*context), "/wsag-neg:NegotiationContext"),
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

/// A negotiation, and its NegotiationProperties.
///
/// # Errors
/// [`Error::NotFound`] when there is none or it is another party's, [`Error::Unavailable`].
pub async fn show_negotiation(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<(NegotiationView, String)> {
    let instance = visible_negotiation(service, scope, id).await?;
    let document = negotiations::negotiation_document(&service.store, id).await?;
    let document = document.ok_or(Error::NotFound)?;
    let offers = negotiations::offers_of_negotiation(&service.store, id).await?;
    let penalties = penalties_about(service, &instance).await?;
    service
        .run_document_work(move |service| {
            let said = offers
                .into_iter()
                .map(|(row, document)| WordedOffer::read(row, &document));
            let said = said.collect::<Result<Vec<_>, _>>()?;
            let mut view = NegotiationView::of(&instance, service.clock.now());
            view.penalties = penalties;
            view.offers = view_offers(&said);
            let InitiateInput { mut context, .. } = read_kept(&document)?;
            context.expiration_time = Some(DateTime::from_seconds(instance.expires.seconds()));
            let properties = NegotiationProperties {
                context,
                templates: service
                    .templates
                    .now()
                    .all()
                    .map(|template| template.template.clone())
                    .collect(),
                offers: documents_of_offers(&said),
            };
            Ok((view, properties.to_xml()))
        })
        .await?
}

/// An offer by the id that the service gave it.
///
/// # Errors
/// [`Error::NotFound`] when there is none or it is another party's, [`Error::Unavailable`].
pub async fn offer_by_id(service: &Service, scope: &Scope, id: Uuid) -> Result<FoundOfferView> {
    let said = worded_offer(service, id).await?;
    Ok(FoundOfferView {
        negotiation: visible_negotiation(service, scope, said.row.negotiation)
            .await?
            .id,
        offer: said.view(),
    })
}

/// Ends a negotiation before its time, as a TerminateInput asks, or an object with a reason; an empty body asks for it
/// too.
///
/// # Errors
/// [`Error::Malformed`], [`Error::MalformedJson`] and [`Error::Invalid`] for faults of the document,
/// [`Error::NotFound`], [`Error::Conflict`] when it has ended already, [`Error::Gone`] when its time is over,
/// [`Error::KeyReused`], [`Error::Unavailable`].
pub async fn end_negotiation(
    service: &Service,
    scope: &Scope,
    id: Uuid,
    input: Input,
    key: Option<RequestKey>,
) -> Result<StoredAnswer> {
    visible_negotiation(service, scope, id).await?;
    if let Some(told) = earlier_answer(service, key.as_ref()).await? {
        return Ok(told);
    }
    let is_right = |message: &Message| matches!(message, Message::TerminateNegotiationInput(_));
    service
        .run_document_work(move |_| read_request_to_end(&input, is_right, "wsag-neg:TerminateInput"))
        .await??;
    let end = EndNegotiation {
        id,
        party: scope.party().map(ToOwned::to_owned),
        idempotency: key.map(|key| key.kept(|ended| text_to_keep(&answer_about_end(ended)))),
    };
    match service.send(end).await {
        Err(planner::Error::NotFound) => Err(negotiation_is_over(
            &visible_negotiation(service, scope, id).await?,
        )),
        ended => {
            if let Some(federation) = service.federation.as_ref().filter(|_| ended.is_ok()) {
                federation.end_unused(id, None, &[]);
            }
            answer_of_repeated_request(ended, |ended| answer_about_end(&ended))
        }
    }
}

/// The agreement that a negotiation is to replace.
pub(super) async fn replaced_agreement(
    service: &Service,
    instance: &NegotiationInstance,
) -> Result<Option<Agreement>> {
    match instance.agreement {
        None => Ok(None),
        Some(id) => Ok(agreements::agreement(&service.store, id).await?),
    }
}

/// A negotiation, if there is one and the caller may see it.
pub(super) async fn visible_negotiation(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<NegotiationInstance> {
    let instance = negotiations::negotiation(&service.store, id)
        .await?
        .ok_or(Error::NotFound)?;
    match scope.party() {
        Some(party) if party != instance.party => Err(Error::NotFound),
        _ => Ok(instance),
    }
}

/// Why nothing more is done in a negotiation that goes on no longer.
pub(super) fn negotiation_is_over(instance: &NegotiationInstance) -> Error {
    // It has left the planner's table, so an unended one has expired.
    match instance.state(Time::MIN) {
        NegotiationState::Terminated => Error::Conflict("the negotiation is terminated already".to_owned()),
        _ => Error::Gone("the negotiation has expired".to_owned()),
    }
}

/// The id at the end of an address of ours.
pub(super) fn id_in_address(endpoint: &EndpointReference) -> Option<Uuid> {
    endpoint
        .address
        .trim_end_matches('/')
        .rsplit('/')
        .next()?
        .parse()
        .ok()
}

/// What asks for a negotiation about a new agreement, or one in place of an agreement, as it is kept.
pub(super) fn opening_to_keep(agreement: Option<Uuid>) -> String {
    let address = agreement.map(|agreement| EndpointReference::new(format!("/agreements/{agreement}")));
    text_to_keep(&InitiateInput::about(address))
}

/// The answer about a negotiation that was ended.
fn answer_about_end(ended: &NegotiationInstance) -> StoredAnswer {
    let at = ended.ended.unwrap_or(ended.created);
    StoredAnswer {
        json: text_to_keep(&NegotiationView::of(ended, second_of(at))),
        document: terminate_negotiation_response(),
    }
}

/// The TerminateInput of a negotiation that our own client sends.
pub fn end_negotiation_input() -> String {
    terminate_negotiation_input(&[])
}

/// Why a negotiation is no longer on the planner's table.
pub(in crate::service) async fn why_over(service: &Service, before: &NegotiationInstance) -> Error {
    match visible_negotiation(service, &Scope::All, before.id).await {
        Ok(instance) => negotiation_is_over(&instance),
        Err(why) => why,
    }
}
