//! Answers to offers: taken, rejected, countered with another one; and the end of a negotiation.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use uuid::Uuid;

use crate::failure::Failure;
use crate::negotiation::{negotiation_form_again, render_negotiation_page};
use crate::path::PagePath;
use crate::request::field_names;
use crate::request::fields::Input;
use crate::request::filled_form::{FilledForm, form_filled_from_request, form_filled_with_said};
use crate::request::offer_form::{OfferForm, make_offer_form};
use crate::request::present_second;
use crate::request::refusal::Refusal;
use crate::request::submitted_form::{
    SentRequest, SubmittedForm, once_of_submitted_form, read_submitted_form,
};
use crate::session::{self, Visitor};
use crate::text;
use crate::values::Values;
use crate::{Answer, Frame, redirect_to, render_page};
use api::{Api, require_writer, use_cases_of_caller};
use service::{Input as Body, NegotiationView, ReadOffer, RequestKey, Scope};

/// The form of an answer.
#[derive(Template)]
#[template(path = "portal/counter.html")]
struct Counter {
    frame: Frame,
    negotiation: Uuid,
    /// The offer that it answers.
    offer: String,
    refusal: Option<Refusal>,
    /// The form that asks for the same in a negotiation of its own, where this one did not.
    anew: Option<String>,
    form: OfferForm,
    now: String,
}

/// POST /portal/offers/{id}/accept: the offer becomes an agreement, as it stands.
pub(crate) async fn accept_held_offer(
    State(api): State<Api>,
    PagePath(id): PagePath<Uuid>,
    request: Request,
) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let once: Option<Uuid> = values.get(field_names::ONCE).parse().ok();
    let party = &visitor.caller.party;
    let key =
        once.map(|once| RequestKey::new(party, &once.to_string(), "an offer of the portal", id.as_bytes()));
    let use_cases = use_cases_of_caller(&api.service, &visitor.caller);
    match service::accept_offer(&use_cases, party, id, key).await {
        Ok(accepted) => Ok(redirect_to(&format!(
            "/portal/agreements/{}",
            accepted.agreement.id
        ))),
        Err(lost @ (service::Error::Lost(_) | service::Error::Refused(_))) => {
            let words = match &lost {
                service::Error::Refused(refusal) => refusal.binding_constraint.clone(),
                lost => lost.to_string(),
            };
            let status = api::Error::from(lost).status().0;
            let found = service::show_offer_by_id(&api.service, &own_scope(&visitor), id).await?;
            render_negotiation_page(&api, &visitor, found.negotiation, (status, Some(words))).await
        }
        Err(other) => Err(other.into()),
    }
}

/// POST /portal/offers/{id}/reject: the offer is released.
pub(crate) async fn reject_offer(
    State(api): State<Api>,
    PagePath(id): PagePath<Uuid>,
    request: Request,
) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let scope = own_scope(&visitor);
    let found = service::show_offer_by_id(&api.service, &scope, id).await?;
    let offer = (found.negotiation, found.offer.id.as_str());
    Box::pin(service::reject_from_form(
        &api.service,
        &scope,
        offer,
        once_of_submitted_form(&values),
    ))
    .await?;
    Ok(to_negotiation(found.negotiation))
}

/// POST /portal/negotiations/{id}/release: all its offers are released.
pub(crate) async fn release_negotiation(
    State(api): State<Api>,
    PagePath(id): PagePath<Uuid>,
    request: Request,
) -> Answer {
    let (visitor, _) = session::read_session_form(&api, request).await?;
    release_offers(&api, &visitor, id).await?;
    Ok(to_negotiation(id))
}

/// Releases the offers that a form was filled in from, so that they count no longer when it asks for others.
///
/// # Errors
/// The errors of the end of a negotiation, but not that there is none or that it is over.
pub(crate) async fn release_earlier(api: &Api, visitor: &Visitor, values: &Values) -> Result<(), Failure> {
    let Ok(earlier) = values.get(field_names::INSTEAD).parse() else {
        return Ok(());
    };
    match release_offers(api, visitor, earlier).await {
        Err(Failure::NotFound) => Ok(()),
        released => released,
    }
}

async fn release_offers(api: &Api, visitor: &Visitor, id: Uuid) -> Result<(), Failure> {
    match service::end_negotiation(
        &api.service,
        &own_scope(visitor),
        id,
        Body::Json(Vec::new()),
        None,
    )
    .await
    {
        // A negotiation that was ended or has expired meanwhile is shown as such.
        Ok(_) | Err(service::Error::Conflict(_) | service::Error::Gone(_)) => Ok(()),
        Err(other) => Err(other.into()),
    }
}

