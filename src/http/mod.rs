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
mod error;
mod files;
mod format;
mod heads;
mod health;
mod keys;
mod listener;
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
mod refusals;
mod replicas;
mod request_limits;
mod requests;
mod resources;
mod routes;
mod schema_set;
mod shares;
mod standby;
mod templates;
mod terms;
mod trail;
mod usage;
mod wrong_keys;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate, SizeAbove};
use tracing::{Instrument, field};
use uuid::Uuid;

pub(crate) use agreements::require_evictor;
pub(crate) use body::{body_of_output as output_body, read_whole_body as body_of};
pub(crate) use call::base_address;
pub use connections::{Connections, Origin};
pub use error::Error;
pub(crate) use files::receive_upload;
pub use keys::{KeyView, check_cap};
pub(crate) use keys::{list_keys, make_key, require_key_keeper, require_key_maker};
pub use listener::{Bounds, serve};
pub use metrics::RequestMetrics;
pub(crate) use openapi::openapi_description;
pub use proxies::{PROXY_PROTOCOL, Proxies};
pub use request_limits::RequestLimits;
pub(crate) use request_limits::RequestPlace;
pub(crate) use resources::require_operator;
use routes::Routes;
pub use standby::{LeaderProxy, Stage, router_standing_by};
pub use wrong_keys::WrongKeys;

use task::KeptTasks;

use crate::access::{Access, Caller, Role, hide_keys};
use crate::service::{self, Scope, Service};

/// Every answer has it, and every log line of its request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The smallest answer that is compressed, in bytes: a smaller one fits into a packet anyway.
const COMPRESSED_MIN: u64 = 1_024;

/// All that a key for monitoring may read.
const METRICS: &str = "/metrics";

/// Where the pages are.
const PAGES: &str = "/portal";

/// The path of calendar feeds. Their addresses are secrets, and open them.
pub(crate) const FEEDS: &str = "/portal/calendar-feed/";

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

impl Api {
    /// Whether clients know the service by an address with TLS, its own or that of a proxy.
    fn is_secure(&self) -> bool {
        let address = self.public_address.as_deref().unwrap_or(self.scheme);
        address.starts_with("https")
    }

    /// Counts a wrong key that came from an address, and waits until it may be answered.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where as many of the address wait already.
    pub(crate) async fn delay_wrong_key(&self, origin: Option<Origin>) -> Result<(), Error> {
        let _place = self.places.take_wrong(origin)?;
        self.wrong_keys.wait_after(origin).await;
        Ok(())
    }
}

/// The answer of a handler.
type Answer = Result<Response, Error>;

/// The routes that need a key.
fn keyed_routes() -> Routes {
    Routes::default()
        .merge(accounts::routes())
        .merge(agreements::routes())
        .merge(applications::routes())
        .merge(availability::routes())
        .merge(call_backs::routes())
        .merge(configuration::routes())
        .merge(files::routes())
        .merge(keys::routes())
        .merge(maintenance::routes())
        .merge(metrics::routes())
        .merge(negotiations::routes())
        .merge(nodes::routes())
        .merge(outputs::routes())
        .merge(peers::routes())
        .merge(prices::routes())
        .merge(refusals::routes())
        .merge(resources::routes())
        .merge(templates::routes())
        .merge(trail::routes())
        .merge(usage::routes())
}

/// The routes that need none.
fn open_routes() -> Routes {
    Routes::default()
        .merge(error::routes())
        .merge(openapi::routes())
        .merge(peers::open_routes())
}

/// All routes that are described.
fn api_routes() -> Routes {
    keyed_routes().merge(open_routes()).merge(health::routes())
}

