//! What a person does in a negotiation with forms: asks for offers, asks what they would cost, answers offers, and reads all
//! that was said. Underneath are the same offers as those of programs.

use domain::agreement::NegotiationState;
use domain::request::Request;
use serde_json::Value;
use store::negotiations;
use uuid::Uuid;
use wsag::negotiations::OfferState;

use super::flat_offers::{AnswersView, OfItself, offer_in_negotiation, open_with_offer, open_with_request};
use super::offers::{CheckedOffer, IncomingOffer, counter_offers};
use super::{
    NegotiationView, OpenedNegotiation, OpeningRequest, end_negotiation, opened_by, visible_negotiation,
};
use crate::service::agreements::create::requests_of_form;
use crate::service::codec::form::{places_of_form, request_of_change};
use crate::service::idempotency::{StoredAnswer, earlier_answer, text_to_keep};
use crate::service::negotiations::exchange::exchange_read_offer;
use crate::service::negotiations::proposals::penalties_about;
use crate::service::views::agreement::{GuaranteeView, view_guarantees};
use crate::service::views::offer::{OfferView, WordedOffer, content_of_offer, view_offers};
use crate::service::{Error, Input, QuotationView, RefusalView, RequestKey, Result, Scope, Service};

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

/// An offer with all that a person reads of it.
#[derive(Debug, Clone)]
pub struct ReadOffer {
    /// How it stands.
    pub is: OfferView,
    /// What its words ask for.
    pub request: Request,
    /// The template that it was made from.
    pub template: String,
    /// The guarantees of the agreement that it would become; none of an offer that cannot be accepted.
    pub guarantees: Vec<GuaranteeView>,
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
        ..offer_of_form(service, party, request, OfferState::Solicited).await?
    };
    let opening = OpeningRequest {
        expires: Some(service.clock.now() + GOES_ON),
        agreement: None,
    };
    let opened = open_with_offer(service, party, &placed, &opening, Some(key)).await?;
    Ok(opened.id)
}

/// The offer of a form in a negotiation. All faults of the form are found at once.
async fn offer_of_form(
    service: &Service,
    party: &str,
    request: Request,
    state: OfferState,
) -> Result<IncomingOffer> {
    let (places, party) = (places_of_form(&request), party.to_owned());
    let read = service.run_work_with_files(move |service| requests_of_form(service, &request, &party));
    let (offer, requests) = read.await??;
    let offer = offer_in_negotiation(*offer, OfItself::default(), state);
    Ok(IncomingOffer::checked(offer, requests, places))
}

/// The offers for the request of a form at the moment. Nothing is stored or held. It counts as a question
/// (`probes_per_minute`).
///
/// # Errors
/// `Error::Invalid` and `Error::NotOffered` for faults of the request, each at its place in the request,
/// `Error::Refused` where the party has too many negotiations going on, `Error::Unavailable`.
pub async fn estimate_request(service: &Service, party: &str, request: Request) -> Result<EstimateView> {
    let placed = offer_of_form(service, party, request, OfferState::Advisory).await?;
    let opening = OpeningRequest {
        expires: Some(service.clock.now() + service.planner.negotiating().hold),
        agreement: None,
    };
    let instance = opened_by(service, party, &opening).await?;
    let question = CheckedOffer::of_question(&instance);
    let said = counter_offers(service, &instance, Uuid::now_v7(), question, &placed).await?;
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
        let request = request_of_change(service, request.clone())?;
        let opening = OpeningRequest {
            expires: Some(service.clock.now() + GOES_ON),
            agreement: Some(agreement),
        };
        open_with_request(service, party, request, OfItself::default(), &opening, Some(key)).await?
    };
    let Some(refusal) = refusal_in_answer(&opened.json) else {
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
/// The errors of [`exchange_offers`](super::exchange::exchange_offers) for such an offer; faults of the request are at their places in it.
pub async fn counter_from_form(
    service: &Service,
    scope: &Scope,
    (negotiation, offer): (Uuid, &str),
    request: &Request,
    once: Uuid,
) -> Result<Option<Value>> {
    let counter = OfItself::answering(offer, None);
    let told = say_in_negotiation(service, scope, negotiation, (request, counter), once).await?;
    Ok(refusal_in_answer(&told.json))
}

/// Rejects an offer of a negotiation, which releases it; once for each form.
///
/// # Errors
/// The errors of [`exchange_offers`](super::exchange::exchange_offers) for such an offer.
pub async fn reject_from_form(
    service: &Service,
    scope: &Scope,
    (negotiation, offer): (Uuid, &str),
    once: Uuid,
) -> Result<()> {
    let rejection = OfItself::answering(offer, Some(OfferState::Rejected));
    say_in_negotiation(
        service,
        scope,
        negotiation,
        (&Request::default(), rejection),
        once,
    )
    .await
    .map(drop)
}

async fn say_in_negotiation(
    service: &Service,
    scope: &Scope,
    negotiation: Uuid,
    (request, of_itself): (&Request, OfItself),
    once: Uuid,
) -> Result<StoredAnswer> {
    let instance = visible_negotiation(service, scope, negotiation).await?;
    let target = format!("an answer of the portal in {negotiation}");
    let said = format!("{}{of_itself:?}", text_to_keep(request));
    let key = RequestKey::new(&instance.party, &once.to_string(), &target, said.as_bytes());
    let request = request_of_change(service, request.clone())?;
    exchange_read_offer(service, &instance, request, of_itself, key).await
}

/// A negotiation, with all that was said in it, the oldest first.
///
/// # Errors
/// `Error::NotFound` when there is none or it is another party's, `Error::Unavailable`.
pub async fn read_negotiation(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<(NegotiationView, Vec<ReadOffer>)> {
    let instance = visible_negotiation(service, scope, id).await?;
    let offers = negotiations::offers_of_negotiation(&service.store, id).await?;
    let mut view = NegotiationView::of(&instance, service.clock.now());
    view.penalties = penalties_about(service, &instance).await?;
    let said = offers
        .into_iter()
        .map(|(row, kept)| WordedOffer::read(row, &kept).map(|offer| read_offer(&offer)));
    Ok((view, said.collect::<Result<Vec<_>>>()?))
}

fn read_offer(said: &WordedOffer) -> ReadOffer {
    let words = content_of_offer(&said.words);
    let terms = said.row.terms.as_ref();
    let guarantees = terms.and_then(|terms| {
        let promise = terms.promise.as_ref()?;
        Some(view_guarantees(&promise.guarantees, terms.price))
    });
    ReadOffer {
        is: said.view(),
        guarantees: guarantees.unwrap_or_default(),
        template: words.context.template_name.clone().unwrap_or_default(),
        request: Request::of_offer(&words),
    }
}

/// Why there is no offer in the answer to a request, as it was told; none where there are some.
fn refusal_in_answer(answer: &str) -> Option<Value> {
    let mut answer: Value = serde_json::from_str(answer).ok()?;
    let has_offers = answer["offers"]
        .as_array()
        .is_some_and(|answer| !answer.is_empty());
    (!has_offers).then(|| answer["refusal"].take())
}

impl NegotiationView {
    /// Whether offers are still taken in it.
    pub fn is_open(&self) -> bool {
        self.state == NegotiationState::Open.word()
    }
}
