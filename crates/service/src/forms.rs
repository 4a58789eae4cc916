//! What a person does with forms: reserves at once, or asks in a negotiation for offers and what they would cost, answers offers, and
//! reads all that was said. Underneath are the same offers as those of programs.

use domain::request::Request;
use serde_json::Value;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::OfferState;

use crate::agreements::create::{
    check_create_request_says_enough, place_created_agreement, requests_of_flat_create_request,
};
use crate::codec::form::{form_of_change, places_of_form, template_of_form};
use crate::idempotency::{StoredAnswer, earlier_answer, text_to_keep};
use crate::negotiations::answers::negotiation_answers_to_offer;
use crate::negotiations::end::end_negotiation;
use crate::negotiations::exchange::exchange_read_offer;
use crate::negotiations::flat_offers::{FlatOfferProperties, flat_offer_in_negotiation};
use crate::negotiations::incoming_offer::{CheckedIncomingOffer, IncomingOffer};
use crate::negotiations::initiate::{
    OpenedNegotiation, OpeningRequest, initiate_with_flat_request, initiate_with_offer, initiated_negotiation,
};
use crate::negotiations::negotiation::visible_negotiation;
use crate::views::answers::AnswersView;
use crate::views::worded_offer::view_offers;
use crate::{AcceptedView, Error, Input, QuotationView, RefusalView, RequestKey, Result, Scope, Service};

/// Seconds for which a negotiation that a form opens goes on: longer than a person looks at offers, and short enough for one that
/// asks again and again.
const GOES_ON: i64 = 3_600;

/// What would be offered for a request.
#[derive(Debug, Clone, Default)]
pub struct EstimateView {
    /// The possible offers, the best first. Nothing is held for them.
    pub offers: Vec<QuotationView>,
    /// Why there are none.
    pub refusal: Option<RefusalView>,
}

/// Opens a negotiation with the request of a form, and answers the request with at most so many offers, which are held; once
/// for each form, which `once` names. The id of the negotiation.
///
/// # Errors
/// `Error::Invalid` and `Error::NotOffered` for faults of the request, each at its place in the request,
/// `Error::Refused` where the party has too many going on, `Error::KeyReused`, `Error::Unavailable`.
pub async fn offer_from_form(
    service: &Service,
    party: &str,
    request: Request,
    answers_max: usize,
    once: Uuid,
) -> Result<Uuid> {
    // The same form may also reserve at once, under its own key.
    let (name, target) = (
        format!("{once} offers"),
        format!("{answers_max} offers in the portal"),
    );
    let key = RequestKey::new(party, &name, &target, text_to_keep(&request).as_bytes());
    if let Some(opened) = earlier_answer::<OpenedNegotiation>(service, Some(&key)).await? {
        return Ok(opened.id);
    }
    let placed = IncomingOffer {
        answers_max,
        ..check_offer_of_form(service, party, request, OfferState::Solicited).await?
    };
    let opening = OpeningRequest {
        expires: Some(service.clock.now() + GOES_ON),
        agreement: None,
    };
    let opened = initiate_with_offer(service, party, &placed, &opening, Some(key)).await?;
    Ok(opened.id)
}

/// The offer of a form in a negotiation. All faults of the form are found at once.
async fn check_offer_of_form(
    service: &Service,
    party: &str,
    request: Request,
    state: OfferState,
) -> Result<IncomingOffer> {
    let (places, party) = (places_of_form(&request), party.to_owned());
    let read =
        service.run_work_with_files(move |service| requests_to_create_from_form(service, &request, &party));
    let (offer, requests) = read.await??;
    let offer = flat_offer_in_negotiation(*offer, FlatOfferProperties::default(), state);
    Ok(IncomingOffer::checked(offer, requests, places))
}

/// The offers for the request of a form at the moment. Nothing is stored or held. It counts as a question
/// (`probes_per_minute`).
///
/// # Errors
/// `Error::Invalid` and `Error::NotOffered` for faults of the request, each at its place in the request,
/// `Error::Refused` where the party has too many negotiations going on, `Error::Unavailable`.
pub async fn estimate_from_form(service: &Service, party: &str, request: Request) -> Result<EstimateView> {
    let placed = check_offer_of_form(service, party, request, OfferState::Advisory).await?;
    let opening = OpeningRequest {
        expires: Some(service.clock.now() + service.planner.negotiating().hold),
        agreement: None,
    };
    let instance = initiated_negotiation(service, party, &opening).await?;
    let question = CheckedIncomingOffer::of_question(&instance);
    let said = negotiation_answers_to_offer(service, &instance, Uuid::now_v7(), question, &placed).await?;
    let AnswersView { offers, refusal } = AnswersView::of(view_offers(&said));
    Ok(EstimateView {
        offers: offers.into_iter().filter_map(|offer| offer.quotation).collect(),
        refusal: refusal.and_then(|refusal| serde_json::from_value(refusal).ok()),
    })
}

