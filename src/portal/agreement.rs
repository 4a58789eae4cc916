//! An agreement: its state, its plan and its events, the output of its job, and its end.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect};
use uuid::Uuid;

use super::error::Failure;
use super::path::Path;
use super::session::{self, Visitor};
use super::text::{self, StateLabel};
use super::{Answer, Frame, render_page};
use crate::http::{Api, base_address, output_body, require_writer, scope_of_caller};
use crate::negotiation::{AgreementView, Error, EventView, GuaranteeView, Input, TerminateRequest};

/// Bytes of an output that the page itself shows.
const SHOWN_MAX: usize = 4_096;

#[derive(Template)]
#[template(path = "portal/agreement.html")]
struct AgreementPage {
    frame: Frame,
    name: String,
    standing: StateLabel,
    agreement: AgreementView,
    address: String,
    nodes: String,
    duration: String,
    events: Vec<EventView>,
    guarantees: Vec<GuaranteeView>,
    outputs: Vec<Output>,
    can_end: bool,
    /// Whether it may still change.
    is_open: bool,
}

/// Asks once more.
#[derive(Template)]
#[template(path = "portal/terminate.html")]
struct Confirm {
    frame: Frame,
    id: Uuid,
    name: String,
}

/// The output of a job.
struct Output {
    file: &'static str,
    label: &'static str,
    /// Its beginning.
    text: String,
    /// Whether there is more of it than is shown.
    is_cut: bool,
}

/// GET /portal/agreements/{id}.
pub(super) async fn show_agreement_page(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Answer {
    let (id, visitor) = addressed_agreement(&api, &headers, &id).await?;
    let view = api
        .negotiation
        .show_agreement(scope_of_caller(&visitor.caller), id)
        .await?
        .view;
    let (timeline, _) = api
        .negotiation
        .timeline(scope_of_caller(&visitor.caller), id)
        .await?;
    let outputs = read_outputs(&api, &visitor, &view).await?;
    let name = text::name(&view);
    let shown = AgreementPage {
        frame: visitor.frame(name.as_str()),
        is_open: !text::is_final(&view),
        name,
        standing: text::standing(&view),
        address: view.address(&base_address(&api, &headers)),
        nodes: text::nodes(view.nodes),
        duration: text::duration(view.duration_seconds),
        events: timeline.events,
        guarantees: view.guarantees.clone(),
        outputs,
        can_end: view.state == "Observed",
        agreement: view,
    };
    render_page(StatusCode::OK, &shown)
}

/// The agreement that a path names, and its visitor.
async fn addressed_agreement(api: &Api, headers: &HeaderMap, id: &str) -> Result<(Uuid, Visitor), Failure> {
    let id = id.parse().map_err(|_| Failure::NotFound)?;
    Ok((id, session::signed_in(api, headers, Some(id)).await?))
}

/// The beginnings of both outputs of a job that has begun.
async fn read_outputs(api: &Api, visitor: &Visitor, view: &AgreementView) -> Result<Vec<Output>, Failure> {
    let mut outputs = Vec::new();
    if view.application.is_none() || view.started.is_none() {
        return Ok(outputs);
    }
    for (file, label) in [("stdout", "Output"), ("stderr", "Error output")] {
        let mut output = match api
            .negotiation
            .output(scope_of_caller(&visitor.caller), view.id, file)
            .await
        {
            // The agreement is shown even where its output is kept no longer.
            Err(Error::Gone(_)) => return Ok(Vec::new()),
            output => output?,
        };
        let bytes = output.page().await?;
        let shown = &bytes[..bytes.len().min(SHOWN_MAX)];
        outputs.push(Output {
            file,
            label,
            text: String::from_utf8_lossy(shown).into_owned(),
            is_cut: bytes.len() > SHOWN_MAX,
        });
    }
    Ok(outputs)
}

/// GET /portal/agreements/{id}/files/{name}: an output as plain text, which no browser takes for a page.
pub(super) async fn show_job_output(
    State(api): State<Api>,
    headers: HeaderMap,
    Path((id, name)): Path<(String, String)>,
) -> Answer {
    let (id, visitor) = addressed_agreement(&api, &headers, &id).await?;
    let output = api
        .negotiation
        .output(scope_of_caller(&visitor.caller), id, &name)
        .await?;
    let body = output_body(output).await?;
    // The name is one of two that the use case knows.
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("inline; filename=\"{name}.txt\""),
        ),
    ];
    Ok((headers, body).into_response())
}

/// GET /portal/agreements/{id}/terminate: a page that stays as it is while it is read.
pub(super) async fn confirm_termination(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Answer {
    let (id, visitor) = addressed_agreement(&api, &headers, &id).await?;
    require_writer(&visitor.caller)?;
    let view = api
        .negotiation
        .show_agreement(scope_of_caller(&visitor.caller), id)
        .await?
        .view;
    let name = text::name(&view);
    let confirm = Confirm {
        frame: visitor.frame(format!("Terminate {name}?")),
        id,
        name,
    };
    render_page(StatusCode::OK, &confirm)
}

/// POST /portal/agreements/{id}/terminate.
pub(super) async fn terminate_agreement(
    State(api): State<Api>,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let (visitor, _) = session::read_session_form(&api, request).await?;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let order = TerminateRequest {
        id,
        input: Input::Xml(Vec::new()),
        by: visitor.caller.party.clone(),
        versions: None,
        key: None,
    };
    api.negotiation
        .terminate_agreement(scope_of_caller(&visitor.caller), order)
        .await?;
    Ok(Redirect::to(&format!("/portal/agreements/{id}")).into_response())
}
