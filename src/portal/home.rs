//! The first page: the form for an offer, and the agreements that offers have become.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect};
use uuid::Uuid;

use super::fields::{Input, OfferForm};
use super::form::field;
use super::refusal::Refusal;
use super::request::{self, SentRequest, SubmittedForm};
use super::session::{self, Visitor};
use super::sign_in::SignIn;
use super::text::{self, StateLabel};
use super::values::Values;
use super::{Answer, Frame, render_page};
use crate::access::Role;
use crate::http::{Api, scope_of_caller, use_cases_of};
use crate::negotiation::{AgreementFilter, AgreementView};

/// Agreements on a page.
const AGREEMENTS: u32 = 12;

#[derive(Template)]
#[template(path = "portal/home.html")]
struct Home {
    frame: Frame,
    form: OfferForm,
    /// Whether the address has filled in the form.
    is_filled: bool,
    /// The name of a file that was uploaded just now.
    uploaded: Option<String>,
    refusal: Option<Refusal>,
    /// The time that it is, as a dateTime.
    now: String,
    agreements: Vec<Row>,
    /// Where the list goes on.
    older: Option<Uuid>,
    /// Whether the list does not begin with the newest.
    is_older: bool,
    /// Whether the list is of every party's agreements.
    is_everybodys: bool,
}

/// An agreement in the list.
struct Row {
    id: Uuid,
    name: String,
    party: String,
    standing: StateLabel,
    start: String,
    end: String,
    nodes: String,
}

/// GET /portal: the sign in form or, signed in, the offer form and the agreements. A query fills in the form.
pub(super) async fn show_home_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let Some(visitor) = session::visitor_of_request(&api, &headers).await? else {
        return Ok(SignIn::offered());
    };
    let query = Values::read(uri.query().unwrap_or_default().as_bytes());
    let after = query.get("after").parse().ok();
    let uploaded = Some(query.get(field::UPLOADED).to_owned()).filter(|name| !name.is_empty());
    let is_filled = query.has(field::APPLICATION);
    let values = if is_filled {
        query
    } else {
        request::empty_form_values(&api)
    };
    let view = SubmittedForm {
        values,
        is_filled,
        uploaded,
        ..SubmittedForm::default()
    };
    render_home_page(&api, &visitor, StatusCode::OK, view, after).await
}

/// POST /portal/agreements: the form becomes an offer and, if it can be, an agreement.
pub(super) async fn submit_offer_form(State(api): State<Api>, request: Request) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let (mut form, sent) = request::read_request(&api, &visitor, values).await?;
    let Some(SentRequest { wish, once, .. }) = sent else {
        return render_home_page(&api, &visitor, StatusCode::UNPROCESSABLE_ENTITY, form, None).await;
    };
    let use_cases = use_cases_of(&api.negotiation, &visitor.caller);
    match use_cases
        .create_from_form(&visitor.caller.party, wish, once)
        .await
    {
        Ok(accepted) => {
            let to = format!("/portal/agreements/{}", accepted.agreement.id);
            Ok(Redirect::to(&to).into_response())
        }
        Err(error) => {
            let status = form.note_error(error)?;
            render_home_page(&api, &visitor, status, form, None).await
        }
    }
}

/// POST /portal/offers: the form opens a negotiation, whose page shows what is held.
pub(super) async fn ask_for_offers(State(api): State<Api>, request: Request) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let (mut form, sent) = request::read_request(&api, &visitor, values).await?;
    let Some(SentRequest { wish, once, choices }) = sent else {
        return render_home_page(&api, &visitor, StatusCode::UNPROCESSABLE_ENTITY, form, None).await;
    };
    let use_cases = use_cases_of(&api.negotiation, &visitor.caller);
    match use_cases
        .offer_from_form(&visitor.caller.party, wish, choices, once)
        .await
    {
        Ok(negotiation) => {
            let to = format!("/portal/negotiations/{negotiation}");
            Ok(Redirect::to(&to).into_response())
        }
        Err(error) => {
            let status = form.note_error(error)?;
            render_home_page(&api, &visitor, status, form, None).await
        }
    }
}

/// POST /portal/estimate: the address of the page that says what the form would cost, without what belongs to this form alone.
pub(super) async fn ask_for_estimate(State(api): State<Api>, request: Request) -> Answer {
    let (_, values) = session::read_session_form(&api, request).await?;
    Ok(Redirect::to(&format!("/portal/estimate?{}", values.query())).into_response())
}

async fn render_home_page(
    api: &Api,
    visitor: &Visitor,
    status: StatusCode,
    asked: SubmittedForm,
    after: Option<Uuid>,
) -> Answer {
    let filter = AgreementFilter {
        party: scope_of_caller(&visitor.caller).party().map(ToOwned::to_owned),
        ..AgreementFilter::default()
    };
    let listed = api
        .negotiation
        .list_agreements(filter, after, Some(AGREEMENTS))
        .await?
        .view;
    let title = if asked.has_gone_wrong() {
        "Error: Reserve nodes"
    } else {
        "Reserve nodes"
    };
    let now = request::present_second(api);
    let home = Home {
        frame: visitor.frame(title),
        form: request::make_form(api, visitor, &asked).await,
        is_filled: asked.is_filled,
        uploaded: asked.uploaded.clone(),
        refusal: asked
            .refusal
            .as_ref()
            .map(|refusal| Refusal::of(refusal, &asked.values, now)),
        now: text::date_time(now),
        agreements: listed.agreements.iter().map(agreement_row).collect(),
        older: listed.next,
        is_older: after.is_some(),
        is_everybodys: visitor.caller.role == Role::Operator,
    };
    render_page(status, &home)
}

fn agreement_row(agreement: &AgreementView) -> Row {
    // What has no place has the window that was asked for.
    let planned_start = agreement.planned_start.as_ref().unwrap_or(&agreement.ready);
    let planned_end = agreement.planned_end.as_ref().unwrap_or(&agreement.deadline);
    let (start, end) = match (&agreement.started, &agreement.ended) {
        (Some(started), Some(ended)) => (started, ended),
        (Some(started), None) => (started, planned_end),
        (None, _) => (planned_start, planned_end),
    };
    Row {
        id: agreement.id,
        name: text::name(agreement),
        party: agreement.party.clone(),
        standing: text::standing(agreement),
        start: start.clone(),
        end: end.clone(),
        nodes: text::nodes(agreement.nodes),
    }
}
