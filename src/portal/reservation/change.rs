//! A change of a reservation: the form that asks for it, which opens a negotiation about the reservation. The offers that come of it are
//! on the page of the negotiation, and nothing changes before one of them is taken.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use serde_json::{Value, json};
use uuid::Uuid;
use wsag::Violations;

use crate::http::{Api, require_writer, scope_of_caller, use_cases_of};
use crate::negotiation::{self, AgreementView, FlatRequest, RefusalView, RequestKey, Shown};
use crate::portal::error::Failure;
use crate::portal::path::Path;
use crate::portal::request;
use crate::portal::request::field;
use crate::portal::request::fields::{Field, Group, Input};
use crate::portal::request::form::{self, Place, Problem, read_form};
use crate::portal::request::values_of_request::{with_deadline, with_duration, with_nodes, with_start};
use crate::portal::session::{self, Visitor};
use crate::portal::text::{self, second_of};
use crate::portal::values::Values;
use crate::portal::zone::Zone;
use crate::portal::{Answer, Frame, render_page};

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
    problems: Vec<String>,
    refusal: Option<Refusal>,
}

/// Why nothing can be offered, and what could be.
struct Refusal {
    reason: &'static str,
    constraint: String,
    changes: Vec<String>,
}

/// A form as it was sent, and its result.
#[derive(Default)]
struct Submitted {
    values: Values,
    problems: Vec<Problem>,
    refusal: Option<Refusal>,
    once: Option<Uuid>,
}

