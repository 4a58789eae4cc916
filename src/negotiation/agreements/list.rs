//! Lists of agreements, and timelines.

use uuid::Uuid;
use wsag::listings::{self, AgreementList, ListedAgreement};

use crate::agreement::Agreement;
use crate::negotiation::request::offer::can_be_agreement_id;
use crate::negotiation::service::cut_page;
use crate::negotiation::views::agreement::{AgreementPage, EventView, TimelineView};
use crate::negotiation::views::documents::{agreement_state, date_time, instant};
use crate::negotiation::{Error, Negotiation, Result, Scope};
use crate::store::TrailLine;

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
        let place = |of: &Agreement| of.is_placed().then(|| of.placement());
        let agreements = self.agreements.iter().map(|agreement| ListedAgreement {
            agreement_id: agreement.id.to_string(),
            name: agreement.name.clone(),
            address: Some(format!("{base}/agreements/{}", agreement.id)),
            state: agreement_state(agreement.state),
            planned_start: place(agreement).map(|slot| date_time(slot.start)),
            planned_end: place(agreement).map(|slot| date_time(slot.end)),
            nodes: Some(agreement.nodes()),
        });
        AgreementList {
            agreements: agreements.collect(),
            next: self.view.next.map(|id| id.to_string()),
        }
        .to_xml()
    }
}

fn listed_event(event: TrailLine) -> listings::Event {
    listings::Event {
        at: instant(event.at),
        kind: event.kind,
        detail: Some(event.detail).filter(|detail| !detail.is_empty()),
    }
}

impl Negotiation {
    /// A page of agreements, newest first, beginning after one. Where an AgreementId is given, only those with it: the id that
    /// initiators gave theirs, or the service's own.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn list(
        &self,
        scope: Scope,
        agreement_id: Option<&str>,
        after: Option<Uuid>,
        limit: Option<u32>,
    ) -> Result<Page> {
        let limit = limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
        let found = match agreement_id {
            None => {
                self.store
                    .agreements_page(scope.party(), after, limit + 1)
                    .await?
            }
            Some(id) => self.with_id(&scope, id, after, limit + 1).await?,
        };
        let (found, next) = cut_page(found, limit, |of| of.id);
        let agreements = found.iter().map(|agreement| self.view(agreement)).collect();
        Ok(Page {
            view: AgreementPage { agreements, next },
            agreements: found,
        })
    }

    /// The agreements with an AgreementId. One without an id of its initiator is known by ours.
    async fn with_id(
        &self,
        scope: &Scope,
        id: &str,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Agreement>> {
        // No agreement has such an id, and not every store takes it.
        if !can_be_agreement_id(id) {
            return Ok(Vec::new());
        }
        let found = self.store.agreements_with_id(scope.party(), id, after, limit);
        let mut found = found.await?;
        if let Some(own) = id.parse().ok().filter(|_| found.is_empty() && after.is_none()) {
            match self.stored(scope, own).await {
                Ok(one) => found.extend(Some(one).filter(|of| of.initiator_id.is_none())),
                Err(Error::NotFound) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(found)
    }

    /// All events of an agreement, with the offers of the negotiations that led to it and of the ones about it, in order: as a
    /// flat value and as a document.
    ///
    /// # Errors
    /// `Error::NotFound`, `Error::Unavailable`.
    pub async fn timeline(&self, scope: Scope, id: Uuid) -> Result<(TimelineView, listings::Timeline)> {
        self.visible(&scope, id).await?;
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