/// GET /portal/negotiations/{id}/counter?offer=ID: the form filled from an offer, to answer it with something else. More fields in
/// the query fill it in instead.
pub(crate) async fn show_counter_page(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath(id): PagePath<Uuid>,
    uri: Uri,
) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    require_writer(&visitor.caller)?;
    let query = Values::read(uri.query().unwrap_or_default().as_bytes());
    let answered = AnsweredOffer::read(&api, &visitor, id, query.get(field_names::OFFER)).await?;
    let form = SubmittedForm {
        values: if query.has(field_names::NODES) {
            query
        } else {
            answered.values(&api)
        },
        ..SubmittedForm::default()
    };
    render_counter_page(&api, &visitor, &answered, StatusCode::OK, form).await
}

/// POST /portal/negotiations/{id}/offers: the form answers an offer of the negotiation.
pub(crate) async fn send_counter_offer(
    State(api): State<Api>,
    PagePath(id): PagePath<Uuid>,
    request: Request,
) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let answered = AnsweredOffer::read(&api, &visitor, id, values.get(field_names::OFFER)).await?;
    let wrong = StatusCode::UNPROCESSABLE_ENTITY;
    // What it runs stays as it is in the offer.
    let values = values.with(field_names::APPLICATION, "");
    let (mut form, sent) = read_submitted_form(&api, &visitor, values).await?;
    let Some(SentRequest { wish, once, .. }) = sent else {
        return render_counter_page(&api, &visitor, &answered, wrong, form).await;
    };
    let use_cases = use_cases_of_caller(&api.service, &visitor.caller);
    let (scope, offer) = (own_scope(&visitor), answered.offer.is.id.as_str());
    let told = service::counter_from_form(&use_cases, &scope, (id, offer), &wish, once);
    let status = match told.await {
        Ok(None) => return Ok(to_negotiation(id)),
        Ok(Some(refusal)) => form.note_refusal(&refusal),
        Err(error) => form.note_error(error)?,
    };
    render_counter_page(&api, &visitor, &answered, status, form).await
}

/// An offer that is answered with another one.
struct AnsweredOffer {
    negotiation: NegotiationView,
    offer: ReadOffer,
}

impl AnsweredOffer {
    async fn read(api: &Api, visitor: &Visitor, negotiation: Uuid, offer: &str) -> Result<Self, Failure> {
        let scope = own_scope(visitor);
        let (negotiation, offers) =
            service::show_negotiation_as_read(&api.service, &scope, negotiation).await?;
        let offer = offers.into_iter().find(|one_offer| one_offer.is.id == offer);
        Ok(Self {
            negotiation,
            offer: offer.ok_or(Failure::NotFound)?,
        })
    }

    /// The values with which a form asks for the offer.
    fn values(&self, api: &Api) -> Values {
        form_filled_from_request(&self.offer.request, &api.service.catalogue())
    }
}

async fn render_counter_page(
    api: &Api,
    visitor: &Visitor,
    answered: &AnsweredOffer,
    status: StatusCode,
    asked: SubmittedForm,
) -> Answer {
    let title = if asked.has_gone_wrong() {
        "Error: Ask for something else"
    } else {
        "Ask for something else"
    };
    let (id, offer) = (answered.negotiation.id, answered.offer.is.id.as_str());
    let here = FilledForm::at(
        format!("/portal/negotiations/{id}/counter"),
        asked.values.clone().with(field_names::OFFER, offer),
    );
    let now = present_second(api);
    let refusal = asked.refusal.as_ref();
    let anew = negotiation_form_again(
        &answered.negotiation,
        form_filled_with_said(answered.values(api), &asked.values),
    );
    let page = Counter {
        frame: visitor.frame(title),
        negotiation: id,
        offer: offer.to_owned(),
        refusal: refusal.map(|refusal| Refusal::of(refusal, &here, now)),
        anew: asked.has_gone_wrong().then(|| anew.address()),
        form: make_offer_form(api, visitor, &asked).await.into_counter(),
        now: text::date_time(now),
    };
    render_page(status, &page)
}

/// What a visitor may act on: an operator looks at all negotiations, and acts in its own.
fn own_scope(visitor: &Visitor) -> Scope {
    Scope::Party(visitor.caller.party.clone())
}

fn to_negotiation(id: Uuid) -> Response {
    redirect_to(&format!("/portal/negotiations/{id}"))
}
