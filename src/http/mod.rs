//! The API over HTTP: one file a noun, one function a verb. The only module, with the portal's pages, that knows axum.
//!
//! The layers of every request, from the outside in. First come a request id and its log line, and a bound on requests at work.
//! Then the key, with a bound on requests of an address while their key is looked for. Then a bound on requests of its party, and
//! the handler. Bodies are read whole, within a bound of size and time, before anything looks at them.

mod accounts;
mod agreements;
mod availability;
mod body;
mod call;
mod call_backs;
mod conditions;
mod connections;
mod discovery;
mod error;
mod files;
mod format;
mod health;
mod listener;
mod metrics;
mod negotiations;
mod openapi;
mod path;
mod places;
mod resources;
mod shares;
mod templates;
mod trail;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post, put};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use uuid::Uuid;
use wsag::states::Part;

pub(crate) use body::{of as output_body, whole as body_of};
pub(crate) use call::base_address;
pub use connections::{Connections, Origin};
pub use error::Error;
pub use listener::{Bounds, serve};
pub use metrics::Measured;
pub(crate) use openapi::description;
pub use places::Places;
pub(crate) use resources::operators_only;

use crate::access::{Access, Caller, Role};
use crate::negotiation::{self, Negotiation, OfferMessage, Scope};

/// Every answer has it, and every log line of its request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// All that a key for monitoring may read.
const METRICS: &str = "/metrics";

/// Where the pages are.
const PAGES: &str = "/portal";

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
    pub negotiation: Arc<Negotiation>,
    /// The keys and sessions of callers.
    pub access: Access,
    /// How long a client may take for a body.
    pub body_timeout: Duration,
    /// For requests at work; more are turned away.
    pub places: Places,
    /// The counts of requests.
    pub measured: Measured,
    /// The connections that they come on.
    pub connections: Connections,
    /// The scheme of clients that name no other address: `https` where there is a certificate, or `http`.
    pub scheme: &'static str,
    /// The address by which clients know the service, where it is not the one they name.
    pub public_address: Option<Arc<str>>,
}

/// The answer of a handler.
type Answer = Result<Response, Error>;

/// The routes of the API and, beside them, the pages.
pub fn router(api: Api, pages: Pages) -> Router {
    let keyed = Router::new()
        .route("/availability", get(availability::show))
        .route("/templates", get(templates::list))
        .route("/templates/{id}", get(templates::show))
        .route("/agreements", get(agreements::list).post(agreements::create))
        .route("/agreements/{id}", agreements::part(None))
        .route("/agreements/{id}/state", agreements::part(Some(Part::State)))
        .route("/agreements/{id}/terms", agreements::part(Some(Part::Terms)))
        .route("/agreements/{id}/context", agreements::part(Some(Part::Context)))
        .route(
            "/agreements/{id}/service-terms",
            agreements::part(Some(Part::Services)),
        )
        .route(
            "/agreements/{id}/guarantee-terms",
            agreements::part(Some(Part::Guarantees)),
        )
        .route("/agreements/{id}/events", get(agreements::events))
        .route(
            "/agreements/{id}/files",
            get(agreements::files).delete(agreements::remove_files),
        )
        .route("/agreements/{id}/files/{name}", get(agreements::file))
        .route("/agreements/{id}/terminate", post(agreements::terminate))
        .route("/accounts", get(accounts::list))
        .route("/call-backs", get(call_backs::list))
        .route(
            "/call-backs/{name}",
            get(call_backs::show)
                .put(call_backs::put)
                .delete(call_backs::remove),
        )
        .route("/metrics", get(metrics::show))
        .route("/events", get(trail::list))
        .route("/refusals/{id}", get(trail::refused))
        .route("/files", get(files::list))
        .route(
            "/files/{name}",
            get(files::show).put(files::put).delete(files::remove),
        )
        .route(
            "/negotiations",
            post(negotiations::initiate).get(negotiations::list),
        )
        .route("/negotiations/{id}", get(negotiations::show))
        .route(
            "/negotiations/{id}/offers",
            negotiations::offer(OfferMessage::Negotiate),
        )
        .route(
            "/negotiations/{id}/advertisements",
            negotiations::offer(OfferMessage::Advertise),
        )
        .route("/negotiations/{id}/terminate", post(negotiations::terminate))
        .route("/offers/{id}", get(negotiations::find_offer))
        .route("/configuration/reload", post(resources::reload))
        .route("/applications", get(discovery::applications))
        .route("/prices", get(discovery::prices))
        .route("/resources", get(resources::list))
        .route("/resources/{name}", put(resources::put))
        .route("/resources/{name}/retire", resources::retire(true))
        .route("/resources/{name}/restore", resources::retire(false))
        .route("/resources/{name}/nodes", get(resources::nodes))
        .route("/resources/{name}/nodes/{nodes}", put(resources::say))
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(middleware::from_fn_with_state(api.clone(), authenticate))
        .route_layer(middleware::from_fn(metrics::routed));
    Router::new()
        .route("/", get(error::root))
        .route("/openapi.json", get(openapi::show))
        .merge(pages.routes)
        .fallback_service(keyed.with_state(api.clone()))
        .layer(middleware::from_fn_with_state(api.clone(), bounded))
        // The question whether the process lives is answered also when it is busy.
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route_layer(middleware::from_fn(metrics::routed))
        .method_not_allowed_fallback(error::no_such_method)
        .layer(CatchPanicLayer::custom(error::answer_panic))
        .layer(middleware::from_fn_with_state(
            (api.clone(), pages.error),
            error::rendered,
        ))
        .layer(middleware::from_fn_with_state(api.clone(), metrics::measured))
        .layer(middleware::from_fn(traced))
        .with_state(api)
}

