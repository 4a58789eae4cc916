//! Lists of agreements, and timelines.

use domain::agreement::Agreement;
use scheduler::Time;
use store::agreements::{self, AgreementFilter, Succession};
use store::trail_lines;
use uuid::Uuid;
use wsag::time::DateTime;

use crate::service::agreements::find::{view_agreement, visible_agreement};
use crate::service::handle::{cut_page, length_of_page};
use crate::service::request::offer::can_be_agreement_id;
use crate::service::views::agreement::{AgreementPage, AgreementView, EventView, TimelineView};
use crate::service::{Result, Scope, Service};

/// Agreements on a page where the caller does not say, and at most.
const PAGE: (u32, u32) = (50, 500);

/// The filter for agreements with a place in a time, in whole seconds that it does not go beyond.
pub fn agreements_within(start: Option<DateTime>, end: Option<DateTime>) -> AgreementFilter {
    AgreementFilter {
        start: start.map(|at| Time(at.floor())),
        end: end.map(|at| Time(at.ceil())),
        ..AgreementFilter::default()
    }
}

/// A page of the agreements that match a filter, newest first, beginning after one. Where an AgreementId is given, that is the id that
/// initiators gave theirs, or the service's own.
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
    let mut found = if is_possible {
        agreements::agreements_page(&service.store, &filter, after, limit + 1).await?
    } else {
        // No agreement has such an id, and not every store takes it.
        Vec::new()
    };
    // One without an id of its initiator is known by ours.
    let own: Option<Uuid> = filter.initiator_id.as_ref().and_then(|id| id.parse().ok());
    if let Some(own) = own.filter(|_| found.is_empty() && after.is_none()) {
        let just_after = Uuid::from_u128(own.as_u128().saturating_add(1));
        let filter = AgreementFilter {
            initiator_id: None,
            ..filter
        };
        found = agreements::agreements_page(&service.store, &filter, Some(just_after), 1).await?;
        found.retain(|(agreement, _)| agreement.id == own && agreement.initiator_id.is_none());
    }
    let (found, next) = cut_page(found, limit, |(each, _)| each.id);
    let view = |(agreement, succession): &(Agreement, Succession)| AgreementView {
        supersedes: succession.supersedes,
        superseded_by: succession.superseded_by,
        ..view_agreement(service, agreement)
    };
    Ok(AgreementPage {
        agreements: found.iter().map(view).collect(),
        next,
    })
}

/// All events of an agreement, with the offers of the negotiations that led to it and of the ones about it, in order.
///
/// # Errors
/// `Error::NotFound`, `Error::Unavailable`.
pub async fn show_timeline(service: &Service, scope: Scope, id: Uuid) -> Result<TimelineView> {
    visible_agreement(service, &scope, id).await?;
    let events = trail_lines::trail_lines_of_agreement(&service.store, id).await?;
    Ok(TimelineView {
        agreement: id,
        events: events.iter().map(EventView::of).collect(),
    })
}
