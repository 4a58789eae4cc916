//! The timeline of an agreement: all that happened to it and was negotiated about it, in order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::trail_lines::{self, TrailLine};
use uuid::Uuid;

use crate::agreements::find::find_visible_agreement;
use crate::views::money_and_time::instant_as_date_time;
use crate::views::schemas;
use crate::{Result, Scope, Service};

/// One line of a timeline.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "Event")]
pub struct TimelineEventView {
    /// When it happened.
    #[schemars(with = "schemas::Instant")]
    pub at: String,
    /// The kind of the event, in a word.
    #[schemars(example = &"accepted")]
    pub kind: String,
    /// More, in words.
    #[schemars(example = &"an offer was accepted")]
    pub detail: String,
}

/// The timeline of an agreement.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct TimelineView {
    /// The id of the agreement.
    pub agreement: Uuid,
    /// What has happened to it, in order.
    pub events: Vec<TimelineEventView>,
}

impl TimelineEventView {
    pub(super) fn of(event: &TrailLine) -> Self {
        Self {
            at: instant_as_date_time(event.at),
            kind: event.kind.clone(),
            detail: event.detail.clone(),
        }
    }
}

/// All events of an agreement, with the offers of the negotiations that led to it and of the ones about it, in order.
///
/// # Errors
/// `Error::NotFound`, `Error::Unavailable`.
pub async fn show_timeline(service: &Service, scope: Scope, id: Uuid) -> Result<TimelineView> {
    find_visible_agreement(service, &scope, id).await?;
    let events = trail_lines::trail_lines_of_agreement(&service.store, id).await?;
    Ok(TimelineView {
        agreement: id,
        events: events.iter().map(TimelineEventView::of).collect(),
    })
}
