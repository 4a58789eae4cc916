//! The audit trail as operators read it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::trail_lines::{self, TrailLine};
use uuid::Uuid;

use crate::pages::{cut_page, length_of_page};
use crate::views::money_and_time::instant_as_date_time;
use crate::views::schemas;
use crate::{Error, Result, Scope, Service};

/// Lines on a page where the caller does not say.
const PAGE: u32 = 100;

/// A page of the audit trail.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct TrailView {
    /// In the order of the chain.
    pub lines: Vec<TrailLineView>,
    /// The value of `after` for the next page; none on the last.
    #[schemars(range(min = 1), example = 100)]
    pub next: Option<i64>,
}

/// A line of the audit trail.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct TrailLineView {
    /// The place in the chain, from 1.
    #[schemars(range(min = 1), example = 100)]
    pub number: i64,
    /// When it happened.
    #[schemars(with = "schemas::Instant")]
    pub at: String,
    /// The kind of the event, in a word.
    #[schemars(example = &"accepted")]
    pub kind: String,
    /// The agreement, negotiation, offer, request, key or saying that it happened to.
    pub subject: Uuid,
    /// The negotiation that it belongs to, where it is one's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub negotiation: Option<Uuid>,
    /// The party.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(example = &"physics")]
    pub party: Option<String>,
    /// More, in words.
    #[schemars(example = &"an offer was accepted")]
    pub detail: String,
    /// The chain's hash up to here.
    #[schemars(example = &"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    pub hash: String,
}

/// A request that was refused, as it was noted.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct RefusedView {
    /// The id that the refusal told.
    pub id: Uuid,
    /// The party.
    #[schemars(example = &"physics")]
    pub party: String,
    /// When it was refused.
    #[schemars(with = "schemas::Instant")]
    pub at: String,
    /// The reason, from the closed list, and the constraint that bound.
    #[schemars(example = &"NO_CAPACITY_IN_WINDOW: no node is free")]
    pub why: String,
}

impl TrailLineView {
    fn of(line: &TrailLine) -> Self {
        Self {
            number: line.number,
            at: instant_as_date_time(line.at),
            kind: line.kind.clone(),
            subject: line.subject,
            negotiation: line.negotiation,
            party: line.party.clone(),
            detail: line.detail.clone(),
            hash: line.hash.clone(),
        }
    }
}

/// Why a request was refused, by the id that its refusal told.
///
/// # Errors
/// [`Error::NotFound`] where it was not noted or is another party's, [`Error::Unavailable`].
pub async fn show_refusal_in_trail(service: &Service, scope: &Scope, id: Uuid) -> Result<RefusedView> {
    let line = trail_lines::trail_line_of_refusal(&service.store, id)
        .await?
        .ok_or(Error::NotFound)?;
    let party = line.party.unwrap_or_default();
    if scope.party().is_some_and(|own| own != party) {
        return Err(Error::NotFound);
    }
    Ok(RefusedView {
        id,
        party,
        at: instant_as_date_time(line.at),
        why: line.detail,
    })
}

/// A page of the audit trail of all parties, after the line with a number: for operators.
///
/// # Errors
/// [`Error::Limit`], [`Error::Unavailable`].
pub async fn list_trail(service: &Service, after: Option<i64>, limit: Option<u32>) -> Result<TrailView> {
    let limit = length_of_page(limit, PAGE)?;
    let lines = trail_lines::trail_lines_after(&service.store, after.unwrap_or(0), limit + 1).await?;
    let (lines, next) = cut_page(lines, limit, |each| each.number);
    Ok(TrailView {
        lines: lines.iter().map(TrailLineView::of).collect(),
        next,
    })
}

/// The lines of the audit trail before the one with a number, or the last ones: at most `limit`, newest first. For operators.
///
/// # Errors
/// [`Error::Limit`], [`Error::Unavailable`].
pub async fn list_trail_before(
    service: &Service,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<TrailLineView>> {
    let limit = length_of_page(Some(limit), PAGE)?;
    let end = match before {
        Some(number) => number,
        None => {
            trail_lines::last_trail_line(&service.store, service.clock.micros())
                .await?
                .number
                + 1
        }
    };
    // Numbers have no gaps.
    let after = end.saturating_sub(1).saturating_sub(i64::from(limit)).max(0);
    let mut lines = trail_lines::trail_lines_after(&service.store, after, limit).await?;
    lines.retain(|line| line.number < end);
    Ok(lines.iter().rev().map(TrailLineView::of).collect())
}
