//! The API over HTTP: one file a noun, one function a verb, with its route and its description. The only module, with the portal's
//! pages, that knows axum.
//!
//! The layers of every request, from the outside in. First come a request id and its log line, and a bound on requests at work.
//! Then the key, with a bound on requests of an address while their key is looked for. Then a bound on requests of its party, and
//! the handler. Bodies are read whole, within a bound of size and time, before anything looks at them.

mod accounts;
mod agreements;
mod applications;
mod availability;
mod body;
mod call;
mod call_backs;
mod conditions;
mod configuration;
mod connections;
mod counted_places;
mod error;
mod files;
mod format;
mod health;
mod keys;
mod listener;
mod log;
mod maintenance;
mod metrics;
mod negotiations;
mod nodes;
mod openapi;
mod operation;
mod outputs;
mod path;
mod peers;
mod prices;
mod proxies;
mod query;
mod refusals;
mod replicas;
mod request_heads;
mod request_limits;
mod requests;
mod resources;
mod rights;
mod routes;
mod schema_set;
mod standby;
mod templates;
mod terms;
mod trail;
mod usage;
mod wrong_keys;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{Redirect, Response};
use task::KeptTasks;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate, SizeAbove};

pub use body::read_whole_body as body_of;
use call::authenticate_call;
pub use call::scope_of_caller;
pub use call::{base_address_of_call, use_cases_of_caller};
pub use connections::{Connections, Origin};
pub use error::Error;
pub use files::receive_uploaded_file;
use format::Format;
pub use keys::{KeyView, check_cap_of_key};
pub use keys::{get_listed_keys, make_key};
pub use listener::{ListenerBounds, serve};
pub use log::log_caller;
use log::log_request;
pub use metrics::RequestMetrics;
pub use openapi::openapi_description;
use operation::Operation;
pub use outputs::body_of_output as output_body;
pub use proxies::{PROXY_PROTOCOL, Proxies};
pub use request_limits::RequestLimits;
pub use request_limits::RequestPlace;
use request_limits::limit_requests;
pub use rights::{require_evictor, require_key_keeper, require_key_maker, require_operator, require_writer};
use routes::Routes;
pub use standby::{LeaderProxy, Stage, router_standing_by};
pub use wrong_keys::WrongKeys;

use access::Access;
use service::Service;

/// The smallest answer that is compressed, in bytes: a smaller one fits into a packet anyway.
const COMPRESSED_MIN: u64 = 1_024;

/// All that a key for monitoring may read.
const METRICS: &str = "/metrics";

/// Where the pages are.
const PAGES: &str = "/portal";

/// The path of calendar feeds. Their addresses are secrets, and open them.
pub const FEEDS: &str = "/portal/calendar-feed/";

/// The part beside the API for people: pages, which check their visitors themselves.
pub struct Pages {
    /// Their routes, below `/portal`.
    pub routes: Router<Api>,
    /// The page of an error before or after any of them ran.
    pub error: fn(&Error) -> Response,
}

/// The state of the handlers: cheap to clone.
#[derive(Clone)]
pub struct Api {
    /// The use cases. Shared: each layer of each request has a copy of this.
    pub service: Arc<Service>,
    /// The keys and sessions of callers.
    pub access: Access,
    /// How long a client may take for a body.
    pub body_timeout: Duration,
    /// For requests at work; more are turned away.
    pub places: RequestLimits,
    /// The wrong keys that came lately.
    pub wrong_keys: WrongKeys,
    /// The counts of requests.
    pub measured: RequestMetrics,
    /// The connections that they come on.
    pub connections: Connections,
    /// The long-lived tasks of the process.
    pub tasks: KeptTasks,
    /// The scheme of clients that name no other address: `https` where there is a certificate, or `http`.
    pub scheme: &'static str,
    /// The address by which clients know the service, where it is not the one they name.
    pub public_address: Option<Arc<str>>,
    /// Cancelled when the service stops: answers without an end of their own end then.
    pub stopping: CancellationToken,
}

/// The answer of a handler.
type Answer = Result<Response, Error>;

