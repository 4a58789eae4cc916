//! Termination.

use domain::agreement::Agreement;
use planner::Terminate;
use uuid::Uuid;
use wsag::Message;

use crate::agreements::charges_at_peer::charge_at_peer;
use crate::agreements::find::{
    find_agreement, find_agreement_at_peer, find_why_agreement_is_over, view_found_agreement,
};
use crate::codec::request::read_request_to_end;
use crate::idempotency::{answer_of_repeated_request, earlier_answer, text_to_keep};
use crate::{AgreementView, Input, RequestKey, Result, Scope, Service};

/// A request to end an agreement.
#[derive(Debug)]
pub struct TerminateRequest {
    /// Which.
    pub id: Uuid,
    /// The TerminateInput, or an object with a reason; nothing asks for it too.
    pub input: Input,
    /// The versions that the agreement may have; none for any.
    pub versions: Option<Vec<i64>>,
    /// The party of the caller. An operator that ends another party's agreement takes its time back for the provider.
    pub by: String,
    /// The key of the request.
    pub key: Option<RequestKey>,
}

/// Ends an agreement before its time.
///
/// # Errors
/// Of [`crate::Error`]: `Malformed` and `Invalid` for faults of the document, `NotFound`, `Conflict`
/// when it has ended already, `Changed` when it is in another version, `KeyReused`, `Unavailable`.
pub async fn terminate_agreement(
    service: &Service,
    scope: Scope,
    request: TerminateRequest,
) -> Result<AgreementView> {
    let TerminateRequest { id, input, key, .. } = request;
    let before = find_agreement(service, &scope, id).await?;
    if let Some(answer) = earlier_answer(service, key.as_ref()).await? {
        return Ok(answer);
    }
    let is_right = |message: &Message| matches!(message, Message::TerminateInput(_));
    service
        .run_document_work(move |_| read_request_to_end(&input, is_right, "wsag:TerminateInput"))
        .await??;
    let by_provider = scope == Scope::All && before.party != request.by;
    let charge_of_peer = match find_agreement_at_peer(service, &before).await? {
        Some(there) if before.is_waiting() && !by_provider => charge_at_peer(service, &there).await,
        _ => None,
    };
    let order = Terminate {
        by_provider,
        versions: request.versions,
        charge_of_peer,
        idempotency: key.map(|key| key.kept(|done: &Agreement| text_to_keep(&AgreementView::of(done)))),
        ..Terminate::of(id, scope.party().map(ToOwned::to_owned))
    };
    match service.send(order).await {
        Err(planner::Error::NotFound) => {
            Err(find_why_agreement_is_over(service, &scope, view_found_agreement(service, &before)).await)
        }
        ended => answer_of_repeated_request(ended, |agreement| AgreementView::of(&agreement)),
    }
}

/// The TerminateInput that our own client sends.
pub fn terminate_agreement_input() -> String {
    wsag::operations::terminate_input(&wsag::operations::reason_fragment(
        "asked for at the command line",
    ))
}
