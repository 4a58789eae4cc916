//! The changes of the plan without a party's request, as operators see them.

use store::trail_lines::{self, TrailLine};
use uuid::Uuid;

use crate::views::money_and_time::instant_as_date_time;
use crate::{Result, Service};

/// The last lines of the audit trail that are looked at for changes of the plan.
const LINES: i64 = 1_000;

/// Changes that are told.
const CHANGES_MAX: u32 = 20;

/// Moves of one agreement that are told: those of many at once have a line each as they are settled, and would hide all else.
const MOVES_MAX: u32 = 10;

/// The last changes of the plan without a party's request, the newest first, as far as the last lines of the audit trail have
/// them. For operators.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable).
pub async fn list_plan_changes(service: &Service) -> Result<Vec<PlanChangeView>> {
    let end = trail_lines::last_trail_line(&service.store, service.clock.micros())
        .await?
        .number;
    let after = (end - LINES).max(0);
    let lines = trail_lines::plan_changes_after(&service.store, after, MOVES_MAX, CHANGES_MAX).await?;
    Ok(lines.into_iter().map(PlanChangeView::of).collect())
}

/// A change of the plan without a party's request, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChangeView {
    /// When it was made.
    pub at: String,
    /// The agreement; of moves of many, the one that caused them. None where none did.
    pub agreement: Option<Uuid>,
    /// Its party, where the trail names it.
    pub party: Option<String>,
    /// The kind of the line, in a word.
    pub kind: String,
    /// The change and its reason, in words.
    pub why: String,
}

impl PlanChangeView {
    pub(super) fn of(line: TrailLine) -> Self {
        Self {
            at: instant_as_date_time(line.at),
            agreement: Some(line.subject).filter(|subject| !subject.is_nil()),
            party: line.party,
            kind: line.kind,
            why: line.detail,
        }
    }
}
