//! The opening of a negotiation.

use planner::Initiate;
use scheduler::Time;
use wsag::negotiations::{InitiateInput, NegotiationKind, NegotiationRole};
use wsag::{Document, Message, Violations};

use crate::service::codec::acceptance::id_in_address;
use crate::service::idempotency::{answer_of_repeated_request, earlier_answer, text_to_keep};
use crate::service::negotiations::flat_offers::open_flat_negotiation;
use crate::service::negotiations::negotiation::{OpenedNegotiation, OpeningRequest, negotiation_opened_by};
use crate::service::{Error, Input, RequestKey, Result, Service, error};

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
        negotiation: negotiation_opened_by(service, party, &opening).await?,
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
