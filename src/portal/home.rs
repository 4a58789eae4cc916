//! The first page: the form for an offer.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect};
use uuid::Uuid;

use super::fields::{Input, OfferForm};
use super::form::{self, Place, Problem, field};
use super::session::{self, Visitor};
use super::sign_in::SignIn;
use super::text;
use super::values::Values;
use super::{Answer, Frame, render_page};
use crate::agreement::Currency;
use crate::clock::second_of;
use crate::http::{Api, use_cases_of};
use crate::negotiation::{self, RefusalView};

/// A slot that begins within this many seconds may have begun before it is requested. So it is requested without an earliest
/// start, and with a deadline that leaves as much time again.
const SLOT_IS_NEAR: i64 = 600;

#[derive(Template)]
#[template(path = "portal/home.html")]
struct Home {
    frame: Frame,
    form: OfferForm,
    /// Whether the address has filled in the form.
    is_filled: bool,
    refusal: Option<Refusal>,
    /// The time that it is, as a dateTime.
    now: String,
}

/// Why the offer has no place, and where it would have one.
struct Refusal {
    reason: &'static str,
    constraint: String,
    /// The smallest changes that would do, each by itself.
    changes: Vec<String>,
    slots: Vec<Slot>,
}

/// A slot outside the window that was asked for, and the form that asks for it.
struct Slot {
    direction: &'static str,
    start: String,
    end: String,
    fields: Vec<(String, String)>,
}

/// GET /portal: the sign in form or, signed in, the offer form. A query fills in the form.
pub(super) async fn show_home_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let Some(visitor) = session::visitor_of_request(&api, &headers).await? else {
        return Ok(SignIn::offered());
    };
    let query = Values::read(uri.query().unwrap_or_default().as_bytes());
    let is_filled = query.has(field::APPLICATION);
    let values = if is_filled { query } else { empty_form_values(&api) };
    let view = SubmittedForm {
        values,
        is_filled,
        ..SubmittedForm::default()
    };
    render_home_page(&api, &visitor, StatusCode::OK, view).await
}

/// POST /portal/agreements: the form becomes an offer and, if it can be, an agreement.
pub(super) async fn submit_offer_form(State(api): State<Api>, request: Request) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    // Without one, a form could be taken twice: it is shown again with one.
    let once: Option<Uuid> = values.get(field::ONCE).parse().ok();
    let negotiation = &use_cases_of(&api.negotiation, &visitor.caller);
    let currency = negotiation.currency();
    let (wish, form) = match (
        form::read_form(
            &values,
            &negotiation.catalogue(),
            currency.as_ref().map(Currency::code),
        ),
        once,
    ) {
        (Ok(wish), Some(once)) => (wish, once),
        (read, _) => {
            let problems = read
                .err()
                .unwrap_or_else(|| whole_form_problem("The form was not complete. Send it again."));
            let view = SubmittedForm {
                values,
                problems,
                once,
                ..SubmittedForm::default()
            };
            return render_home_page(&api, &visitor, StatusCode::UNPROCESSABLE_ENTITY, view).await;
        }
    };
    let party = &visitor.caller.party;
    let error = match negotiation.create_from_form(party, wish, form).await {
        Ok(accepted) => {
            let to = format!("/portal/agreements/{}", accepted.agreement.id);
            return Ok(Redirect::to(&to).into_response());
        }
        Err(error) => error,
    };
    let mut view = SubmittedForm {
        values,
        once,
        ..SubmittedForm::default()
    };
    let status = match error {
        negotiation::Error::Invalid(violations) => {
            view.problems = super::offer::problems_of_offer(&violations);
            StatusCode::UNPROCESSABLE_ENTITY
        }
        negotiation::Error::NotOffered(why) => {
            view.problems = whole_form_problem(&why.to_string());
            StatusCode::UNPROCESSABLE_ENTITY
        }
        negotiation::Error::KeyReused => {
            // The visitor went back to a form that had been sent, and changed it.
            view.problems = whole_form_problem(
                "This form was sent before and has become a reservation, which is in your list. To make another one \
                 of what the form says now, send it again.",
            );
            view.once = None;
            StatusCode::UNPROCESSABLE_ENTITY
        }
        negotiation::Error::Refused(refusal) => {
            view.refusal = Some(refusal);
            StatusCode::CONFLICT
        }
        other => return Err(other.into()),
    };
    render_home_page(&api, &visitor, status, view).await
}

