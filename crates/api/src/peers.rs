//! This domain among others, in JSON alone: WS-Agreement knows nothing of it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::call::Call;
use super::operation::Operation;
use super::path::Path;
use super::rights::require_operator;
use super::routes::Routes;
use super::{Answer, Api};
use service::{Domain, PeersView, ReconciledView};

/// The route of what this domain says of itself.
pub(super) fn domain_routes() -> Routes {
    Routes::default().get(
        "/.well-known/bespeak",
        get_domain,
        Operation::new(
            "getDomain",
            "service",
            "What this domain says of itself to other domains: templates, resources, applications, policy, and its peers where it \
             names them; nothing where it has no name among others",
        )
        .open()
        .answers::<Domain>(),
    )
}

/// The routes of peers.
pub(super) fn peer_routes() -> Routes {
    Routes::default()
        .get(
            "/peers",
            get_peers,
            Operation::new(
                "listPeers",
                "operation",
                "The other domains that this one negotiates with: how they do, and what they say of themselves",
            )
            .for_operators()
            .answers::<PeersView>(),
        )
        .get(
            "/peers/{name}/differences",
            get_peer_differences,
            Operation::new(
                "comparePeer",
                "operation",
                "What this domain and a peer have of the agreements between them, compared",
            )
            .for_operators()
            .answers::<ReconciledView>(),
        )
}

/// GET /.well-known/bespeak: needs no key, because its content is public.
async fn get_domain(State(api): State<Api>) -> Response {
    Json(service::show_domain_to_peers(&api.service)).into_response()
}

/// GET /peers: for operators.
async fn get_peers(call: Call) -> Answer {
    require_operator(&call.caller)?;
    Ok(Json(service::list_peers(&call.service)).into_response())
}

/// GET /peers/{name}/differences: for operators.
async fn get_peer_differences(call: Call, Path(name): Path<String>) -> Answer {
    require_operator(&call.caller)?;
    Ok(Json(service::reconcile_peer(&call.service, &name).await?).into_response())
}