/// The routes that need a key.
fn keyed_routes() -> Routes {
    Routes::default()
        .merge(accounts::account_routes())
        .merge(agreements::agreement_routes())
        .merge(applications::application_routes())
        .merge(availability::availability_routes())
        .merge(call_backs::call_back_routes())
        .merge(configuration::configuration_routes())
        .merge(files::file_routes())
        .merge(keys::key_routes())
        .merge(maintenance::maintenance_routes())
        .merge(metrics::metrics_routes())
        .merge(negotiations::negotiation_routes())
        .merge(nodes::node_routes())
        .merge(outputs::output_routes())
        .merge(peers::peer_routes())
        .merge(prices::price_routes())
        .merge(refusals::refusal_routes())
        .merge(resources::resource_routes())
        .merge(templates::template_routes())
        .merge(trail::trail_routes())
        .merge(usage::usage_routes())
}

/// The routes that need none.
fn open_routes() -> Routes {
    Routes::default()
        .merge(root_routes())
        .merge(openapi::openapi_routes())
        .merge(peers::domain_routes())
}

/// The route of the root.
fn root_routes() -> Routes {
    Routes::default().get(
        "/",
        answer_root,
        Operation::new(
            "openPortal",
            "service",
            "Leads a browser to the pages; there is nothing here for programs",
        )
        .open()
        .leads("To the portal, for a client that accepts HTML."),
    )
}

/// Answers at the root: the pages are for browsers.
async fn answer_root(request: Request) -> Result<Redirect, Error> {
    if Format::is_page(request.headers()) {
        Ok(Redirect::to(PAGES))
    } else {
        Err(error::unknown_path_error(request).await)
    }
}

/// All routes that are described.
fn api_routes() -> Routes {
    keyed_routes().merge(open_routes()).merge(health::health_routes())
}

/// The routes of the API and, beside them, the pages.
pub fn router(api: Api, pages: Pages) -> Router {
    // Clients know the service by an address with TLS, its own or that of a proxy.
    let is_secure = api
        .public_address
        .as_deref()
        .unwrap_or(api.scheme)
        .starts_with("https");
    let keyed = keyed_routes()
        .router
        .fallback(error::unknown_path_error)
        .method_not_allowed_fallback(error::unknown_method_error)
        .layer(middleware::from_fn_with_state(api.clone(), authenticate_call))
        .layer(middleware::from_fn(conditions::check_conditions_of_read))
        .route_layer(middleware::from_fn(metrics::note_route));
    let router = open_routes()
        .router
        .merge(pages.routes)
        .merge(replicas::replica_routes())
        .fallback_service(keyed.with_state(api.clone()))
        .layer(middleware::from_fn_with_state(api.clone(), limit_requests))
        // The question whether the process lives is answered also when it is busy.
        .merge(health::health_routes().router)
        .route_layer(middleware::from_fn(metrics::note_route))
        .method_not_allowed_fallback(error::unknown_method_error)
        .layer(middleware::from_fn(request_heads::check_request_head))
        .layer(CatchPanicLayer::custom(error::answer_panic_with_error))
        .layer(middleware::from_fn_with_state(
            (api.clone(), pages.error),
            error::name_xml_of_error_as_asked,
        ))
        .layer(middleware::from_fn_with_state(
            api.clone(),
            metrics::measure_request,
        ))
        .layer(middleware::from_fn_with_state(
            api.clone(),
            standby::take_origin_from_standby,
        ))
        .layer(middleware::from_fn(log_request))
        .layer(CompressionLayer::new().compress_when(compression_rule()))
        .with_state(api);
    if is_secure {
        router.layer(middleware::from_fn(keep_to_tls))
    } else {
        router
    }
}

/// The answers that are compressed for clients that ask for it: texts that are worth it. Neither streams of events, which are told at
/// once, nor the files of jobs, which may be anything.
fn compression_rule() -> impl Predicate {
    DefaultPredicate::new()
        .and(SizeAbove::new(COMPRESSED_MIN))
        .and(NotForContentType::const_new("application/octet-stream"))
        // Pages have the token of the session's forms beside words of others: their compressed length would tell of it.
        .and(NotForContentType::const_new("text/html"))
}

/// Has browsers come back by TLS alone (RFC 6797).
async fn keep_to_tls(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let value = HeaderValue::from_static("max-age=31536000");
    answer
        .headers_mut()
        .entry(header::STRICT_TRANSPORT_SECURITY)
        .or_insert(value);
    answer
}

/// Where a request comes from, as the accept loop has noted it.
pub fn origin_of_request(request: &Request) -> Option<Origin> {
    request.extensions().get().copied()
}
