//! Lists of agreements, and their timelines.

use uuid::Uuid;

use super::views::{AgreementPage, AgreementView, EventView, TimelineView};
use super::{Error, Negotiation, Scope};
use crate::agreement::Agreement;
use crate::store::TrailLine;

/// Agreements on a page where the caller does not say, and at most.
const PAGE: (u32, u32) = (50, 500);

/// A page of agreements.
pub struct Page {
    pub(super) agreements: Vec<Agreement>,
    pub(super) views: Vec<AgreementView>,
    pub(super) next: Option<Uuid>,
}

/// What happened to an agreement.
pub struct Timeline {
    pub(super) agreement: Uuid,
    pub(super) events: Vec<TrailLine>,
}

impl Page {
    /// As a flat value.
    pub fn view(&self) -> AgreementPage {
        AgreementPage {
            agreements: self.views.clone(),
            next: self.next,
        }
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
}

impl Negotiation {
    /// A page of agreements, newest first, beginning after one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list(&self, scope: Scope, after: Option<Uuid>, limit: Option<u32>) -> Result<Page, Error> {
        let limit = limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
        // One more tells whether there is a next page.
        let mut found = self
            .store
            .agreements_page(scope.party(), after, limit + 1)
            .await?;
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next = found.last().map(|last| last.id).filter(|_| more);
        Ok(Page {
            views: found.iter().map(|agreement| self.view(agreement)).collect(),
            agreements: found,
            next,
        })
    }

    /// Everything that happened to an agreement, with what was said in the negotiations that led to it and those about it, in order.
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
