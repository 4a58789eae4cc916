//! The offer form as it was submitted: its request, and all that is wrong with it.

use axum::http::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use crate::failure::Failure;
use crate::request::field_names;
use crate::request::form_reader::{FormPart, Problem, ReadForm, read_form};
use crate::request::problems::{problems_of_offer, whole_form_problem};
use crate::request::refusal::{StoredRefusal, refusal_reason_in_words};
use crate::session::Visitor;
use crate::text;
use crate::values::Values;
use api::Api;
use service::{RefusalView, Request};

/// A form as it was sent, and its result.
#[derive(Default)]
pub(crate) struct SubmittedForm {
    pub(crate) values: Values,
    pub(crate) problems: Vec<Problem>,
    pub(crate) refusal: Option<RefusalView>,
    pub(crate) once: Option<Uuid>,
    /// Whether the address has filled it in.
    pub(crate) is_filled: bool,
    /// The name of a file that was uploaded just before.
    pub(crate) uploaded: Option<String>,
}

/// The request of a form without mistakes.
pub(crate) struct SentRequest {
    pub(crate) wish: Request,
    /// The most offers that its sender wants to see.
    pub(crate) choices: usize,
    /// The name of the form, under which it counts once.
    pub(crate) once: Uuid,
}

impl SubmittedForm {
    /// Whether something is to be said about it.
    pub(crate) fn has_gone_wrong(&self) -> bool {
        !self.problems.is_empty() || self.refusal.is_some()
    }

    /// Notes why its request was not taken; the status of the page that says so.
    ///
    /// # Errors
    /// A failure that is none of the form.
    pub(crate) fn note_error(&mut self, error: service::Error) -> Result<StatusCode, Failure> {
        match error {
            service::Error::Invalid(violations) | service::Error::NotOffered(violations) => {
                self.problems = problems_of_offer(&violations, std::mem::take(&mut self.problems));
            }
            service::Error::KeyReused => {
                // The visitor went back to a form that had been sent, and changed it.
                self.problems.push(whole_form_problem(
                    "This form was sent before and has become a reservation or offers, which are in your lists. To make \
                     another one of what the form says now, send it again.",
                ));
                self.once = None;
            }
            service::Error::Refused(refusal) => {
                self.refusal = Some(refusal);
                return Ok(StatusCode::CONFLICT);
            }
            // What it is about is over.
            service::Error::Conflict(why) | service::Error::Gone(why) => {
                let why = format!("{}.", text::capitalised(&why));
                self.problems.push(whole_form_problem(&why));
                return Ok(StatusCode::CONFLICT);
            }
            other => return Err(other.into()),
        }
        Ok(StatusCode::UNPROCESSABLE_ENTITY)
    }

    /// Notes why nothing was offered for its request; the status of the page that says so. The same form again is another request.
    pub(crate) fn note_refusal(&mut self, refusal: &Value) -> StatusCode {
        match StoredRefusal::read(refusal) {
            StoredRefusal::Refused(refusal) => self.refusal = Some(refusal),
            StoredRefusal::Wrong(violations) => {
                self.problems = problems_of_offer(&violations, Vec::new());
                if self.problems.is_empty() {
                    self.problems
                        .push(whole_form_problem(refusal_reason_in_words("")));
                }
            }
        }
        self.once = None;
        StatusCode::CONFLICT
    }
}

/// The request of a form that was sent; none where something is wrong with it, which is all noted in the form.
pub(crate) async fn read_submitted_form(
    api: &Api,
    visitor: &Visitor,
    values: Values,
) -> Result<(SubmittedForm, Option<SentRequest>), Failure> {
    let read = read_submitted_values(api, &values);
    // Without one, a form could be taken twice: it is shown again with one.
    let once: Option<Uuid> = values.get(field_names::ONCE).parse().ok();
    let mut form = SubmittedForm {
        values,
        once,
        problems: read.problems,
        ..SubmittedForm::default()
    };
    let Some(once) = once else {
        form.problems
            .push(whole_form_problem("The form was not complete. Send it again."));
        return Ok((form, None));
    };
    if form.problems.is_empty() {
        let sent = SentRequest {
            wish: read.wish,
            choices: read.choices,
            once,
        };
        return Ok((form, Some(sent)));
    }
    // Mistakes of the rest are told at the same time.
    if let Err(error) = service::check_form(&api.service, &visitor.caller.party, read.wish).await {
        form.note_error(error)?;
    }
    Ok((form, None))
}

/// The name of a form; another one where it brings none back, so that it counts by itself.
pub(crate) fn once_of_submitted_form(values: &Values) -> Uuid {
    values
        .get(field_names::ONCE)
        .parse()
        .unwrap_or_else(|_| Uuid::now_v7())
}

/// A form that was read, against what is offered now.
pub(crate) fn read_submitted_values(api: &Api, values: &Values) -> ReadForm {
    let currency = api.service.currency();
    let currency = currency.as_ref().map(domain::agreement::Currency::code);
    let mut read = read_form(values, &api.service.catalogue(), currency);
    read.problems
        .extend(size_problem_of_submitted_form(api, &read.wish));
    read
}

/// That no resource has so many nodes, where that is so.
fn size_problem_of_submitted_form(api: &Api, wish: &Request) -> Option<Problem> {
    let resources = service::list_offered_resources(&api.service).resources;
    let largest = resources.iter().map(|resource| resource.nodes).max()?;
    let (_, wanted) = wish.nodes?;
    (wanted > largest).then(|| Problem {
        place: FormPart::Nodes,
        message: format!(
            "One reservation uses one resource; the largest has {}.",
            text::nodes(largest)
        ),
    })
}
