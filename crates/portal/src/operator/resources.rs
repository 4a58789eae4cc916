//! The resources and how their nodes stand, for operators.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use domain::resources::NodeState;

use super::affected_reservations::AffectedReservations;
use crate::{Answer, Frame, render_page};
use api::Api;
use service::{NAMED_VERBS, NamedVerb, NodeView, ResourceView};

#[derive(Template)]
#[template(path = "portal/operator/resources.html")]
struct ResourcesPage {
    frame: Frame,
    /// The effects of the order that led here.
    followed: Option<AffectedReservations>,
    resources: Vec<ResourceRow>,
    /// The states that nodes can be set to, the usual one first.
    states: [&'static str; NodeState::ALL.len()],
}

/// A resource in the list.
struct ResourceRow {
    is: ResourceView,
    /// Its nodes; where they are many, only the ones that are not up.
    nodes: Vec<NodeView>,
    /// How many more there are, which are up.
    more: usize,
}

impl ResourceRow {
    /// The verbs that a resource in this state has a button for.
    fn verbs(&self) -> impl Iterator<Item = &'static NamedVerb> {
        let state = self.is.state.as_str();
        NAMED_VERBS
            .iter()
            .filter(move |named| named.states.contains(&state))
    }
}

/// GET /portal/operator/resources.
pub(super) async fn show_resources_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let mut resources = Vec::new();
    for (is, nodes) in service::list_resources_with_nodes(&api.service).await? {
        let is_gone = is.state == "retired";
        let more = if is_gone {
            0
        } else {
            (is.nodes as usize).saturating_sub(nodes.len())
        };
        resources.push(ResourceRow { is, nodes, more });
    }
    let shown = ResourcesPage {
        frame: visitor.frame("Resources"),
        followed: AffectedReservations::read(uri.query()),
        resources,
        states: {
            let mut states = NodeState::ALL.map(NodeState::word);
            states.rotate_left(1);
            states
        },
    };
    render_page(StatusCode::OK, &shown)
}
