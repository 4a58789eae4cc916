//! The calendar: when nodes are free, and what of the rest is the viewer's own.

use crate::service::views::calendar::{CalendarQuery, CalendarView};
use crate::service::{Result, Service};

impl Service {
    /// The plan as a party may see it: never which parties have what is not its own, unless it sees all. It is read from a picture of the
    /// plan that may be a second old.
    ///
    /// # Errors
    /// [`Error::Unavailable`](super::Error::Unavailable).
    pub async fn calendar(&self, query: CalendarQuery) -> Result<CalendarView> {
        let picture = self.planner.picture().await?;
        let templates = self.templates.now();
        self.run_document_work(move |_| CalendarView::of(&picture, templates.pricing(), &query))
            .await
    }
}
