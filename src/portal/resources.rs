//! The resources and how their nodes stand, for operators.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::error::Failure;
use super::{Frame, page, session};
use crate::http::{self, Api};
use crate::negotiation::{NodeView, ResourceView};

#[derive(Template)]
#[template(path = "portal/resources.html")]
struct Resources {
    frame: Frame,
    resources: Vec<Row>,
}

/// A resource in the list.
struct Row {
    is: ResourceView,
    /// Its nodes that are not up.
    out: Vec<NodeView>,
}

/// GET /portal/resources.
pub(super) async fn show(State(api): State<Api>, headers: HeaderMap) -> Result<Response, Failure> {
    let visitor = session::visitor(&api, &headers).await?;
    let visitor = visitor.ok_or(Failure::SignedOut(None))?;
    http::operators_only(&visitor.caller)?;
    let mut resources = Vec::new();
    for is in api.negotiation.resources().await?.resources {
        let mut out = Vec::new();
        if is.up < is.nodes {
            out = api.negotiation.nodes(&is.name).await?.nodes;
            out.retain(|node| !node.said.is_empty());
        }
        resources.push(Row { is, out });
    }
    let shown = Resources {
        frame: visitor.frame("Resources"),
        resources,
    };
    page(StatusCode::OK, &shown)
}