/// The agreements that a caller may see: an operator those of all parties, a consumer its party's. A monitor never comes this
/// far.
pub fn scope(caller: &Caller) -> Scope {
    match caller.role {
        Role::Operator => Scope::All,
        Role::Consumer | Role::Monitor => Scope::Party(caller.party.clone()),
    }
}

/// The routes until the plan is rebuilt: they say that the process lives, and that it is not ready.
fn starting() -> Router {
    Router::new()
        .route("/healthz", get(health::healthz))
        .fallback(health::starting)
        .layer(middleware::from_fn(traced))
}

/// Gives the request its id and, when it is answered, its line in the log.
async fn traced(mut request: Request, next: Next) -> Response {
    let id = Uuid::now_v7().to_string();
    // A UUID is a valid header value: hexadecimal digits and hyphens.
    let value = HeaderValue::from_str(&id).expect("a UUID is visible ASCII");
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    request.headers_mut().insert(REQUEST_ID, value.clone());
    let span = tracing::info_span!("request", id);
    async move {
        let begun = tokio::time::Instant::now();
        let mut response = next.run(request).await;
        let status = response.status().as_u16();
        let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::info!(%method, path, status, elapsed_us, "answered");
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, value);
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        response
    }
    .instrument(span)
    .await
}

/// Turns requests away at once, with an error, rather than let them pile up.
async fn bounded(State(api): State<Api>, request: Request, next: Next) -> Answer {
    let _place = api.places.take().ok_or(Error::Busy)?;
    Ok(next.run(request).await)
}

/// Where a request comes from, as the accept loop has noted it.
pub(crate) fn origin_of(request: &Request) -> Option<Origin> {
    request.extensions().get().copied()
}

/// Lets in callers with a key, and tells the handlers which caller it is.
async fn authenticate(State(api): State<Api>, mut request: Request, next: Next) -> Answer {
    let bearer = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim().to_owned());
    let key = bearer.ok_or(Error::NoKey)?;
    let caller = {
        // Until its party is known: guesses are work, too.
        let _place = api.places.take_unknown(origin_of(&request))?;
        api.access.authenticate(&key).await
    };
    let caller = caller.map_err(negotiation::Error::from)?.ok_or(Error::NoKey)?;
    if caller.role == Role::Monitor && request.uri().path() != METRICS {
        return Err(Error::Forbidden("a role that may more than read /metrics"));
    }
    let _place = api.places.take_of(&caller.party)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}
