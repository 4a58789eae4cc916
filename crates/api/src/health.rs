//! Whether the process lives, and whether it can do its work.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use task::KeptTasks;

use super::Api;
use super::operation::Operation;
use super::routes::Routes;

/// The routes of probes.
pub(super) fn health_routes() -> Routes {
    Routes::default()
        .get(
            "/healthz",
            get_healthz,
            Operation::new("getHealth", "service", "Whether the process lives")
                .open()
                .answers_text(),
        )
        .get(
            "/readyz",
            get_readyz,
            Operation::new("getReadiness", "service", "Whether offers can be decided")
                .open()
                .answers_text(),
        )
}

/// GET /healthz: the process answers.
pub(super) async fn get_healthz() -> &'static str {
    "alive\n"
}

/// GET /readyz: the plan is rebuilt and the store answers. The text names a recent step of the clock, which moves all due
/// times, the clusters that have not passed their checks or do not answer, and the age of each task's last success; or the damage found in
/// the store. It needs no key, so it says nothing else: the state of resources is at /resources.
async fn get_readyz(State(api): State<Api>) -> Response {
    if let Some(finding) = api.service.distrusted() {
        let why = format!("nothing is decided, because the stored state is inconsistent: {finding}\n");
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    if !api.service.is_ready().await {
        let why = "the plan is not in step with the store yet\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    let mut lines = vec!["ready".to_owned(), "role: leader".to_owned()];
    lines.extend(api.service.clock().words_of_step());
    for name in api.service.closed_resources() {
        lines.push(format!(
            "nothing new is promised on {name}: it has not passed its checks"
        ));
    }
    for name in api.service.silent_clusters() {
        lines.push(format!("{name} does not report the states of its nodes"));
    }
    lines.extend(task_lines(&api.tasks));
    lines.push(String::new());
    lines.join("\n").into_response()
}

/// A line for each long-lived task, with the age of its last success.
pub(super) fn task_lines(tasks: &KeptTasks) -> impl Iterator<Item = String> {
    tasks.states().into_iter().map(|task| task.words())
}
