//! Requests at a process that starts or stands by. One that starts says that it is not ready. At one that stands by, what
//! the store knows is answered here; all else is passed on to the process that leads. A request that comes while no process leads waits for
//! the next one for some seconds, so that clients do not see the change.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::debug;

use super::body::{BODY_MAX, refuse_announced_body};
use super::call::bearer_of_call;
use super::error::name_xml_of_error_as_asked;
use super::health::task_lines;
use super::log::log_request;
use super::request_limits::{RequestPlace, limit_requests};
use super::{Api, Error, Origin, PAGES, Pages, health, origin_of_request};
use replicas::{Leader, ORIGIN, QUESTIONS, REPLICA, REPLICA_SECRET, Replicas};

/// How long a request waits for a process that leads.
const LEADER_WAIT: Duration = Duration::from_secs(10);
/// How long to wait before a process is asked again that does not lead, or cannot be reached.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a body that are kept to be sent again: of every document. Uploads may have more.
const KEPT_MAX: usize = BODY_MAX;
/// How long it is looked for a key in the store: the leader does so, too.
const KEY_WAIT: Duration = Duration::from_secs(1);
/// How requests are counted that cannot be passed on.
const NOT_PASSED_ON: &str = "not passed on";

/// The routes of a process, as it stands.
#[derive(Clone, Default)]
pub enum Stage {
    /// It is not ready.
    #[default]
    Starting,
    /// Another process leads.
    StandingBy(Router),
    /// It leads.
    Leading(Router),
}

/// The way of requests to the process that leads.
#[derive(Clone)]
pub struct LeaderProxy {
    /// The others.
    pub replicas: Replicas,
    /// This process.
    pub own: watch::Receiver<Stage>,
}

#[derive(Clone)]
struct StandbyState {
    way: LeaderProxy,
    api: Api,
    /// The routes that answer from the store.
    reads: Router,
}

/// The routes of a process that stands by: those of `api` for what the store knows.
pub fn router_standing_by(api: Api, pages: Pages, way: LeaderProxy) -> Router {
    let error_page = pages.error;
    let reads = super::router(api.clone(), pages);
    let passing = StandbyState {
        way,
        api: api.clone(),
        reads,
    };
    Router::new()
        .fallback(answer_or_pass_on)
        .layer(middleware::from_fn_with_state(api.clone(), limit_requests))
        // The routes that answer from the store, and the leader, have given their errors a body already.
        .layer(middleware::from_fn_with_state(
            (api, error_page),
            name_xml_of_error_as_asked,
        ))
        .route("/healthz", get(health::get_healthz))
        .route("/readyz", get(answer_readiness))
        .layer(middleware::from_fn(log_request))
        .with_state(passing)
}

/// The routes until the plan is rebuilt: they say that the process lives, and that it is not ready.
pub(super) fn standby_router_while_starting() -> Router {
    Router::new()
        .route("/healthz", get(health::get_healthz))
        .fallback(answer_before_standby)
        .layer(middleware::from_fn(log_request))
}

/// Everything else before the plan is rebuilt.
async fn answer_before_standby(request: Request) -> Response {
    if request.headers().contains_key(REPLICA) {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    }
    let retry = [(header::RETRY_AFTER, "1")];
    (
        StatusCode::SERVICE_UNAVAILABLE,
        retry,
        "the plan is being rebuilt\n",
    )
        .into_response()
}

/// Whether a request is to be answered at once by a process that starts: probes, and requests that another process passes on.
pub(super) fn is_for_one_that_starts<B>(request: &axum::http::Request<B>) -> bool {
    matches!(request.uri().path(), "/healthz" | "/readyz") || request.headers().contains_key(REPLICA)
}

