//! Lists of agreements.

use domain::agreement::Agreement;
use scheduler::Time;
use store::agreements::{self, AgreementFilter, Succession};
use uuid::Uuid;
use wsag::time::DateTime;

use crate::agreements::find::view_found_agreement;
use crate::pages::length_of_page;
use crate::request::offer::can_be_agreement_id;
use crate::views::agreement::{AgreementPage, AgreementView};
use crate::{Result, Service};

/// Agreements on a page where the caller does not say.
const PAGE: u32 = 50;

/// The filter for agreements with a place in a time, in whole seconds that it does not go beyond.
pub fn agreement_list_filter(start: Option<DateTime>, end: Option<DateTime>) -> AgreementFilter {
    AgreementFilter {
        start: start.map(|at| Time(at.floor())),
        end: end.map(|at| Time(at.ceil())),
        ..AgreementFilter::default()
    }
}

/// A page of the agreements that match a filter, newest first, beginning after one. Where an AgreementId is given, that is the id that
/// initiators gave theirs, or the service's own. It looks at a thousand where a time is given, or two of id, name and state, so it may
/// be short where little matches.
///
/// # Errors
/// `Error::Limit`, `Error::Unavailable`.
pub async fn list_agreements(
    service: &Service,
    filter: AgreementFilter,
    after: Option<Uuid>,
    limit: Option<u32>,
) -> Result<AgreementPage> {
    let limit = length_of_page(limit, PAGE)?;
    let is_possible = filter.initiator_id.as_deref().is_none_or(can_be_agreement_id);
    let (mut found, next) = if is_possible {
        agreements::agreements_page(&service.store, &filter, after, limit).await?
    } else {
        // No agreement has such an id, and not every store takes it.
        (Vec::new(), None)
    };
    // One without an id of its initiator is known by ours.
    let own: Option<Uuid> = filter.initiator_id.as_ref().and_then(|id| id.parse().ok());
    if let Some(own) = own.filter(|_| found.is_empty() && after.is_none()) {
        let just_after = Uuid::from_u128(own.as_u128().saturating_add(1));
        let filter = AgreementFilter {
            initiator_id: None,
            ..filter
        };
        (found, _) = agreements::agreements_page(&service.store, &filter, Some(just_after), 1).await?;
        found.retain(|(agreement, _)| agreement.id == own && agreement.initiator_id.is_none());
    }
    let view = |(agreement, succession): &(Agreement, Succession)| AgreementView {
        supersedes: succession.supersedes,
        superseded_by: succession.superseded_by,
        ..view_found_agreement(service, agreement)
    };
    Ok(AgreementPage {
        agreements: found.iter().map(view).collect(),
        next,
    })
}
