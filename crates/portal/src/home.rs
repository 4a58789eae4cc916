//! The first page: the form for an offer.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use uuid::Uuid;
use wsag::scheduling::Preference;

use super::negotiation::answers::release_earlier;
use super::request::field_names;
use super::request::fields::Input;
use super::request::filled_form::{FilledForm, empty_form_values};
use super::request::offer_form::{OfferForm, make_offer_form};
use super::request::present_second;
use super::request::refusal::Refusal;
use super::request::submitted_form::{SentRequest, SubmittedForm, read_submitted_form};
use super::session::{self, Visitor};
use super::sign_in::SignIn;
use super::text;
use super::values::Values;
use super::zone::{Zone, date_and_time_in_zone};
use super::{Answer, Frame, redirect_to, render_page};
use api::{Api, use_cases_of_caller};

#[derive(Template)]
#[template(path = "portal/home.html")]
struct HomePage {
    frame: Frame,
    form: OfferForm,
    /// Whether the address has filled in the form.
    is_filled: bool,
    /// The name of a file that was uploaded just now.
    uploaded: Option<String>,
    refusal: Option<Refusal>,
    /// The negotiation whose offers are released when this form asks for others.
    instead: Option<Uuid>,
    sliders: [HomeSlider; 3],
    /// The hour that it is in the visitor's zone, from which a slider of a time counts.
    hour: String,
    /// The time that it is, as a dateTime.
    now: String,
}

/// A slider, which is one value with fields of the form.
struct HomeSlider {
    /// The names of the fields.
    fields: String,
    label: &'static str,
    /// A number, or minutes.
    least: u32,
    most: u32,
    step: u32,
}

/// Minutes of an hour.
const HOUR: u32 = 60;

impl HomeSlider {
    fn of(fields: &[&str], label: &'static str, (least, most, step): (u32, u32, u32)) -> Self {
        Self {
            fields: fields.join(" "),
            label,
            least,
            most,
            step,
        }
    }

    /// For the size and the window of a request, with at most so many nodes.
    fn all(nodes: u32) -> [Self; 3] {
        let duration = [field_names::HOURS, field_names::MINUTES, field_names::SECONDS];
        let deadline = [field_names::DEADLINE.0, field_names::DEADLINE.1];
        [
            Self::of(&[field_names::NODES], "Nodes", (1, nodes, 1)),
            Self::of(&duration, "Duration", (5, 24 * HOUR, 5)),
            Self::of(&deadline, "Latest end", (HOUR, 7 * 24 * HOUR, HOUR)),
        ]
    }
}

/// GET /portal: the sign in form or, signed in, the offer form. A query fills it in.
pub(super) async fn show_home_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let Some(visitor) = session::visitor_of_request(&api, &headers).await? else {
        let filled = uri.query().map(|query| format!("/portal?{query}"));
        return Ok(SignIn::offered(filled));
    };
    let query = Values::read(uri.query().unwrap_or_default().as_bytes());
    let uploaded = Some(query.get(field_names::UPLOADED).to_owned()).filter(|name| !name.is_empty());
    let is_filled = query.has(field_names::APPLICATION);
    let values = if is_filled { query } else { empty_form_values(&api) };
    let view = SubmittedForm {
        values,
        is_filled,
        uploaded,
        ..SubmittedForm::default()
    };
    render_home_page(&api, &visitor, StatusCode::OK, view).await
}

/// POST /portal/agreements: the form becomes an offer and, if it can be, an agreement. Where something is charged, the earliest offer
/// is shown instead: nothing is bought before its price, its terms and its fee were seen.
pub(super) async fn submit_home_form(State(api): State<Api>, request: Request) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let (mut form, sent) = read_submitted_form(&api, &visitor, values).await?;
    let Some(mut sent) = sent else {
        return render_home_page(&api, &visitor, StatusCode::UNPROCESSABLE_ENTITY, form).await;
    };
    if api.service.currency().is_some() {
        let start = Some(1.0);
        sent.wish.scheduling.preference = Some(Preference {
            start,
            ..Preference::default()
        });
        sent.choices = 1;
        return Box::pin(open_negotiation_from_home(&api, &visitor, form, sent)).await;
    }
    release_earlier(&api, &visitor, &form.values).await?;
    let use_cases = use_cases_of_caller(&api.service, &visitor.caller);
    let created = service::create_from_form(&use_cases, &visitor.caller.party, sent.wish, sent.once);
    match Box::pin(created).await {
        Ok(accepted) => Ok(redirect_to(&format!(
            "/portal/agreements/{}",
            accepted.agreement.id
        ))),
        Err(error) => {
            let status = form.note_error(error)?;
            render_home_page(&api, &visitor, status, form).await
        }
    }
}

/// POST /portal/offers: the form opens a negotiation, whose page shows the held offers.
pub(super) async fn ask_for_offers_from_home(State(api): State<Api>, request: Request) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let (form, sent) = read_submitted_form(&api, &visitor, values).await?;
    match sent {
        Some(sent) => Box::pin(open_negotiation_from_home(&api, &visitor, form, sent)).await,
        None => render_home_page(&api, &visitor, StatusCode::UNPROCESSABLE_ENTITY, form).await,
    }
}

async fn open_negotiation_from_home(
    api: &Api,
    visitor: &Visitor,
    mut form: SubmittedForm,
    SentRequest { wish, once, choices }: SentRequest,
) -> Answer {
    release_earlier(api, visitor, &form.values).await?;
    let use_cases = use_cases_of_caller(&api.service, &visitor.caller);
    match Box::pin(service::offer_from_form(
        &use_cases,
        &visitor.caller.party,
        wish,
        choices,
        once,
    ))
    .await
    {
        Ok(negotiation) => Ok(redirect_to(&format!("/portal/negotiations/{negotiation}"))),
        Err(error) => {
            let status = form.note_error(error)?;
            render_home_page(api, visitor, status, form).await
        }
    }
}

async fn render_home_page(api: &Api, visitor: &Visitor, status: StatusCode, asked: SubmittedForm) -> Answer {
    let title = if asked.has_gone_wrong() {
        "Error: Reserve nodes"
    } else {
        "Reserve nodes"
    };
    let now = present_second(api);
    let filled = FilledForm::new_reservation(asked.values.clone());
    let resources = service::list_offered_resources(&api.service).resources;
    let (date, time) = date_and_time_in_zone(now - now.rem_euclid(3_600), &Zone::present());
    let home = HomePage {
        frame: visitor.frame(title),
        form: make_offer_form(api, visitor, &asked).await,
        is_filled: asked.is_filled,
        uploaded: asked.uploaded.clone(),
        refusal: asked
            .refusal
            .as_ref()
            .map(|refusal| Refusal::of(refusal, &filled, now)),
        instead: asked.values.get(field_names::INSTEAD).parse().ok(),
        sliders: HomeSlider::all(resources.iter().map(|resource| resource.nodes).max().unwrap_or(1)),
        hour: format!("{date}T{time}Z"),
        now: text::date_time(now),
    };
    render_page(status, &home)
}
