//! An agreement that the caller may see, and the agreement of a peer behind it.

use domain::agreement::{Agreement, AgreementState, AtPeer};
use store::{agreements, at_peer, trail_lines};
use uuid::Uuid;

use crate::predictions::predicted_confidence_of_agreement;
use crate::{AgreementView, Error, Result, Scope, Service};

/// Why an agreement was rejected, as its timeline says.
pub(super) async fn find_why_agreement_was_rejected(
    service: &Service,
    agreement: &Agreement,
) -> Result<Option<String>, Error> {
    if agreement.state != AgreementState::Rejected {
        return Ok(None);
    }
    let last = trail_lines::trail_lines_of_agreement(&service.store, agreement.id)
        .await?
        .pop();
    Ok(last.map(|line| {
        let why = line.detail.strip_prefix("Rejected: ");
        why.map_or(line.detail.clone(), ToOwned::to_owned)
    }))
}

/// An agreement as it is shown, if there is one and the caller may see it.
pub(crate) async fn find_visible_agreement(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<AgreementView> {
    find_agreement(service, scope, id)
        .await
        .map(|agreement| view_found_agreement(service, &agreement))
}

/// Why nothing more is done with an agreement that was there before and has left the plan: it is over.
pub(crate) async fn find_why_agreement_is_over(
    service: &Service,
    scope: &Scope,
    before: AgreementView,
) -> Error {
    let now = find_visible_agreement(service, scope, before.id)
        .await
        .unwrap_or(before);
    Error::Conflict(format!("the agreement is {} already", now.state))
}

/// An agreement as it is stored, if there is one and the caller may see it.
pub(crate) async fn find_agreement(service: &Service, scope: &Scope, id: Uuid) -> Result<Agreement> {
    let agreement = agreements::agreement(&service.store, id)
        .await?
        .ok_or(Error::NotFound)?;
    match scope.party() {
        Some(party) if party != agreement.party => Err(Error::NotFound),
        _ => Ok(agreement),
    }
}

/// An agreement as it is shown.
pub(super) fn view_found_agreement(service: &Service, agreement: &Agreement) -> AgreementView {
    AgreementView {
        confidence: predicted_confidence_of_agreement(service, agreement),
        ..AgreementView::of(agreement)
    }
}

/// The peer's agreement behind one of ours that waits or runs there.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable).
pub(crate) async fn find_agreement_at_peer(
    service: &Service,
    agreement: &Agreement,
) -> Result<Option<AtPeer>> {
    if service.federation.is_none() || agreement.state.is_final() {
        return Ok(None);
    }
    let mut rows = at_peer::at_peers_of_agreement(&service.store, agreement.id)
        .await?
        .into_iter();
    Ok(rows.rfind(|at_peer| {
        at_peer.peer == agreement.resource
            && at_peer.address.is_some()
            && at_peer.settled.is_none()
            && !at_peer.lost
    }))
}
