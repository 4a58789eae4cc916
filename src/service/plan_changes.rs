//! The changes of the plan without a party's request, as operators see them.

use domain::agreement::EventKind;
use store::trail_lines::{self, TrailLine};
use uuid::Uuid;

use crate::service::views::money_and_time::instant_as_date_time;
use crate::service::{Result, Service};

/// The last lines of the audit trail that are looked at for changes of the plan.
const LINES: u32 = 200;

/// Changes that are told.
const CHANGES_MAX: usize = 20;

/// The events that change a place in the plan and that no party asks for.
const CHANGES: [EventKind; 4] = [
    EventKind::Moved,
    EventKind::Restarted,
    EventKind::Broken,
    EventKind::Overrun,
];

/// The last changes of the plan without a party's request, the newest first, as far as the last lines of the audit trail have
/// them. For operators.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable).
pub async fn list_plan_changes(service: &Service) -> Result<Vec<PlanChangeView>> {
    let end = trail_lines::last_trail_line(&service.store, service.clock.micros())
        .await?
        .number;
    let lines =
        trail_lines::trail_lines_after(&service.store, (end - i64::from(LINES)).max(0), LINES).await?;
    let is_change = |kind: &str| CHANGES.iter().any(|change| change.word() == kind);
    let changes = lines.into_iter().rev().filter(|line| is_change(&line.kind));
    Ok(changes.take(CHANGES_MAX).map(PlanChangeView::of).collect())
}

/// A change of the plan without a party's request, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChangeView {
    /// When it was made.
    pub at: String,
    /// The agreement.
    pub agreement: Uuid,
    /// Its party, where the trail names it.
    pub party: Option<String>,
    /// The kind of the event, in a word.
    pub kind: String,
    /// The change and its reason, in words.
    pub why: String,
}

impl PlanChangeView {
    pub(super) fn of(line: TrailLine) -> Self {
        Self {
            at: instant_as_date_time(line.at),
            agreement: line.subject,
            party: line.party,
            kind: line.kind,
            why: line.detail,
        }
    }
}
