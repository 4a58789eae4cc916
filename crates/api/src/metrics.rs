//! The metrics of requests, and GET /metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Extension;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::clock::{Micros, Steps};
use metrics::{Exposition, Histogram, MEDIA_TYPE, SECONDS, metrics};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use task::{KeptTasks, TaskState};

use super::operation::Operation;
use super::routes::Routes;
use super::{Api, Connections, Error, METRICS};
use access::{Caller, Role};

metrics! {
    BUILD = Gauge "bespeak_build_info": "The version; always 1.";
    STARTED = Gauge "process_start_time_seconds": "When the process was started, in seconds since 1970.";
    REQUESTS = Histogram "bespeak_http_request_seconds": "Requests, and how long they took until their answer began.";
    ERRORS = Counter "bespeak_http_errors_total": "Requests that were answered with an error, by its code.";
    STEPS = Counter "bespeak_clock_steps_total": "Noticed steps of the system's clock: each moves all due times.";
    LAST_STEP = Gauge "bespeak_clock_last_step_seconds":
        "The last step of the clock in seconds: below zero if it was set back, zero if there was none.";
    CONNECTIONS = Gauge "bespeak_http_connections": "Connections that are open.";
    CONNECTIONS_LIMIT = Gauge "bespeak_http_connections_limit": "Connections that may be open at the same time.";
    // Prometheus knows these by these names.
    MEMORY = Gauge "process_resident_memory_bytes": "Memory that the process holds.";
    VIRTUAL_MEMORY = Gauge "process_virtual_memory_bytes": "Addresses that the process has taken.";
    PROCESSOR = Counter "process_cpu_seconds_total": "Time that processors worked for the process.";
    OPEN_FILES = Gauge "process_open_fds": "File descriptors that are open.";
    OPEN_FILES_LIMIT = Gauge "process_max_fds": "File descriptors that may be open.";
    TASK_AGE = Gauge "bespeak_task_success_age_seconds":
        "How long ago a long-lived task last did its work; where it has not done it yet, how long ago it was begun.";
    TASK_LATE = Gauge "bespeak_task_late": "Whether that is longer ago than is right.";
    TASK_RESTARTS = Counter "bespeak_task_restarts_total": "How often a long-lived task was started again because it had failed.";
    CONNECTIONS_REFUSED = Counter "bespeak_http_connections_refused_total":
        "Connections that were closed at once, because their address had as many as it may have.";
    WRONG_KEYS_DELAYED = Counter "bespeak_http_wrong_keys_delayed_total":
        "Wrong keys that were answered later, because their address had sent others before.";
}

/// The route of a request that no route is for.
const NO_ROUTE: &str = "none";

/// The counts of requests while the process lives. Clones count together.
#[derive(Debug, Clone)]
pub struct RequestMetrics {
    started: Micros,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    /// By route, method and class of status.
    requests: BTreeMap<(Arc<str>, &'static str, &'static str), Histogram>,
    /// By the code that programs know an error by.
    errors: BTreeMap<&'static str, u64>,
}

impl RequestMetrics {
    /// Nothing yet, in a process that was started at an instant.
    pub fn since(started: Micros) -> Self {
        Self {
            started,
            counts: Arc::default(),
        }
    }

    /// Counts an answer to a request for a route.
    pub(super) fn request(&self, route: Arc<str>, method: &Method, status: StatusCode, seconds: f64) {
        let labels = (route, method_in_metrics(method), status_class_in_metrics(status));
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = counts.requests.entry(labels);
        histogram
            .or_insert_with(|| Histogram::new(SECONDS))
            .observe(seconds);
    }

    /// Counts an error that is answered.
    pub(super) fn error(&self, code: &'static str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.errors.entry(code).or_default() += 1;
    }

    fn expose(&self, text: &mut Exposition) {
        text.family(BUILD)
            .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
        text.number(STARTED, in_seconds(self.started));
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut family = text.family(REQUESTS);
        for ((route, method, status), histogram) in &counts.requests {
            let labels = [("route", &**route), ("method", method), ("status", status)];
            family.histogram(&labels, histogram);
        }
        text.numbers(ERRORS, "code", &counts.errors);
    }
}

/// Writes down how the clock was stepped.
fn expose_clock_steps(steps: Steps, text: &mut Exposition) {
    text.number(STEPS, steps.count);
    text.number(LAST_STEP, steps.last.map_or(0.0, |step| in_seconds(step.by)));
}

fn in_seconds(micros: Micros) -> f64 {
    jiff::SignedDuration::from_micros(micros).as_secs_f64()
}

