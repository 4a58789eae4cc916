//! The plan on its nodes, and its latest changes: for operators.

use domain::agreement::EventKind;
use store::trail_lines;

use crate::service::views::gantt::{GanttQuery, GanttView, PlanChangeView};
use crate::service::{Result, Service};

/// The last lines of the audit trail that are looked at for changes of the plan.
const LINES: u32 = 1_000;
/// Changes that are told.
const CHANGES_MAX: usize = 20;
/// The events that change a place in the plan and that no party asks for.
const CHANGES: [EventKind; 4] = [
    EventKind::Moved,
    EventKind::Restarted,
    EventKind::Broken,
    EventKind::Overrun,
];

/// The plan of a resource on its nodes. It is read from a picture of the plan that may be a second old. For operators.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable).
pub async fn show_gantt(service: &Service, query: GanttQuery) -> Result<GanttView> {
    let picture = service.planner.picture().await?;
    let resources = service.planner.resources();
    service
        .run_document_work(move |_| GanttView::of(&picture, &resources, &query))
        .await
}

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