/// GET /readyz of a process that stands by: whether it knows a process that leads.
async fn answer_readiness(State(passing): State<StandbyState>) -> Response {
    let leader = passing.way.replicas.leader().borrow().clone();
    let tasks: String = task_lines(&passing.api.tasks).map(|line| line + "\n").collect();
    if let Some(leader) = leader {
        return format!("ready\nrole: standby\nleader: {}\n{tasks}", leader.name).into_response();
    }
    let why = format!("no process leads at the moment\nrole: standby\n{tasks}");
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

async fn answer_or_pass_on(State(passing): State<StandbyState>, request: Request) -> Response {
    let is_passed_on = request.headers().contains_key(REPLICA);
    // Such a call is never passed on: the leader would take it for a call of this replica.
    if is_between_replicas(request.uri().path()) {
        let is_for_leader = request.uri().path() == QUESTIONS;
        if is_for_leader && is_passed_on {
            return StatusCode::MISDIRECTED_REQUEST.into_response();
        }
        return answer_on_standby(passing.reads, request).await;
    }
    // A process that leads passes nothing on. One that was taken for it is asked again when it does.
    if is_passed_on && !may_lead_soon(&passing.way) {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    }
    if !is_passed_on && is_read_on_standby(&request) {
        return answer_on_standby(passing.reads, request).await;
    }
    let (method, begun) = (request.method().clone(), Instant::now());
    let answer = if is_open_to_all(request.uri().path()) {
        let has_body = !request.body().is_end_stream();
        match passing.take_unread(origin_of_request(&request), has_body) {
            Ok(place) => pass_on(&passing, request, HeldPlace::UntilRead(place)).await,
            Err(error) => Err(error),
        }
    } else {
        let (origin, key) = (origin_of_request(&request), bearer_of_call(&request));
        match passing.take_place(origin, key.map(str::to_owned)).await {
            Ok(Some(place)) => pass_on(&passing, request, place).await,
            // It has no key that is right, and is refused as everywhere.
            Ok(None) => return answer_on_standby(passing.reads, request).await,
            Err(error) => Err(error),
        }
    };
    answer.unwrap_or_else(|error| {
        let answer = error.into_response();
        let (measured, seconds) = (&passing.api.measured, begun.elapsed().as_secs_f64());
        // The leader counts what it answers.
        measured.request(NOT_PASSED_ON.into(), &method, answer.status(), seconds);
        answer
    })
}

/// The place of a request that is passed on.
enum HeldPlace {
    /// Among those of its address, until its body has been read; no place where it has no body.
    UntilRead(Option<RequestPlace>),
    /// Among those of its party, until it is answered.
    UntilAnswered(RequestPlace),
}

impl StandbyState {
    /// A place among those of its address for a request without a key, until its body has been read. A request without a body needs none.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    fn take_unread(&self, origin: Option<Origin>, has_body: bool) -> Result<Option<RequestPlace>, Error> {
        if has_body {
            self.api.places.take_unread(origin)
        } else {
            Ok(None)
        }
    }

    /// The place of a request with a key; none where the key is wrong, or there is none.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    async fn take_place(
        &self,
        origin: Option<Origin>,
        key: Option<String>,
    ) -> Result<Option<HeldPlace>, Error> {
        let places = &self.api.places;
        let Some(key) = key else {
            return Ok(None);
        };
        let looked_for = {
            let _place = places.take_unknown(origin)?;
            tokio::time::timeout(KEY_WAIT, self.api.access.authenticate(&key)).await
        };
        match looked_for {
            Ok(Ok(Some(caller))) => Ok(Some(HeldPlace::UntilAnswered(places.take_of(&caller.party)?))),
            Ok(Ok(None)) => Ok(None),
            // The leader may reach the store all the same.
            Ok(Err(_)) | Err(_) => Ok(Some(HeldPlace::UntilRead(places.take_unread(origin)?))),
        }
    }
}

/// Whether no other process is known to lead: this one may by the time that the request has been read.
fn may_lead_soon(way: &LeaderProxy) -> bool {
    way.replicas.leader().borrow().is_none()
}

/// Whether a path needs no key: the pages, where people sign in, and the description of a domain.
fn is_open_to_all(path: &str) -> bool {
    path.starts_with("/portal") || path.starts_with("/.well-known/")
}

/// Whether a path is for other replicas only.
fn is_between_replicas(path: &str) -> bool {
    path.starts_with("/replicas/")
}

/// Whether a request asks for what the store knows, and nothing of the plan.
fn is_read_on_standby(request: &Request) -> bool {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return false;
    }
    let mut parts = request.uri().path().trim_start_matches('/').split('/');
    let (noun, id, part) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    match noun {
        // Files are with the replica that ran the job, the cost of an end with the plan.
        "agreements" => !matches!(part, Some("files" | "ending")),
        "accounts" | "negotiations" | "offers" | "refusals" | "openapi.json" => true,
        "events" | "call-backs" | "keys" => part.is_none(),
        // Each process has its own.
        "metrics" => id.is_none(),
        _ => false,
    }
}

/// Whether all posts to a path keep their answers under their Idempotency-Key.
fn is_path_repeated_by_standby(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').split('/');
    match parts.next() {
        Some("agreements" | "negotiations") => true,
        Some("keys") => parts.next().is_none(),
        _ => false,
    }
}

async fn answer_on_standby(router: Router, request: Request) -> Response {
    // The routes never fail.
    router
        .oneshot(request)
        .await
        .unwrap_or_else(|never| match never {})
}

/// A request that may be sent several times, as long as its body is kept.
struct PassedRequest {
    parts: Parts,
    origin: Option<Origin>,
    kept: Bytes,
    /// The rest of a body that is too large to be kept.
    rest: Option<Body>,
    /// How long the client may take for a body that is kept, and for each part of the rest.
    body_timeout: Duration,
}