/// Asks for the change of an agreement, which names the differences, as [`offer_from_form`] asks for an agreement.
/// A negotiation that comes to nothing is ended. The id of the negotiation, or why nothing is offered in it.
///
/// # Errors
/// The errors of [`offer_from_form`], and `Error::NotFound` and `Error::Conflict` where the agreement cannot be changed.
pub async fn change_from_form(
    service: &Service,
    party: &str,
    agreement: Uuid,
    request: &Request,
    once: Uuid,
) -> Result<Result<Uuid, Value>> {
    let target = format!("a change of {agreement} in the portal");
    let key = RequestKey::new(
        party,
        &once.to_string(),
        &target,
        text_to_keep(request).as_bytes(),
    );
    let before = earlier_answer::<OpenedNegotiation>(service, Some(&key)).await?;
    let opened = if let Some(opened) = before {
        opened
    } else {
        let request = form_of_change(service, request.clone())?;
        let opening = OpeningRequest {
            expires: Some(service.clock.now() + GOES_ON),
            agreement: Some(agreement),
        };
        initiate_with_flat_request(
            service,
            party,
            request,
            FlatOfferProperties::default(),
            &opening,
            Some(key),
        )
        .await?
    };
    let Some(refusal) = refusal_in_form_answer(&opened.json) else {
        return Ok(Ok(opened.id));
    };
    let scope = Scope::Party(party.to_owned());
    match end_negotiation(service, &scope, opened.id, Input::Json(Vec::new()), None).await {
        // The same form was sent before.
        Ok(_) | Err(Error::Conflict(_) | Error::Gone(_)) => Ok(Err(refusal)),
        Err(other) => Err(other),
    }
}

/// Answers an offer of a negotiation with another one, which names the differences; once for each form. Why nothing is offered
/// for it, if so.
///
/// # Errors
/// The errors of [`exchange_offers`](super::negotiations::exchange::exchange_offers) for such an offer; faults of the request are at their places in it.
pub async fn counter_from_form(
    service: &Service,
    scope: &Scope,
    (negotiation, offer): (Uuid, &str),
    request: &Request,
    once: Uuid,
) -> Result<Option<Value>> {
    let counter = FlatOfferProperties::answering(offer, None);
    let told = say_from_form(service, scope, negotiation, (request, counter), once).await?;
    Ok(refusal_in_form_answer(&told.json))
}

/// Rejects an offer of a negotiation, which releases it; once for each form.
///
/// # Errors
/// The errors of [`exchange_offers`](super::negotiations::exchange::exchange_offers) for such an offer.
pub async fn reject_from_form(
    service: &Service,
    scope: &Scope,
    (negotiation, offer): (Uuid, &str),
    once: Uuid,
) -> Result<()> {
    let rejection = FlatOfferProperties::answering(offer, Some(OfferState::Rejected));
    say_from_form(
        service,
        scope,
        negotiation,
        (&Request::default(), rejection),
        once,
    )
    .await
    .map(drop)
}

async fn say_from_form(
    service: &Service,
    scope: &Scope,
    negotiation: Uuid,
    (request, of_itself): (&Request, FlatOfferProperties),
    once: Uuid,
) -> Result<StoredAnswer> {
    let instance = visible_negotiation(service, scope, negotiation).await?;
    let target = format!("an answer of the portal in {negotiation}");
    let said = format!("{}{of_itself:?}", text_to_keep(request));
    let key = RequestKey::new(&instance.party, &once.to_string(), &target, said.as_bytes());
    let request = form_of_change(service, request.clone())?;
    exchange_read_offer(service, &instance, request, of_itself, key).await
}

/// Why there is no offer in the answer to a request, as it was told; none where there are some.
fn refusal_in_form_answer(answer: &str) -> Option<Value> {
    let mut answer: Value = serde_json::from_str(answer).ok()?;
    let has_offers = answer["offers"]
        .as_array()
        .is_some_and(|answer| !answer.is_empty());
    (!has_offers).then(|| answer["refusal"].take())
}

/// Takes the request of a form, which becomes an offer from the first template; once for each form, which `once` names.
///
/// # Errors
/// The errors of [`create_agreement`](super::create_agreement) for such an offer.
pub async fn create_from_form(
    service: &Service,
    party: &str,
    request: Request,
    once: Uuid,
) -> Result<AcceptedView> {
    let text = text_to_keep(&request);
    let key = RequestKey::new(party, &once.to_string(), "a form of the portal", text.as_bytes());
    let key = Some(key);
    if let Some(answer) = earlier_answer(service, key.as_ref()).await? {
        return Ok(answer);
    }
    let own_party = party.to_owned();
    let read = service
        .run_work_with_files(move |service| requests_to_create_from_form(service, &request, &own_party));
    let (offer, requests) = read.await??;
    // A refusal is not kept: the form is corrected, and sent again under the same name.
    place_created_agreement(service, party, offer, requests, key).await
}

/// Checks the request of a form, and decides nothing.
///
/// # Errors
/// [`Error::Invalid`] and [`Error::NotOffered`] for its faults, each at its place in the request; [`Error::Unavailable`].
pub async fn check_form(service: &Service, party: &str, request: Request) -> Result<()> {
    let party = party.to_owned();
    service
        .run_work_with_files(move |service| requests_to_create_from_form(service, &request, &party))
        .await?
        .map(drop)
}

/// The offer from the first template that the request of a form makes, and its requests. All its faults are found at once.
fn requests_to_create_from_form(
    service: &Service,
    request: &Request,
    party: &str,
) -> Result<(Box<AgreementOffer>, Vec<planner::Request>)> {
    let places = places_of_form(request);
    let offered = template_of_form(service)?;
    let request = &request.saying_duration(&offered.template, service.clock.now());
    let made = requests_of_flat_create_request(service, request, &offered, &places, party);
    match (made, check_create_request_says_enough(request, places.root())) {
        (Err(Error::Invalid(mut found)), Err(Error::Invalid(others))) => {
            found.0.extend(others.0);
            Err(Error::Invalid(found))
        }
        (made, stated) => made.and_then(|made| stated.map(|()| made)),
    }
}