/// GET /portal/agreements/{id}/change.
pub(in crate::portal) async fn show_change_page(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Answer {
    let visitor = session::signed_in(&api, &headers, Some(id)).await?;
    require_writer(&visitor.caller)?;
    let Shown { view, request, .. } = own_agreement(&api, &visitor, id).await?;
    let submitted = Submitted {
        values: present_values(&view, request.end.is_some()),
        ..Submitted::default()
    };
    render_change_page(&visitor, &view, StatusCode::OK, submitted)
}

/// POST /portal/agreements/{id}/change: asks for offers.
pub(in crate::portal) async fn ask_for_change(
    State(api): State<Api>,
    Path(id): Path<Uuid>,
    sent: Request,
) -> Answer {
    let (visitor, values) = session::read_session_form(&api, sent).await?;
    let view = own_agreement(&api, &visitor, id).await?.view;
    let once: Option<Uuid> = values.get(field::ONCE).parse().ok();
    let mut submitted = Submitted {
        values,
        once,
        ..Submitted::default()
    };
    let mut values = with_deadline_along(submitted.values.clone(), &view).with(field::APPLICATION, "");
    if !text::can_change_wholly(&view) {
        // It is not in the form any more.
        values = with_start(values, second_of(&view.ready));
    }
    let mut read = read_form(&values, &api.negotiation.catalogue(), None);
    read.problems.extend(request::problem_of_size(&api, &read.wish));
    let asked = if read.problems.is_empty() {
        Ok(request_for_change(&read.wish, &view))
    } else {
        Err(read.problems)
    };
    let (body, once) = match (asked, once) {
        (Ok(Some(body)), Some(once)) => (body, once),
        (Err(problems), _) => {
            submitted.problems = problems;
            return render_change_page(&visitor, &view, StatusCode::UNPROCESSABLE_ENTITY, submitted);
        }
        _ => {
            submitted.problems = whole("Nothing is different. Change the nodes, the duration or a time.");
            return render_change_page(&visitor, &view, StatusCode::UNPROCESSABLE_ENTITY, submitted);
        }
    };
    let party = &visitor.caller.party;
    let body = body.to_string().into_bytes();
    let key = RequestKey::new(party, &once.to_string(), "a change on the portal", &body);
    let use_cases = use_cases_of(&api.negotiation, &visitor.caller);
    let opened = use_cases
        .initiate(party, negotiation::Input::Json(body), Some(key))
        .await;
    let status = match opened {
        Ok(opened) => match refusal_of_all(&opened.json) {
            None => return Ok(Redirect::to(&format!("/portal{}", opened.path())).into_response()),
            Some(refusal) => {
                submitted.refusal = Some(refusal);
                StatusCode::CONFLICT
            }
        },
        Err(negotiation::Error::Invalid(violations)) => {
            submitted.problems = problems_of_change(&violations);
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Err(negotiation::Error::Refused(refusal)) => {
            submitted.refusal = Some(Refusal::of(&refusal));
            StatusCode::CONFLICT
        }
        Err(negotiation::Error::KeyReused) => {
            submitted.problems = whole("This form was sent before. To ask for this, send it again.");
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Err(other) => return Err(other.into()),
    };
    // The same form again is another request.
    submitted.once = None;
    render_change_page(&visitor, &view, status, submitted)
}

/// The visitor's own agreement: only its party may change one.
async fn own_agreement(api: &Api, visitor: &Visitor, id: Uuid) -> Result<Shown, Failure> {
    let shown = api
        .negotiation
        .show_agreement(scope_of_caller(&visitor.caller), id)
        .await?;
    if shown.view.party != visitor.caller.party {
        return Err(Failure::NotFound);
    }
    if shown.view.state != "Observed" {
        let words = format!(
            "the reservation is over or not decided: {}",
            text::standing(&shown.view).words
        );
        return Err(negotiation::Error::Conflict(words).into());
    }
    Ok(shown)
}

fn whole(message: &str) -> Vec<Problem> {
    vec![Problem {
        place: Place::Whole,
        message: message.to_owned(),
    }]
}

/// The form as the agreement is now. A deadline that was not given is empty.
fn present_values(view: &AgreementView, has_deadline: bool) -> Values {
    let values = with_nodes(Values::default(), view.nodes, view.nodes);
    let values = with_duration(values, view.duration_seconds);
    with_deadline(
        with_start(values, second_of(&view.ready)),
        second_of(&view.deadline).filter(|_| has_deadline),
    )
}

/// A form whose deadline moves along with the end of the work: where it was left as it is, and the window was exactly as long as the
/// work.
fn with_deadline_along(values: Values, view: &AgreementView) -> Values {
    let entered = |fields| form::read_time(&values, fields).ok().flatten();
    let moved = || {
        let (ready, deadline) = (second_of(&view.ready)?, second_of(&view.deadline)?);
        let is_rigid = deadline - ready == view.duration_seconds;
        let duration = form::read_duration(&values)?;
        let may_move = text::can_change_wholly(view) || duration > view.duration_seconds;
        let end = entered(field::START).unwrap_or(ready) + duration;
        (is_rigid && may_move && entered(field::DEADLINE) == Some(deadline)).then_some(end)
    };
    match moved() {
        Some(end) => with_deadline(values, Some(end)),
        None => values,
    }
}

/// The flat request for the differences; none where there are none.
fn request_for_change(wish: &FlatRequest, view: &AgreementView) -> Option<Value> {
    let is_whole = text::can_change_wholly(view);
    let mut request = json!({ "agreement": view.id });
    let mut window = json!({});
    if let Some((nodes, _)) = wish.nodes.filter(|(nodes, _)| is_whole && *nodes != view.nodes) {
        request["nodes"] = json!(nodes);
    }
    let duration = wish
        .duration
        .filter(|seconds| i64::from(*seconds) != view.duration_seconds);
    if let Some(seconds) = duration {
        request["durationSeconds"] = json!(seconds);
    }
    if let Some(start) = wish
        .start
        .filter(|at| is_whole && Some(at.floor()) != second_of(&view.ready))
    {
        window["start"] = json!(start.to_string());
    }
    if let Some(end) = wish
        .end
        .filter(|at| Some(at.floor()) != second_of(&view.deadline))
    {
        window["end"] = json!(end.to_string());
    }
    let has_window = window.as_object().is_some_and(|members| !members.is_empty());
    if has_window {
        request["window"] = window;
    }
    let is_other = request.as_object().is_some_and(|members| members.len() > 1);
    is_other.then_some(request)
}

/// Why a negotiation has come to nothing, where there is no offer in it.
fn refusal_of_all(opened: &str) -> Option<Refusal> {
    let opened: Value = serde_json::from_str(opened).ok()?;
    let has_offers = opened["offers"]
        .as_array()
        .is_some_and(|offers| !offers.is_empty());
    if has_offers {
        return None;
    }
    let refusal = serde_json::from_value::<RefusalView>(opened["refusal"].clone()).ok();
    Some(refusal.as_ref().map_or_else(
        || Refusal {
            reason: text::reason(""),
            constraint: String::new(),
            changes: Vec::new(),
        },
        Refusal::of,
    ))
}

impl Refusal {
    fn of(refusal: &RefusalView) -> Self {
        Self {
            reason: text::reason(refusal.reason.word()),
            constraint: refusal.binding_constraint.clone(),
            changes: refusal.relaxations.iter().map(text::change).collect(),
        }
    }
}

/// The problems of the request, at the fields of the form.
fn problems_of_change(violations: &Violations) -> Vec<Problem> {
    let problem = |of: &wsag::Violation| {
        let place = match of.path.as_str() {
            "/nodes" => Place::Nodes,
            "/durationSeconds" => Place::Duration,
            "/window/start" => Place::Start,
            "/window/end" => Place::Deadline,
            _ => Place::Whole,
        };
        Problem {
            place,
            message: format!("{}.", text::capitalised(&of.message)),
        }
    };
    violations.0.iter().map(problem).collect()
}

fn render_change_page(
    visitor: &Visitor,
    view: &AgreementView,
    status: StatusCode,
    submitted: Submitted,
) -> Answer {
    let Submitted {
        values,
        problems,
        refusal,
        once,
    } = submitted;
    let zone = Zone::present();
    let values = form::form_in_zone(values, &zone);
    let hint = format!("In {}. Empty means: as it is now.", zone.name());
    let errors = |place: Place| -> Vec<String> {
        let own = problems.iter().filter(|problem| problem.place == place);
        own.map(|problem| problem.message.clone()).collect()
    };
    let input = |name: &str, label: &str, input: Input, errors: Vec<String>| Field {
        id: name.to_owned(),
        name: name.to_owned(),
        label: label.to_owned(),
        hint: String::new(),
        value: values.get(name).to_owned(),
        errors,
        input,
    };
    let part = |name: &str, label: &str, kind: Input| input(name, label, kind, Vec::new());
    let group = |id: &str, legend: &str, hint: &str, place: Place, fields: Vec<Field>| Group {
        id: id.to_owned(),
        legend: legend.to_owned(),
        hint: hint.to_owned(),
        errors: errors(place),
        fields,
    };
    let instant = |(date, time): (&str, &str), legend: &str, place: Place| {
        let fields = vec![part(date, "Date", Input::Date), part(time, "Time", Input::Time)];
        group(&format!("{date}-group"), legend, &hint, place, fields)
    };
    let is_whole = text::can_change_wholly(view);
    let name = text::name(view);
    let went_wrong = !problems.is_empty() || refusal.is_some();
    let title = format!("{}Change {name}", if went_wrong { "Error: " } else { "" });
    let shown = ChangePage {
        frame: visitor.frame(title),
        id: view.id,
        name,
        once: once.unwrap_or_else(Uuid::now_v7),
        nodes: is_whole.then(|| input(field::NODES, "Nodes", Input::Whole, errors(Place::Nodes))),
        duration: group(
            "duration-group",
            "Duration",
            "From the start of its time. Longer extends it, shorter ends it earlier.",
            Place::Duration,
            vec![
                part(field::HOURS, "Hours", Input::Whole),
                part(field::MINUTES, "Minutes", Input::Whole),
                part(field::SECONDS, "Seconds", Input::Whole),
            ],
        ),
        start: is_whole.then(|| instant(field::START, "Earliest start", Place::Start)),
        deadline: instant(field::DEADLINE, "Deadline", Place::Deadline),
        problems: errors(Place::Whole),
        refusal,
    };
    render_page(status, &shown)
}