/// A method as it is counted: invented methods make no series.
fn method_in_metrics(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE"];
    known
        .into_iter()
        .find(|word| method.as_str() == *word)
        .unwrap_or("other")
}

fn status_class_in_metrics(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}

/// Where the router writes which of its routes a request is for.
#[derive(Debug, Clone, Default)]
pub(super) struct Route(Arc<OnceLock<Arc<str>>>);

/// Counts every request, by the route that is found for it further inside.
pub(super) async fn measure_request(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let begun = tokio::time::Instant::now();
    let (route, method) = (Route::default(), request.method().clone());
    request.extensions_mut().insert(route.clone());
    let response = next.run(request).await;
    let route = route.0.get().map_or_else(|| NO_ROUTE.into(), Arc::clone);
    let seconds = begun.elapsed().as_secs_f64();
    api.measured.request(route, &method, response.status(), seconds);
    response
}

/// Notes the route that was found.
pub(super) async fn note_route(
    matched: Option<MatchedPath>,
    route: Option<Extension<Route>>,
    request: Request,
    next: Next,
) -> Response {
    if let (Some(matched), Some(Extension(Route(route)))) = (matched, route) {
        let _ = route.set(matched.as_str().into());
    }
    next.run(request).await
}

/// The connections, and the descriptors that they and all else take.
fn expose_connections(connections: &Connections, text: &mut Exposition) {
    let counted = connections.counted();
    text.number(CONNECTIONS, counted.open);
    text.number(CONNECTIONS_LIMIT, counted.most);
    if let Some(open) = count_descriptors_for_metrics() {
        text.number(OPEN_FILES, open);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        text.number(OPEN_FILES_LIMIT, most);
    }
    text.number(CONNECTIONS_REFUSED, counted.refused);
}

/// The memory of this process, and the work of processors for it, where the system tells them.
fn expose_process(text: &mut Exposition) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name before the parenthesis may have spaces. Behind it the state is the third field of proc(5).
    let fields: Vec<u64> = stat
        .rsplit_once(')')
        .map(|(_, fields)| {
            fields
                .split_whitespace()
                .map(|split_whitespace| split_whitespace.parse().unwrap_or(0))
                .collect()
        })
        .unwrap_or_default();
    let field = |number: usize| fields.get(number - 3).copied();
    if let (Some(user), Some(system), Some(virtual_bytes), Some(pages)) =
        (field(14), field(15), field(23), field(24))
    {
        text.number(MEMORY, pages * page_size() as u64);
        text.number(VIRTUAL_MEMORY, virtual_bytes);
        let hundredths = (user + system) * 100 / clock_ticks_per_second();
        text.number(
            PROCESSOR,
            format_args!("{}.{:02}", hundredths / 100, hundredths % 100),
        );
    }
}

/// How many descriptors this process has open, without the one that it looks with.
fn count_descriptors_for_metrics() -> Option<usize> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?;
    open.count().checked_sub(1)
}

/// How the long-lived tasks stand.
fn expose_tasks(tasks: &KeptTasks, text: &mut Exposition) {
    let states = tasks.states();
    let samples = |value: fn(&TaskState) -> f64| states.iter().map(move |task| (&task.name, value(task)));
    text.numbers(TASK_AGE, "task", samples(|task| task.age.as_secs_f64()));
    text.numbers(
        TASK_LATE,
        "task",
        samples(|task| f64::from(u8::from(task.is_late))),
    );
    let restarts = states.iter().map(|task| (&task.name, task.restarts));
    text.numbers(TASK_RESTARTS, "task", restarts);
}

/// The route of metrics.
pub(super) fn metrics_routes() -> Routes {
    Routes::default().get(
        METRICS,
        get_metrics,
        Operation::new(
            "getMetrics",
            "operation",
            "The metrics, in Prometheus' text format; for operators and monitors",
        )
        .answers_text(),
    )
}

/// GET /metrics: for operators, and for keys that are made to watch and can nothing else.
async fn get_metrics(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Error> {
    if !matches!(caller.role, Role::Operator | Role::Monitor) {
        return Err(Error::Forbidden("the role of operators or monitors"));
    }
    let mut text = Exposition::default();
    api.measured.expose(&mut text);
    expose_clock_steps(api.service.clock().steps(), &mut text);
    expose_connections(&api.connections, &mut text);
    expose_process(&mut text);
    expose_tasks(&api.tasks, &mut text);
    text.number(WRONG_KEYS_DELAYED, api.wrong_keys.delayed());
    api.service.expose(&mut text).await;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text.finish()).into_response())
}
