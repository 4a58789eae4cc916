//! A change of a reservation: the form that asks for it, which opens a negotiation about the reservation. The offers that come of it are
//! on the page of the negotiation, and nothing changes before one of them is taken.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use uuid::Uuid;
use wsag::scheduling::Scheduling;
use wsag::time::DateTime;

use crate::failure::Failure;
use crate::negotiation::answers::release_earlier;
use crate::path::PagePath;
use crate::request::fields::{EnteredFields, Field, Group, Input};
use crate::request::filled_form::{
    FilledForm, filled_with_deadline, filled_with_start, form_filled_with_duration, form_filled_with_nodes,
    form_filled_with_said,
};
use crate::request::form_reader::{self, FormPart};
use crate::request::problems::whole_form_problem;
use crate::request::refusal::Refusal;
use crate::request::submitted_form::{SubmittedForm, read_submitted_values};
use crate::request::{field_names, present_second};
use crate::reservation::standing::{Standing, can_change_wholly};
use crate::session::{self, Visitor};
use crate::text::{self, second_of};
use crate::values::Values;
use crate::zone::Zone;
use crate::{Answer, Frame, redirect_to, render_page};
use api::{Api, require_writer, scope_of_caller, use_cases_of_caller};
use service::{AgreementDetails, AgreementView};

#[derive(Template)]
#[template(path = "portal/change.html")]
struct ChangePage {
    frame: Frame,
    id: Uuid,
    name: String,
    once: Uuid,
    /// How many nodes; none where its time has begun.
    nodes: Option<Field>,
    duration: Group,
    start: Option<Group>,
    deadline: Group,
    /// The most that it may cost, where something is charged.
    budget: Option<Field>,
    problems: Vec<String>,
    refusal: Option<Refusal>,
    /// The negotiation whose offers are released when this form asks for others.
    instead: Option<Uuid>,
}

/// GET /portal/agreements/{id}/change: the form as the agreement is now, with what a query says in place of it.
pub(crate) async fn show_change_page(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath(id): PagePath<Uuid>,
    uri: Uri,
) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, Some(id)).await?;
    require_writer(&visitor.caller)?;
    let AgreementDetails { view, request, .. } = own_agreement_to_change(&api, &visitor, id).await?;
    let query = Values::read(uri.query().unwrap_or_default().as_bytes());
    let form = SubmittedForm {
        values: form_filled_with_said(present_values_to_change(&view, request.end.is_some()), &query),
        ..SubmittedForm::default()
    };
    render_change_page(&api, &visitor, &view, (StatusCode::OK, form))
}

/// POST /portal/agreements/{id}/change: asks for offers.
pub(crate) async fn ask_for_change(
    State(api): State<Api>,
    PagePath(id): PagePath<Uuid>,
    request: Request,
) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let view = own_agreement_to_change(&api, &visitor, id).await?.view;
    let once: Option<Uuid> = values.get(field_names::ONCE).parse().ok();
    let mut wanted = change_with_deadline_along(values.clone(), &view).with(field_names::APPLICATION, "");
    if !can_change_wholly(&view) {
        // It is not in the form any more.
        wanted = filled_with_start(wanted, second_of(&view.ready));
    }
    let read = read_submitted_values(&api, &wanted);
    let mut form = SubmittedForm {
        values,
        once,
        problems: read.problems,
        ..SubmittedForm::default()
    };
    let wrong = StatusCode::UNPROCESSABLE_ENTITY;
    let asked = request_for_change(&read.wish, &view);
    let (Some(asked), Some(once)) = (asked.filter(|_| form.problems.is_empty()), once) else {
        if form.problems.is_empty() {
            let nothing = "Nothing is different. Change the nodes, the duration or a time.";
            form.problems.push(whole_form_problem(nothing));
        }
        return render_change_page(&api, &visitor, &view, (wrong, form));
    };
    release_earlier(&api, &visitor, &form.values).await?;
    let use_cases = use_cases_of_caller(&api.service, &visitor.caller);
    let told = service::change_from_form(&use_cases, &visitor.caller.party, id, &asked, once);
    let status = match told.await {
        Ok(Ok(negotiation)) => return Ok(redirect_to(&format!("/portal/negotiations/{negotiation}"))),
        Ok(Err(refusal)) => form.note_refusal(&refusal),
        Err(error) => form.note_error(error)?,
    };
    // The same form again is another request.
    form.once = None;
    render_change_page(&api, &visitor, &view, (status, form))
}

/// The visitor's own agreement: only its party may change one.
async fn own_agreement_to_change(
    api: &Api,
    visitor: &Visitor,
    id: Uuid,
) -> Result<AgreementDetails, Failure> {
    let shown = service::show_agreement(&api.service, scope_of_caller(&visitor.caller), id).await?;
    if shown.view.party != visitor.caller.party {
        return Err(Failure::NotFound);
    }
    if shown.view.state != "Observed" {
        let words = format!(
            "the reservation is over or not decided: {}",
            Standing::of(&shown.view).words
        );
        return Err(service::Error::Conflict(words).into());
    }
    Ok(shown)
}

