//! The planned times without nodes, and the form that adds one.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};

use super::affected_reservations::AffectedReservations;
use crate::{Answer, Frame, render_page, text};
use api::Api;
use service::{MaintenanceView, OfferedResourceView};

#[derive(Template)]
#[template(path = "portal/operator/maintenance.html")]
struct Maintenance {
    frame: Frame,
    /// The effects of the order that led here.
    followed: Option<AffectedReservations>,
    planned: Vec<Row>,
    resources: Vec<OfferedResourceView>,
}

/// A planned time without nodes.
struct Row {
    is: MaintenanceView,
    start: String,
    end: String,
}

/// GET /portal/operator/maintenance.
pub(super) async fn show_maintenance_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let planned = service::list_maintenance(&api.service).maintenance.into_iter();
    let row = |is: MaintenanceView| Row {
        start: text::date_time(is.start.seconds()),
        end: text::date_time(is.end.seconds()),
        is,
    };
    let shown = Maintenance {
        frame: visitor.frame("Maintenance"),
        followed: AffectedReservations::read(uri.query()),
        planned: planned.map(row).collect(),
        resources: service::list_offered_resources(&api.service).resources,
    };
    render_page(StatusCode::OK, &shown)
}