/// A form as it was sent, and its result.
#[derive(Default)]
struct SubmittedForm {
    values: Values,
    problems: Vec<Problem>,
    refusal: Option<RefusalView>,
    once: Option<Uuid>,
    /// Whether the address has filled it in.
    is_filled: bool,
}

fn whole_form_problem(message: &str) -> Vec<Problem> {
    vec![Problem {
        place: Place::Whole,
        message: message.to_owned(),
    }]
}

/// The values of an empty form: the first application, and the template's size and duration.
fn empty_form_values(api: &Api) -> Values {
    let (nodes, duration) = api.negotiation.proposed_size();
    let catalogue = api.negotiation.catalogue();
    let first = catalogue.applications().first();
    let mut values = Values::default().with(
        field::APPLICATION,
        first.map_or_else(String::new, form::application_value),
    );
    if let Some(nodes) = nodes {
        values = values.with(field::NODES, nodes.to_string());
    }
    if let Some(duration) = duration {
        let part = |amount: i32| {
            if amount == 0 {
                String::new()
            } else {
                amount.to_string()
            }
        };
        values = values
            .with(field::HOURS, part(duration / 3_600))
            .with(field::MINUTES, part(duration / 60 % 60))
            .with(field::SECONDS, part(duration % 60));
    }
    values
}

async fn render_home_page(api: &Api, visitor: &Visitor, status: StatusCode, asked: SubmittedForm) -> Answer {
    let now = second_of(api.negotiation.clock().micros()).seconds();
    let went_wrong = !asked.problems.is_empty() || asked.refusal.is_some();
    let title = if went_wrong {
        "Error: Reserve nodes"
    } else {
        "Reserve nodes"
    };
    let once = asked.once.unwrap_or_else(Uuid::now_v7).to_string();
    let files = api.negotiation.input_files(&visitor.caller.party).await;
    let currency = api.negotiation.currency();
    let home = Home {
        frame: visitor.frame(title),
        form: OfferForm::new(
            &asked.values,
            &asked.problems,
            &api.negotiation.catalogue(),
            files,
            once,
            currency.as_ref().map(Currency::code),
        ),
        is_filled: asked.is_filled,
        refusal: asked
            .refusal
            .map(|refusal| view_refusal(&refusal, &asked.values, now)),
        now: text::date_time(now),
    };
    render_page(status, &home)
}

fn view_refusal(refusal: &RefusalView, values: &Values, now: i64) -> Refusal {
    let slots = refusal.alternatives.iter().map(|slot| {
        let (start, end) = (slot.start.seconds(), slot.end.seconds());
        let near = start - now <= SLOT_IS_NEAR;
        let filled = if near {
            form::form_with_window(values.clone(), None, end + SLOT_IS_NEAR)
        } else {
            form::form_with_window(values.clone(), Some(start), end)
        };
        // A value that belongs to one form alone stays with it.
        let fields = filled
            .iter()
            .filter(|(name, _)| ![field::CSRF, field::ONCE].contains(name))
            .filter(|(name, value)| !value.is_empty() || *name == field::APPLICATION);
        Slot {
            direction: if slot.direction == "earlier" {
                "Earlier"
            } else {
                "Later"
            },
            start: text::date_time(start),
            end: text::date_time(end),
            fields: fields
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    });
    Refusal {
        reason: text::reason(refusal.reason.word()),
        constraint: refusal.binding_constraint.clone(),
        changes: refusal.relaxations.iter().map(text::change).collect(),
        slots: slots.collect(),
    }
}
