//! Lists of negotiations.

use domain::agreement::NegotiationInstance;
use schemars::JsonSchema;
use serde::Serialize;
use store::negotiations::{self, NegotiationFilter};
use uuid::Uuid;
use wsag::time::DateTime;

use crate::codec::kept_offer::read_kept_offer;
use crate::negotiations::negotiation::NegotiationView;
use crate::negotiations::proposals::penalties_about_proposal;
use crate::pages::{cut_page, length_of_page};
use crate::{Result, Scope, Service};

/// Negotiations on a page where the caller does not say.
const PAGE: u32 = 20;
/// Negotiations that are shown together: as many as a person looks through.
const GOING_SHOWN_MAX: u32 = 20;

/// Negotiations, a page at a time.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct NegotiationsView {
    /// The newest first, each with its offers that can be accepted now.
    pub negotiations: Vec<NegotiationView>,
    /// The value of `after` for the next page; none on the last.
    pub next: Option<Uuid>,
}

/// The filter for negotiations that were opened in a time.
pub fn negotiation_list_filter(start: Option<DateTime>, end: Option<DateTime>) -> NegotiationFilter {
    NegotiationFilter {
        start: start.map(DateTime::micros_ceil),
        end: end.map(DateTime::micros_ceil),
        ..NegotiationFilter::default()
    }
}

/// The negotiations that match a filter, with their offers that can be accepted, newest first, beginning after one.
///
/// # Errors
/// `Error::Limit`, `Error::Unavailable`.
pub async fn list_negotiations(
    service: &Service,
    filter: &NegotiationFilter,
    after: Option<Uuid>,
    limit: Option<u32>,
) -> Result<NegotiationsView> {
    let limit = length_of_page(limit, PAGE)?;
    let now = service.clock.now();
    let found = negotiations::negotiations_page(&service.store, filter, now, after, limit + 1);
    let (found, next) = cut_page(found.await?, limit, |each| each.id);
    let negotiations = list_with_held_offers(service, found).await?;
    Ok(NegotiationsView { negotiations, next })
}

/// The open negotiations, newest first, with their offers that can be accepted: the first [`GOING_SHOWN_MAX`].
///
/// # Errors
/// `Error::Unavailable`.
pub async fn list_open_negotiations(service: &Service, scope: &Scope) -> Result<Vec<NegotiationView>> {
    let now = service.clock.now();
    let going = negotiations::negotiations_going(&service.store, scope.party(), now, GOING_SHOWN_MAX);
    list_with_held_offers(service, going.await?).await
}

async fn list_with_held_offers(
    service: &Service,
    found: Vec<NegotiationInstance>,
) -> Result<Vec<NegotiationView>> {
    let now = service.clock.now();
    let mut views = Vec::with_capacity(found.len());
    for instance in found {
        let mut view = NegotiationView::of(&instance, now);
        view.penalties = penalties_about_proposal(service, &instance).await?;
        for (row, document) in negotiations::held_offers_of_negotiation(&service.store, instance.id).await? {
            if !row.is_expired(now) {
                view.offers.push(read_kept_offer(row, &document)?.view());
            }
        }
        views.push(view);
    }
    Ok(views)
}