/// What became of a try.
enum TryOutcome {
    Answered(Response),
    /// The process does not lead, or was not reached: nothing was done.
    NotThere,
    /// The process had the request and is gone, or does not lead any more.
    Lost,
}

/// Sends a request to the process that leads, until one answers or the time is over. One that a lost process may have carried out is
/// sent again only where that does no harm.
async fn pass_on(passing: &StandbyState, request: Request, place: HeldPlace) -> Result<Response, Error> {
    let StandbyState { way, api, .. } = passing;
    let mut passed = PassedRequest::read(request, api.body_timeout).await?;
    let _of_party = match place {
        HeldPlace::UntilRead(place) => {
            drop(place);
            None
        }
        HeldPlace::UntilAnswered(place) => Some(place),
    };
    let until = Instant::now() + LEADER_WAIT;
    let (mut own, mut leader) = (way.own.clone(), way.replicas.leader());
    loop {
        let stage = own.borrow_and_update().clone();
        if let Stage::Leading(router) = stage {
            return match passed.into_request() {
                Some(request) => Ok(answer_on_standby(router, request).await),
                None => Err(Error::LeaderLost),
            };
        }
        let now = leader.borrow_and_update().clone();
        if let Some(now) = now {
            let tried = tokio::select! {
                tried = passed.send_to(&way.replicas, &now) => tried,
                _ = leader.wait_for(|present_leader| present_leader.as_ref() != Some(&now)) => TryOutcome::Lost,
            };
            match tried {
                TryOutcome::Answered(answer) => return Ok(end_events_of_standby(answer, &api.stopping)),
                TryOutcome::Lost if !passed.may_come_twice() => return Err(Error::LeaderLost),
                TryOutcome::Lost | TryOutcome::NotThere => {}
            }
        }
        if Instant::now() >= until || passed.is_spent() {
            return Err(Error::NoLeader);
        }
        tokio::select! {
            _ = own.changed() => {}
            _ = leader.changed() => {}
            () = api.stopping.cancelled() => return Err(Error::NoLeader),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

impl PassedRequest {
    async fn read(request: Request, body_timeout: Duration) -> Result<Self, Error> {
        // Uploads, which pages take too, may have more.
        let path = request.uri().path();
        if !path.starts_with("/files/") && !path.starts_with(PAGES) {
            refuse_announced_body(request.headers())?;
        }
        let origin = origin_of_request(&request);
        let (parts, mut body) = request.into_parts();
        let mut kept = Vec::new();
        let mut rest = None;
        let until = tokio::time::Instant::now() + body_timeout;
        let frame_in_time = |_| Error::BodyTimeout;
        while let Some(frame) = tokio::time::timeout_at(until, body.frame())
            .await
            .map_err(frame_in_time)?
        {
            let frame = frame.map_err(|why| Error::BodyBroken(why.to_string()))?;
            if let Ok(data) = frame.into_data() {
                kept.extend_from_slice(&data);
            }
            if kept.len() > KEPT_MAX {
                rest = Some(body);
                break;
            }
        }
        Ok(Self {
            parts,
            origin,
            kept: kept.into(),
            rest,
            body_timeout,
        })
    }

    /// Whether a second time does no harm (RFC 9110, section 9.2.2), or its key makes sure of that.
    fn may_come_twice(&self) -> bool {
        let method = &self.parts.method;
        let has_key = self.parts.headers.contains_key("idempotency-key");
        !self.is_spent()
            && (method.is_idempotent() || has_key && is_path_repeated_by_standby(self.parts.uri.path()))
    }

    /// Whether a part of its body has been sent and is not kept.
    fn is_spent(&self) -> bool {
        self.rest.is_none() && self.kept.len() > KEPT_MAX
    }

    fn into_request(mut self) -> Option<Request> {
        if self.is_spent() {
            return None;
        }
        let body = match self.rest.take() {
            None => Body::from(self.kept),
            Some(rest) => {
                let (sender, body) = Channel::<Bytes, io::Error>::new(1);
                task::spawn(send_passed_body(sender, self.kept, rest, self.body_timeout));
                Body::new(body)
            }
        };
        let mut request = Request::from_parts(self.parts, body);
        if let Some(origin) = self.origin {
            request.extensions_mut().insert(origin);
        }
        Some(request)
    }

    async fn send_to(&mut self, replicas: &Replicas, leader: &Leader) -> TryOutcome {
        let path = self.parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let made = replicas.request(self.parts.method.clone(), &leader.address, path);
        let request = match made.await {
            Ok(request) => request.headers(self.headers()),
            Err(why) => {
                debug!(why, leader = leader.name, "cannot be asked");
                return TryOutcome::NotThere;
            }
        };
        let body = match self.rest.take() {
            None => reqwest::Body::from(self.kept.clone()),
            Some(rest) => {
                let (sender, body) = Channel::<Bytes, io::Error>::new(1);
                task::spawn(send_passed_body(
                    sender,
                    self.kept.clone(),
                    rest,
                    self.body_timeout,
                ));
                reqwest::Body::wrap(body)
            }
        };
        match request.body(body).send().await {
            Ok(answer) if answer.status() == StatusCode::MISDIRECTED_REQUEST => TryOutcome::NotThere,
            Ok(answer) => TryOutcome::Answered(answer_of_leader(answer)),
            Err(why) => {
                let words = replicas.note_failure(&leader.address, &why);
                debug!(why = words, leader = leader.name, "does not answer");
                if why.is_connect() {
                    TryOutcome::NotThere
                } else {
                    TryOutcome::Lost
                }
            }
        }
    }

    /// The headers that go on.
    fn headers(&self) -> HeaderMap {
        let mut headers = self.parts.headers.clone();
        remove_headers_not_passed_on(&mut headers);
        headers.remove(header::CONTENT_LENGTH);
        for own in [REPLICA, REPLICA_SECRET, ORIGIN] {
            headers.remove(own);
        }
        // The header is set also where the origin is not known: it marks a client's request.
        let origin = self.origin.map(|origin| origin.to_string());
        let origin = origin.and_then(|origin| HeaderValue::from_str(&origin).ok());
        headers.insert(ORIGIN, origin.unwrap_or(HeaderValue::from_static("unknown")));
        headers
    }
}

/// Sends a body on, until a part of it does not come within a time.
async fn send_passed_body(mut sender: Sender<Bytes, io::Error>, kept: Bytes, mut rest: Body, wait: Duration) {
    if sender.send_data(kept).await.is_err() {
        return;
    }
    loop {
        let data = match tokio::time::timeout(wait, rest.frame()).await {
            Ok(None) => return,
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(why))) => return sender.abort(io::Error::other(why.to_string())),
            Err(_) => return sender.abort(io::Error::other("the body does not go on")),
        };
        if !data.is_empty() && sender.send_data(data).await.is_err() {
            return;
        }
    }
}

fn answer_of_leader(answer: reqwest::Response) -> Response {
    let mut answer = axum::http::Response::from(answer).map(Body::new);
    remove_headers_not_passed_on(answer.headers_mut());
    answer
}

/// Events have no end of their own: they end when this process stops, and the page asks another one.
fn end_events_of_standby(answer: Response, stopping: &CancellationToken) -> Response {
    let content_type = answer.headers().get(header::CONTENT_TYPE);
    if content_type.is_none_or(|content_type| content_type != "text/event-stream") {
        return answer;
    }
    let stopping = stopping.clone().cancelled_owned();
    answer.map(|body| Body::from_stream(body.into_data_stream().take_until(stopping)))
}

/// Removes the headers that are about one connection only (RFC 9110, section 7.6.1).
fn remove_headers_not_passed_on(headers: &mut HeaderMap) {
    const OF_CONNECTION: [HeaderName; 8] = [
        header::CONNECTION,
        header::EXPECT,
        header::TRANSFER_ENCODING,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
    ];
    for name in OF_CONNECTION {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}

/// Gives a request that another replica passes on the origin that it had there.
pub(super) async fn take_origin_from_standby(
    State(api): State<Api>,
    mut request: Request,
    next: Next,
) -> Response {
    let text = |headers: &HeaderMap, name| {
        headers
            .get(name)
            .and_then(|header| header.to_str().ok())
            .map(str::to_owned)
    };
    let headers = request.headers();
    let said = (
        text(headers, REPLICA),
        text(headers, REPLICA_SECRET),
        text(headers, ORIGIN),
    );
    if let (Some(name), Some(secret), origin) = said {
        let is_known = service::is_replica(&api.service, &name, &secret).await;
        if let (true, Some(at)) = (is_known, origin_of_request(&request)) {
            api.connections.note_replica(at);
        }
        // This process gives way to the next leader. It answers only the requests that it has already.
        if is_known && api.stopping.is_cancelled() {
            return StatusCode::MISDIRECTED_REQUEST.into_response();
        }
        match origin {
            Some(origin) if is_known => {
                if let Ok(origin) = origin.parse::<IpAddr>() {
                    request.extensions_mut().insert(Origin::from(origin));
                }
            }
            None if is_known => {
                request.extensions_mut().insert(FromReplica(name));
            }
            _ => {}
        }
    }
    for own in [REPLICA, REPLICA_SECRET, ORIGIN] {
        request.headers_mut().remove(own);
    }
    next.run(request).await
}

/// The replica that a request comes from, in its extensions: one of its own, and none that it passes on.
#[derive(Debug, Clone)]
pub(super) struct FromReplica(pub(super) String);
