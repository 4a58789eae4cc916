//! The outputs of a reservation's job: their beginnings on its page, and each as a file.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use uuid::Uuid;

use crate::failure::Failure;
use crate::path::PagePath;
use crate::session::{self, Visitor};
use crate::{Answer, page_attachment};
use api::{Api, output_body, scope_of_caller};
use service::{AgreementView, Error, FilesView};

/// Bytes of an output that the page itself shows.
const SHOWN_MAX: usize = 4_096;

/// The output of a job.
pub(crate) struct JobOutput {
    pub(crate) file: &'static str,
    pub(crate) label: &'static str,
    /// Its beginning.
    pub(crate) text: String,
    /// Whether there is more of it than is shown.
    pub(crate) is_cut: bool,
}

/// The beginnings of both outputs of a job that has begun, and all its files.
pub(crate) async fn read_job_outputs(
    api: &Api,
    visitor: &Visitor,
    view: &AgreementView,
) -> Result<(Vec<JobOutput>, Option<FilesView>), Failure> {
    let mut outputs = Vec::new();
    if view.application.is_none() || view.started.is_none() {
        return Ok((outputs, None));
    }
    let scope = || scope_of_caller(&visitor.caller);
    let files = match service::list_outputs(&api.service, scope(), view.id).await {
        // The agreement is shown even where its files are kept no longer.
        Err(Error::Gone(_)) => return Ok((outputs, None)),
        files => files?,
    };
    for (file, label) in [("stdout", "Output"), ("stderr", "Error output")] {
        let mut output = match service::open_output(&api.service, scope(), view.id, file).await {
            Err(Error::Gone(_)) => return Ok((Vec::new(), None)),
            output => output?,
        };
        let bytes = output.page().await?;
        let shown = &bytes[..bytes.len().min(SHOWN_MAX)];
        outputs.push(JobOutput {
            file,
            label,
            text: String::from_utf8_lossy(shown).into_owned(),
            is_cut: bytes.len() > SHOWN_MAX,
        });
    }
    Ok((outputs, Some(files)))
}

/// GET /portal/agreements/{id}/files/{name}: an output as plain text, which no browser takes for a page; another file to be kept.
pub(crate) async fn show_job_output(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath((id, name)): PagePath<(Uuid, String)>,
) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, Some(id)).await?;
    let output = service::open_output(&api.service, scope_of_caller(&visitor.caller), id, &name).await?;
    let body = output_body(output).await?;
    // The use case knows the name: letters, digits, dots and the like.
    if !["stdout", "stderr"].contains(&name.as_str()) {
        return Ok(page_attachment("application/octet-stream", &name, body));
    }
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("inline; filename=\"{name}.txt\""),
        ),
    ];
    Ok((headers, body).into_response())
}
