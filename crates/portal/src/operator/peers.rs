//! The other domains that this one negotiates with.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::{Answer, Frame, render_page};
use api::Api;
use service::PeersView;

#[derive(Template)]
#[template(path = "portal/operator/peers.html")]
struct Peers {
    frame: Frame,
    view: PeersView,
}

/// GET /portal/operator/peers.
pub(super) async fn show_peers_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let shown = Peers {
        frame: visitor.frame("Peers"),
        view: service::list_peers(&api.service),
    };
    render_page(StatusCode::OK, &shown)
}
