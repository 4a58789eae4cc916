//! Lists of agreements, and timelines.

use uuid::Uuid;
use wsag::listings::{self, AgreementList, ListedAgreement};

use crate::agreement::Agreement;
use crate::negotiation::service::cut;
use crate::negotiation::views::agreement::{AgreementPage, AgreementView, EventView, TimelineView};
use crate::negotiation::views::documents::{agreement_state, date_time, instant};
use crate::negotiation::{Error, Negotiation, Scope};
use crate::store::TrailLine;

/// Agreements on a page where the caller does not say, and at most.
const PAGE: (u32, u32) = (50, 500);

/// A page of agreements.
pub struct Page {
    pub(in crate::negotiation) agreements: Vec<Agreement>,
    pub(in crate::negotiation) views: Vec<AgreementView>,
    pub(in crate::negotiation) next: Option<Uuid>,
}

/// An event of an agreement.
pub struct Timeline {
    pub(in crate::negotiation) agreement: Uuid,
    pub(in crate::negotiation) events: Vec<TrailLine>,
}

impl Page {
    /// As a flat value.
    pub fn view(&self) -> AgreementPage {
        AgreementPage {
            agreements: self.views.clone(),
            next: self.next,
        }
    }

    /// As a document, with the agreements' addresses below the service's.
    pub fn document(&self, base: &str) -> String {
        let agreements = self.agreements.iter().map(|agreement| ListedAgreement {
            agreement_id: agreement.id.to_string(),
            name: agreement.name.clone(),
            address: Some(format!("{base}/agreements/{}", agreement.id)),
            state: agreement_state(agreement.state),
            planned_start: Some(date_time(agreement.placement().start)),
            planned_end: Some(date_time(agreement.placement().end)),
            nodes: Some(agreement.nodes()),
        });
        AgreementList {
            agreements: agreements.collect(),
            next: self.next.map(|id| id.to_string()),
        }
        .to_xml()
    }
}

impl Timeline {
    /// As a flat value.
    pub fn view(&self) -> TimelineView {
        TimelineView {
            agreement: self.agreement,
            events: self.events.iter().map(EventView::of).collect(),
        }
    }

    /// As a document.
    pub fn document(&self) -> String {
        let events = self.events.iter().map(|event| listings::Event {
            at: instant(event.at),
            kind: event.kind.clone(),
            detail: Some(event.detail.clone()).filter(|detail| !detail.is_empty()),
        });
        listings::Timeline {
            agreement_id: self.agreement.to_string(),
            events: events.collect(),
        }
        .to_xml()
    }
}

impl Negotiation {
    /// A page of agreements, newest first, beginning after one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list(&self, scope: Scope, after: Option<Uuid>, limit: Option<u32>) -> Result<Page, Error> {
        let limit = limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
        let found = self.store.agreements_page(scope.party(), after, limit + 1);
        let (found, next) = cut(found.await?, limit, |of| of.id);
        Ok(Page {
            views: found.iter().map(|agreement| self.view(agreement)).collect(),
            agreements: found,
            next,
        })
    }

    /// All events of an agreement, with the offers of the negotiations that led to it and of the ones about it, in order.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn timeline(&self, scope: Scope, id: Uuid) -> Result<Timeline, Error> {
        self.visible(&scope, id).await?;
        Ok(Timeline {
            agreement: id,
            events: self.store.timeline(id).await?,
        })
    }
}
