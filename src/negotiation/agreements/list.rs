//! Lists of agreements and of negotiations, and timelines.

use serde::Serialize;
use uuid::Uuid;

use crate::agreement::{Agreement, NegotiationInstance};
use crate::negotiation::views::offer::WordedOffer;
use crate::negotiation::views::{AgreementPage, AgreementView, EventView, TimelineView};
use crate::negotiation::{Error, Negotiation, NegotiationView, Scope};
use crate::store::TrailLine;

/// Agreements on a page where the caller does not say, and at most.
const PAGE: (u32, u32) = (50, 500);

/// Negotiations on a page where the caller does not say, and at most.
const NEGOTIATIONS_PAGE: (u32, u32) = (20, 100);
/// Negotiations that are shown together: as many as a person looks through.
const GOING_SHOWN_MAX: u32 = 20;

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

/// Negotiations, a page at a time.
#[derive(Debug, Clone, Serialize)]
pub struct NegotiationsView {
    /// The newest first, each with its offers that can be accepted now.
    pub negotiations: Vec<NegotiationView>,
    /// The value of `after` for the next page; none on the last.
    pub next: Option<Uuid>,
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

    /// Negotiations with their offers that can be accepted, newest first, beginning after one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn negotiations(
        &self,
        scope: &Scope,
        after: Option<Uuid>,
        limit: Option<u32>,
    ) -> Result<NegotiationsView, Error> {
        let limit = limit.unwrap_or(NEGOTIATIONS_PAGE.0).clamp(1, NEGOTIATIONS_PAGE.1);
        // One more tells whether there is a next page.
        let mut found = self
            .store
            .negotiations_page(scope.party(), after, limit + 1)
            .await?;
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next = found.last().map(|last| last.id).filter(|_| more);
        let negotiations = self.with_what_is_held(found).await?;
        Ok(NegotiationsView { negotiations, next })
    }

    /// The open negotiations, newest first, with their offers that can be accepted: the first [`GOING_SHOWN_MAX`].
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn negotiations_going(&self, scope: &Scope) -> Result<Vec<NegotiationView>, Error> {
        let now = self.clock.now();
        let going = self.store.negotiations_going(scope.party(), now, GOING_SHOWN_MAX);
        self.with_what_is_held(going.await?).await
    }

    async fn with_what_is_held(
        &self,
        found: Vec<NegotiationInstance>,
    ) -> Result<Vec<NegotiationView>, Error> {
        let now = self.clock.now();
        let mut views = Vec::with_capacity(found.len());
        for instance in found {
            let mut view = NegotiationView::of(&instance, now);
            view.penalties = self.penalties_about(&instance).await?;
            for (row, document) in self.store.offers_held(instance.id).await? {
                if !row.is_expired(now) {
                    view.offers.push(WordedOffer::read(row, &document)?.view());
                }
            }
            views.push(view);
        }
        Ok(views)
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
