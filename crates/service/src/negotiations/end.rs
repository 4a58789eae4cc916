//! The end of a negotiation, as a party asks for it.

use domain::agreement::NegotiationInstance;
use domain::clock::second_of;
use planner::EndNegotiation;
use uuid::Uuid;
use wsag::Message;
use wsag::negotiations::{terminate_negotiation_input, terminate_negotiation_response};

use crate::codec::request::read_request_to_end;
use crate::idempotency::{StoredAnswer, answer_of_repeated_request, earlier_answer, text_to_keep};
use crate::negotiations::negotiation::{NegotiationView, error_of_ended_negotiation, visible_negotiation};
use crate::{Input, RequestKey, Result, Scope, Service};

/// Ends a negotiation before its time, as a TerminateInput asks, or an object with a reason; an empty body asks for it
/// too.
///
/// # Errors
/// `Error::Malformed`, `Error::MalformedJson` and `Error::Invalid` for faults of the document,
/// `Error::NotFound`, `Error::Conflict` when it has ended already, `Error::Gone` when its time is over,
/// `Error::KeyReused`, `Error::Unavailable`.
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
        Err(planner::Error::NotFound) => Err(error_of_ended_negotiation(
            &visible_negotiation(service, scope, id).await?,
        )),
        ended => {
            if let Some(federation) = service.federation.as_ref().filter(|_| ended.is_ok()) {
                federation.end_unused_at_asked_peers(id, None, &[]);
            }
            answer_of_repeated_request(ended, |ended| answer_about_end(&ended))
        }
    }
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