/// The routes of the API and, beside them, the pages.
pub fn router(api: Api, pages: Pages) -> Router {
    let is_secure = api.is_secure();
    let keyed = keyed_routes()
        .router
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(middleware::from_fn_with_state(api.clone(), authenticate_request))
        .layer(middleware::from_fn(conditions::check_read))
        .route_layer(middleware::from_fn(metrics::note_route));
    let router = open_routes()
        .router
        .merge(pages.routes)
        .merge(replicas::routes())
        .fallback_service(keyed.with_state(api.clone()))
        .layer(middleware::from_fn_with_state(api.clone(), limit_requests))
        // The question whether the process lives is answered also when it is busy.
        .merge(health::routes().router)
        .route_layer(middleware::from_fn(metrics::note_route))
        .method_not_allowed_fallback(error::no_such_method)
        .layer(middleware::from_fn(heads::check_head))
        .layer(CatchPanicLayer::custom(error::answer_panic))
        .layer(middleware::from_fn_with_state(
            (api.clone(), pages.error),
            error::name_xml_as_asked,
        ))
        .layer(middleware::from_fn_with_state(
            api.clone(),
            metrics::measure_request,
        ))
        .layer(middleware::from_fn_with_state(api.clone(), standby::take_origin))
        .layer(middleware::from_fn(trace_request))
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

/// The agreements that a caller may see: an operator those of all parties, a consumer its party's. A monitor never comes this
/// far.
pub fn scope_of_caller(caller: &Caller) -> Scope {
    match caller.role {
        Role::Operator => Scope::All,
        Role::Consumer | Role::Monitor => Scope::Party(caller.party.clone()),
    }
}

/// The use cases for a caller: what its key may spend is counted, and an operator's has no bound of agreements and questions.
pub(crate) fn use_cases_of(service: &Arc<Service>, caller: &Caller) -> Arc<Service> {
    let mut service = Cow::Borrowed(service);
    if caller.role == Role::Operator {
        service = Cow::Owned(Arc::new(service.unbounded()));
    }
    if let Some(spender) = caller.spender() {
        service = Cow::Owned(Arc::new(service.with_cap(spender)));
    }
    service.into_owned()
}

/// Lets in callers whose key may change something.
pub(crate) fn require_writer(caller: &Caller) -> Result<(), Error> {
    if caller.limits.read_only {
        return Err(Error::Forbidden("more rights: this one is for reading only"));
    }
    Ok(())
}

/// The routes until the plan is rebuilt: they say that the process lives, and that it is not ready.
fn router_while_starting() -> Router {
    Router::new()
        .route("/healthz", get(health::get_healthz))
        .fallback(health::answer_while_starting)
        .layer(middleware::from_fn(trace_request))
}

/// Gives the request its id and, when it is answered, its line in the log.
async fn trace_request(mut request: Request, next: Next) -> Response {
    let id = Uuid::now_v7().to_string();
    // A UUID is a valid header value: hexadecimal digits and hyphens.
    let value = HeaderValue::from_str(&id).expect("a UUID is visible ASCII");
    let (method, path) = (request.method().clone(), path_in_log(request.uri().path()));
    request.headers_mut().insert(REQUEST_ID, value.clone());
    let peer = origin_of_request(&request).map(field::display);
    // The sender is known later.
    let span = tracing::info_span!("request", id, peer, party = field::Empty, key = field::Empty);
    async move {
        let begun = tokio::time::Instant::now();
        let mut response = next.run(request).await;
        let status = response.status().as_u16();
        let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::info!(%method, path, status, elapsed_us, "answered");
        let headers = response.headers_mut();
        // An answer that was passed on has the one by which the other process knows it.
        headers.entry(REQUEST_ID).or_insert(value);
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

/// The path of a request without secrets.
fn path_in_log(path: &str) -> String {
    if path.starts_with(FEEDS) {
        format!("{FEEDS}…")
    } else {
        hide_keys(path).into_owned()
    }
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

/// Turns requests away at once, with an error, rather than let them pile up.
async fn limit_requests(State(api): State<Api>, request: Request, next: Next) -> Answer {
    let _place = api.places.take().ok_or(Error::Busy)?;
    Ok(next.run(request).await)
}

/// Where a request comes from, as the accept loop has noted it.
pub(crate) fn origin_of_request(request: &Request) -> Option<Origin> {
    request.extensions().get().copied()
}

/// The key of a request, where it has one.
fn bearer_of_request(request: &Request) -> Option<&str> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Notes the sender of the present request in its log.
pub(crate) fn log_caller(caller: &Caller) {
    let span = tracing::Span::current();
    span.record("party", &caller.party);
    span.record("key", field::display(caller.key));
}

/// Lets in callers with a key, and tells the handlers which caller it is.
async fn authenticate_request(State(api): State<Api>, mut request: Request, next: Next) -> Answer {
    let key = bearer_of_request(&request).ok_or(Error::NoKey)?;
    let caller = {
        // Until its party is known: guesses are work, too.
        let origin = origin_of_request(&request);
        let place = api.places.take_unknown(origin)?;
        let caller = api.access.authenticate(key).await;
        let caller = caller.map_err(service::Error::from)?;
        drop(place);
        if caller.is_none() {
            api.delay_wrong_key(origin).await?;
        }
        caller.ok_or(Error::NoKey)?
    };
    log_caller(&caller);
    if caller.role == Role::Monitor && request.uri().path() != METRICS {
        return Err(Error::Forbidden("a role that may more than read /metrics"));
    }
    if !request.method().is_safe() {
        require_writer(&caller)?;
    }
    let _place = api.places.take_of(&caller.party)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}
