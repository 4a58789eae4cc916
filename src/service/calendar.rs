//! The calendar: when nodes are free, and what of the rest is the viewer's own.

use crate::service::views::calendar::{CalendarQuery, CalendarView};
use crate::service::{Result, Service};

/// The plan as a party may see it: never which parties have what is not its own, unless it sees all. It is read from a picture of the
/// plan that may be a second old.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable).
pub async fn show_calendar(service: &Service, query: CalendarQuery) -> Result<CalendarView> {
    let picture = service.planner.picture().await?;
    let templates = service.templates.now();
    service
        .run_document_work(move |_| CalendarView::of(&picture, templates.pricing(), &query))
        .await
}
