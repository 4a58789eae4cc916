//! Lists of agreements, and timelines.

use domain::agreement::Agreement;
use scheduler::Time;
use store::{AgreementFilter, Succession, TrailLine};
use uuid::Uuid;
use wsag::listings::{self, AgreementList, ListedAgreement};
use wsag::time::DateTime;

use crate::negotiation::request::offer::can_be_agreement_id;
use crate::negotiation::service::{cut_page, length_of_page};
use crate::negotiation::views::agreement::{AgreementPage, AgreementView, EventView, TimelineView};
use crate::negotiation::views::documents::{
    agreement_state_in_document, date_time_in_document, instant_in_document,
};
use crate::negotiation::{Result, Scope, Service};

/// Agreements on a page where the caller does not say, and at most.
const PAGE: (u32, u32) = (50, 500);

/// A page of agreements.
pub struct Page {
    /// As a flat value.
    pub view: AgreementPage,
    agreements: Vec<Agreement>,
}

impl Page {
    /// As a document, with the agreements' addresses below the service's.
    pub fn document(&self, base: &str) -> String {
        let place = |agreement: &Agreement| agreement.is_placed().then(|| agreement.placement());
        let agreements = self.agreements.iter().map(|agreement| ListedAgreement {
            agreement_id: agreement.id.to_string(),
            name: agreement.name.clone(),
            address: Some(format!("{base}/agreements/{}", agreement.id)),
            state: agreement_state_in_document(agreement.state),
            planned_start: place(agreement).map(|slot| date_time_in_document(slot.start)),
            planned_end: place(agreement).map(|slot| date_time_in_document(slot.end)),
            nodes: Some(agreement.nodes()),
        });
        AgreementList {
            agreements: agreements.collect(),
            next: self.view.next.map(|id| id.to_string()),
        }
        .to_xml()
    }
}

/// The filter for agreements with a place in a time, in whole seconds that it does not go beyond.
pub fn agreements_within(start: Option<DateTime>, end: Option<DateTime>) -> AgreementFilter {
    AgreementFilter {
        start: start.map(|at| Time(at.floor())),
        end: end.map(|at| Time(at.ceil())),
        ..AgreementFilter::default()
    }
}

fn listed_event(event: TrailLine) -> listings::Event {
    listings::Event {
        at: instant_in_document(event.at),
        kind: event.kind,
        detail: Some(event.detail).filter(|detail| !detail.is_empty()),
    }
}

impl Service {
    /// A page of the agreements that match a filter, newest first, beginning after one. Where an AgreementId is given, that is the id that
    /// initiators gave theirs, or the service's own.
    ///
    /// # Errors
    /// `Error::Limit`, `Error::Unavailable`.
    pub async fn list_agreements(
        &self,
        filter: AgreementFilter,
        after: Option<Uuid>,
        limit: Option<u32>,
    ) -> Result<Page> {
        let limit = length_of_page(limit, PAGE)?;
        let is_possible = filter.initiator_id.as_deref().is_none_or(can_be_agreement_id);
        let mut found = if is_possible {
            self.store.agreements_page(&filter, after, limit + 1).await?
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
            found = self.store.agreements_page(&filter, Some(just_after), 1).await?;
            found.retain(|(agreement, _)| agreement.id == own && agreement.initiator_id.is_none());
        }
        let (found, next) = cut_page(found, limit, |(each, _)| each.id);
        let view = |(agreement, succession): &(Agreement, Succession)| AgreementView {
            supersedes: succession.supersedes,
            superseded_by: succession.superseded_by,
            ..self.view(agreement)
        };
        Ok(Page {
            view: AgreementPage {
                agreements: found.iter().map(view).collect(),
                next,
            },
            agreements: found.into_iter().map(|(found, _)| found).collect(),
        })
    }

    /// All events of an agreement, with the offers of the negotiations that led to it and of the ones about it, in order: as a
    /// flat value and as a document.
    ///
    /// # Errors
    /// `Error::NotFound`, `Error::Unavailable`.
    pub async fn timeline(&self, scope: Scope, id: Uuid) -> Result<(TimelineView, listings::Timeline)> {
        self.visible_agreement(&scope, id).await?;
        let events = self.store.timeline(id).await?;
        let view = TimelineView {
            agreement: id,
            events: events.iter().map(EventView::of).collect(),
        };
        let document = listings::Timeline {
            agreement_id: id.to_string(),
            events: events.into_iter().map(listed_event).collect(),
        };
        Ok((view, document))
    }
}
