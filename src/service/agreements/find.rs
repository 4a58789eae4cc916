//! An agreement that the caller may see.

use domain::agreement::{Agreement, AgreementState};
use store::{agreements, trail_lines};
use uuid::Uuid;

use crate::service::predictions::confidence_of_agreement;
use crate::service::{AgreementView, Error, Result, Scope, Service};

/// Why an agreement was rejected, as its timeline says.
pub(super) async fn rejection_of(service: &Service, agreement: &Agreement) -> Result<Option<String>, Error> {
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
pub(in crate::service) async fn visible_agreement(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<AgreementView> {
    stored_agreement(service, scope, id)
        .await
        .map(|agreement| view_agreement(service, &agreement))
}

/// Why nothing more is done with an agreement that was there before and has left the plan: it is over.
pub(in crate::service) async fn over_already(
    service: &Service,
    scope: &Scope,
    before: AgreementView,
) -> Error {
    let now = visible_agreement(service, scope, before.id)
        .await
        .unwrap_or(before);
    Error::Conflict(format!("the agreement is {} already", now.state))
}

/// An agreement as it is stored, if there is one and the caller may see it.
pub(in crate::service) async fn stored_agreement(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<Agreement> {
    let agreement = agreements::agreement(&service.store, id)
        .await?
        .ok_or(Error::NotFound)?;
    match scope.party() {
        Some(party) if party != agreement.party => Err(Error::NotFound),
        _ => Ok(agreement),
    }
}

/// An agreement as it is shown.
pub(super) fn view_agreement(service: &Service, agreement: &Agreement) -> AgreementView {
    AgreementView {
        confidence: confidence_of_agreement(service, agreement),
        ..AgreementView::of(agreement)
    }
}