/// The form as the agreement is now. A deadline that was not given is empty.
fn present_values_to_change(view: &AgreementView, has_deadline: bool) -> Values {
    let values = form_filled_with_nodes(Values::default(), view.nodes, view.nodes);
    let values = form_filled_with_duration(values, view.duration_seconds);
    filled_with_deadline(
        filled_with_start(values, second_of(&view.ready)),
        second_of(&view.deadline).filter(|_| has_deadline),
    )
}

/// A form whose deadline moves along with the end of the work: where it was left as it is, and the window was exactly as long as the
/// work.
fn change_with_deadline_along(values: Values, view: &AgreementView) -> Values {
    let entered = |fields| form_reader::read_form_time(&values, fields).ok().flatten();
    let moved = || {
        let (ready, deadline) = (second_of(&view.ready)?, second_of(&view.deadline)?);
        let is_rigid = deadline - ready == view.duration_seconds;
        let duration = form_reader::read_form_duration(&values)?;
        let may_move = can_change_wholly(view) || duration > view.duration_seconds;
        let end = entered(field_names::START).unwrap_or(ready) + duration;
        (is_rigid && may_move && entered(field_names::DEADLINE) == Some(deadline)).then_some(end)
    };
    match moved() {
        Some(end) => filled_with_deadline(values, Some(end)),
        None => values,
    }
}

/// The request for the differences; none where there are none.
fn request_for_change(wish: &service::Request, view: &AgreementView) -> Option<service::Request> {
    let is_whole = can_change_wholly(view);
    let is_other = |at: DateTime, present: &str| Some(at.floor()) != second_of(present);
    let request = service::Request {
        nodes: wish
            .nodes
            .filter(|nodes| is_whole && *nodes != (view.nodes, view.nodes)),
        duration: wish
            .duration
            .filter(|seconds| i64::from(*seconds) != view.duration_seconds),
        start: wish.start.filter(|at| is_whole && is_other(*at, &view.ready)),
        end: wish.end.filter(|at| is_other(*at, &view.deadline)),
        scheduling: Scheduling {
            budget: wish.scheduling.budget.clone(),
            ..Scheduling::default()
        },
        ..service::Request::default()
    };
    (request != service::Request::default()).then_some(request)
}

fn render_change_page(
    api: &Api,
    visitor: &Visitor,
    view: &AgreementView,
    (status, form): (StatusCode, SubmittedForm),
) -> Answer {
    let went_wrong = form.has_gone_wrong();
    let SubmittedForm {
        values,
        problems,
        refusal,
        once,
        ..
    } = form;
    let refusal = refusal.map(|refusal| {
        let here = FilledForm::about(Some(view.id), values.clone());
        Refusal::of(&refusal, &here, present_second(api))
    });
    let zone = Zone::present();
    let values = form_reader::form_read_in_zone(values, &zone);
    let hint = format!("In {}. Empty means: as it is now.", zone.name());
    let entered = EnteredFields {
        values: &values,
        problems: &problems,
    };
    let is_whole = can_change_wholly(view);
    let whole = [FormPart::Nodes, FormPart::Start];
    let fields = [FormPart::Duration, FormPart::Deadline, FormPart::Budget];
    let has_field = |place: FormPart| fields.contains(&place) || is_whole && whole.contains(&place);
    let elsewhere = problems.iter().filter(|problem| !has_field(problem.place));
    let elsewhere = elsewhere.map(|problem| problem.message.clone()).collect();
    let name = text::name(view);
    let title = format!("{}Change {name}", if went_wrong { "Error: " } else { "" });
    let shown = ChangePage {
        frame: visitor.frame(title),
        id: view.id,
        name,
        once: once.unwrap_or_else(Uuid::now_v7),
        nodes: is_whole
            .then(|| entered.field(field_names::NODES, "Nodes", "", Input::Whole, FormPart::Nodes)),
        duration: entered.duration("From the start of its time. Longer extends it, shorter ends it earlier."),
        start: is_whole
            .then(|| entered.instant(field_names::START, "Earliest start", &hint, FormPart::Start)),
        deadline: entered.instant(field_names::DEADLINE, "Deadline", &hint, FormPart::Deadline),
        budget: api.service.currency().map(|currency| {
            let label = format!("Budget in {currency} (optional)");
            let hint = "The most that all of it may cost. Empty means: as it was agreed.";
            entered.field(
                field_names::BUDGET,
                &label,
                hint,
                Input::Decimal,
                FormPart::Budget,
            )
        }),
        problems: elsewhere,
        refusal,
        instead: values.get(field_names::INSTEAD).parse().ok(),
    };
    render_page(status, &shown)
}
