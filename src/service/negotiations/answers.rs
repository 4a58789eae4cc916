//! Offers: taken one by one, and answered with counter offers, each on its own.

use std::sync::Arc;

use domain::agreement::{
    Agreement, NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState, OfferTerms, Promise, Shape,
};
use planner::{
    Candidate, ExchangeOffers, Initiate, OfferOrigin, OfferWords, QuoteOffers, Request, Suggestion,
};
use scheduler::{Interval, Time};
use store::negotiations;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::constraints::CompiledConstraints;
use wsag::negotiations::{NegotiationConstraints, NegotiationOffer as OfferDocument, negotiate_input};
use wsag::{ValuePlaces, Violation, Violations, guard};

use crate::service::codec::json_check::TOKEN_MAX;
use crate::service::codec::kept_offer::worded_offer;
use crate::service::error::violation_at_path;
use crate::service::idempotency::{earlier_answer, read_kept_answer, text_to_keep};
use crate::service::negotiations::counter_offers::{
    counter_offer, counter_offer_weights, counter_sizes_beyond_offer, make_counter_offer, new_offer_row,
    readings_to_counter, rejection_of_offer, sayable_counter_offers,
};
use crate::service::negotiations::demands::negotiable_constraints;
use crate::service::negotiations::negotiation::{replaced_agreement, why_negotiation_is_over};
use crate::service::negotiations::peer_offers::{
    end_unused_at_peers, quote_with_peer_offers, why_travel_ends,
};
use crate::service::negotiations::relaxations::offerable_relaxations;
use crate::service::predictions::confidence_in_slot;
use crate::service::request::cluster_policy::note_barred_clusters;
use crate::service::request::offer::{only_reading_of_offer, requests_of_offer};
use crate::service::views::offer::WordedOffer;
use crate::service::views::refusal::Rejection;
use crate::service::{Error, RefusalView, RequestKey, Result, Service};

/// An offer, and where its maker has it.
pub(in crate::service) struct IncomingOffer {
    pub(in crate::service) offer: OfferDocument,
    pub(in crate::service) places: ValuePlaces,
    /// The request that it makes, where that was found as it was read and it leaves no choice.
    pub(in crate::service) request: Option<Request>,
    /// How many possible offers its maker wants to see at most.
    pub(in crate::service) answers_max: usize,
}

impl IncomingOffer {
    /// An offer whose request is not found yet. It is given an id where its maker has given it none.
    pub(in crate::service) fn new(mut offer: OfferDocument, places: ValuePlaces) -> Self {
        offer.offer_id.get_or_insert_with(|| Uuid::now_v7().to_string());
        Self {
            offer,
            places,
            request: None,
            answers_max: usize::MAX,
        }
    }

    /// An offer that was found to make these requests.
    pub(in crate::service) fn checked(
        offer: OfferDocument,
        requests: Vec<Request>,
        places: ValuePlaces,
    ) -> Self {
        let first = requests.into_iter().next();
        Self {
            request: first.filter(|_| offer.terms.is_conjunctive()),
            ..Self::new(offer, places)
        }
    }
}

/// A checked offer of the requester.
pub(in crate::service) struct CheckedOffer {
    state: OfferState,
    demands: Arc<CompiledConstraints>,
    about: OfferOrigin,
}

impl CheckedOffer {
    /// A question to which the answers are not held, in a negotiation that is not opened.
    pub(in crate::service) fn of_question(instance: &NegotiationInstance) -> Self {
        let none = NegotiationConstraints::default();
        Self {
            state: OfferState::Advisory,
            demands: Arc::new(CompiledConstraints::compile(&none)),
            about: OfferOrigin::Opening(Box::new(instance.clone())),
        }
    }

    /// Whether peers may be asked: they would hold what they offer.
    fn may_ask_peers(&self) -> bool {
        self.state != OfferState::Advisory && !matches!(self.about, OfferOrigin::Proposal(_))
    }

    /// A question of the provider to itself; it proposes the answer.
    pub(in crate::service) fn of_provider(suggestion: Suggestion, demands: &NegotiationConstraints) -> Self {
        Self {
            state: OfferState::Solicited,
            demands: Arc::new(CompiledConstraints::compile(demands)),
            about: OfferOrigin::Proposal(Box::new(suggestion)),
        }
    }
}

/// Answers one offer, once under its key. The first one of a negotiation comes with the request that opens it.
pub(in crate::service) async fn answer_offer(
    service: &Service,
    instance: &NegotiationInstance,
    placed: &IncomingOffer,
    key: Option<RequestKey>,
    opening: Option<Initiate>,
) -> Result<Vec<WordedOffer>> {
    if let Some(before) = earlier_answer::<Vec<Uuid>>(service, key.as_ref()).await? {
        return earlier_answers(service, &before).await;
    }
    let is_first = opening.is_some();
    let (mut understood, incoming) = match check_offer_to_answer(service, instance, placed, is_first).await? {
        Ok(understood) => understood,
        // An offer that cannot be answered in a negotiation opens none.
        Err(violations) if is_first => return Err(invalid_offer(violations)),
        // An offer without a place in the tree is not kept in it, and nor is its answer.
        Err(violations) => {
            let rejection = Rejection::Violations(violations);
            let offer = &placed.offer;
            return Ok(vec![rejection_of_offer(
                service,
                instance.id,
                None,
                offer,
                &rejection,
            )]);
        }
    };
    if is_first {
        understood.about = OfferOrigin::Opening(Box::new(instance.clone()));
    }
    let parent = incoming.offer.id;
    let answers = match understood.state {
        OfferState::Rejected => Vec::new(),
        _ => answer_with_counter_offers(service, instance, parent, understood, placed).await?,
    };
    store_answers(service, instance, placed, (Some(incoming), answers), key, opening).await
}

/// The answers that an offer was given before.
pub(in crate::service) async fn earlier_answers(service: &Service, ids: &[Uuid]) -> Result<Vec<WordedOffer>> {
    let mut said = Vec::with_capacity(ids.len());
    for id in ids {
        said.push(worded_offer(service, *id).await?);
    }
    said.retain(|said| said.row.creator == NegotiationRole::Responder);
    Ok(said)
}

/// Answers an offer again, because its earlier answer cannot be accepted any more: with the earlier answers that
/// are still held, or else anew, with a hold where that is asked for; once under its key.
pub(in crate::service) async fn answer_again(
    service: &Service,
    instance: &NegotiationInstance,
    parent: Uuid,
    holds: bool,
    places: ValuePlaces,
    key: Option<RequestKey>,
) -> Result<Vec<WordedOffer>> {
    if let Some(before) = earlier_answer::<Vec<Uuid>>(service, key.as_ref()).await? {
        return earlier_answers(service, &before).await;
    }
    let now = service.clock.now();
    let offers = negotiations::offers_of_negotiation(&service.store, instance.id)
        .await?
        .into_iter();
    let held: Vec<_> = offers
        .filter(|(row, _)| row.parent == Some(parent) && row.is_held() && !row.is_expired(now))
        .map(|(row, document)| WordedOffer::read(row, &document))
        .collect::<Result<_, _>>()?;
    if !held.is_empty() {
        return Ok(held);
    }
    let WordedOffer { row, words: offer } = worded_offer(service, parent).await?;
    let (offer, demands) = service
        .run_document_work(move |_| {
            let demands = CompiledConstraints::compile(&offer.constraints);
            (offer, Arc::new(demands))
        })
        .await?;
    let understood = CheckedOffer {
        state: if holds { row.state } else { OfferState::Advisory },
        demands,
        about: OfferOrigin::Negotiation(instance.id),
    };
    let placed = IncomingOffer::new(offer, places);
    let answers = answer_with_counter_offers(service, instance, parent, understood, &placed).await?;
    store_answers(service, instance, &placed, (None, answers), key, None).await
}

/// The answers to an offer, not stored yet: the possible offers, or one that rejects it.
pub(in crate::service) async fn answer_with_counter_offers(
    service: &Service,
    instance: &NegotiationInstance,
    parent: Uuid,
    understood: CheckedOffer,
    placed: &IncomingOffer,
) -> Result<Vec<WordedOffer>> {
    let IncomingOffer { offer, places, .. } = placed;
    if let Some(why) = offer
        .offer_context
        .travel()
        .and_then(|travel| why_travel_ends(service, &travel, instance))
    {
        let below = "/wsag-neg:NegotiationOfferContext/bsp:Travel";
        let rejection = Rejection::Violations(vec![violation_below_offer(places, below, why)]);
        return Ok(vec![rejection_of_offer(
            service,
            instance.id,
            Some(parent),
            offer,
            &rejection,
        )]);
    }
    let mut rejected = None;
    for (number, asked) in readings_to_counter(offer).into_iter().enumerate() {
        // Peers are asked for the first preference only: each question takes its time.
        let asks_peers = number == 0;
        let here = (instance, parent, asks_peers);
        let tried = answer_reading(service, here, &understood, placed, asked).await?;
        match tried {
            Ok(answers) => {
                end_unused_at_peers(service, instance, parent, &answers);
                return Ok(answers);
            }
            // The answer is about the requester's first preference.
            Err(rejection) => drop(rejected.get_or_insert(rejection)),
        }
    }
    end_unused_at_peers(service, instance, parent, &[]);
    let rejection = rejected.unwrap_or_else(|| {
        let message = "choices between terms that can be read in fewer ways are expected";
        Rejection::Violations(vec![violation_below_offer(places, "/wsag:Terms", message)])
    });
    Ok(vec![rejection_of_offer(
        service,
        instance.id,
        Some(parent),
        offer,
        &rejection,
    )])
}

/// The sizes beyond those of an offer that its template allows.
fn other_sizes_to_answer(service: &Service, asked: &AgreementOffer) -> Option<Vec<Shape>> {
    let offered = service.templates.get(asked.context.template_id.as_deref()?)?;
    counter_sizes_beyond_offer(asked, &offered, service.templates.capacity())
}

/// The answers to one way to read an offer.
async fn answer_reading(
    service: &Service,
    (instance, parent, asks_peers): (&NegotiationInstance, Uuid, bool),
    understood: &CheckedOffer,
    placed: &IncomingOffer,
    asked: AgreementOffer,
) -> Result<Result<Vec<WordedOffer>, Rejection>> {
    let (party, places) = (instance.party.clone(), placed.places.clone());
    let replaced = replaced_agreement(service, instance).await?;
    let known = placed.request.clone();
    let (asked, places, replaced, read) = service
        .run_work_with_files(move |service| {
            let read = match known {
                Some(request) => Ok(request),
                None => requests_of_offer(service, &asked, &places, &party, replaced.as_ref())
                    .and_then(only_reading_of_offer),
            };
            (asked, places, replaced, read)
        })
        .await?;
    let mut request = match read {
        Ok(request) => request,
        Err(Error::Invalid(violations) | Error::NotOffered(violations)) => {
            return Ok(Err(Rejection::Violations(violations.0)));
        }
        Err(why) => return Err(why),
    };
    let window = request.window(service.clock.now(), Time::MAX);
    let job = request.job.clone();
    let weights = counter_offer_weights(&asked);
    let others = other_sizes_to_answer(service, &asked);
    let sizes = others.as_deref().unwrap_or_default();
    note_barred_clusters(service, &mut request, sizes).await;
    let barred = request.barred.clone();
    let ask = QuoteOffers {
        about: understood.about.clone(),
        proposal: request.clone(),
        others,
        weights,
    };
    let travel = placed.offer.offer_context.travel();
    let peers = (asks_peers && understood.may_ask_peers()).then_some((parent, travel.as_ref()));
    let wanted = (&asked, &request, window);
    let quoted = quote_with_peer_offers(service, instance, ask, peers, wanted, replaced.as_ref());
    let quote = Box::pin(quoted).await?;
    let state = match understood.state {
        OfferState::Advisory => OfferState::Advisory,
        _ => OfferState::Acceptable,
    };
    let (id, party) = (instance.id, instance.party.clone());
    let (offer, demands) = (placed.offer.clone(), Arc::clone(&understood.demands));
    let answers_max = placed.answers_max;
    service
        .run_document_work(move |service| {
            let template = asked.context.template_id.as_deref().unwrap_or_default();
            let Some(offered) = service.templates.get(template) else {
                return Err(Rejection::Violations(Vec::new()));
            };
            let times = (service.clock.now(), quote.latest);
            let open = negotiable_constraints(service.templates.capacity(), times, replaced.as_ref());
            let say = |candidate: &Candidate| {
                make_counter_offer(&asked, &places, &offered, &demands, &candidate.terms)
            };
            let (said, mut broken) = sayable_counter_offers(quote.candidates, weights, say);
            let mut counters = Vec::with_capacity(said.len());
            for (counter, mut candidate) in said {
                if state == OfferState::Acceptable {
                    let (offer, terms) = (&counter.offer, &candidate.terms);
                    match promise_of_answer(service, offer, &places, terms, &party, replaced.as_ref()) {
                        Ok(mut promise) => {
                            promise.constraints.barred.clone_from(&barred);
                            candidate.terms.promise = Some(Box::new(promise));
                        }
                        Err(violations) => {
                            broken.extend(violations);
                            continue;
                        }
                    }
                }
                let job = job.as_ref();
                candidate.terms.confidence =
                    job.and_then(|job| confidence_in_slot(service, &candidate.terms, &party, job));
                counters.push((counter, candidate));
            }
            if counters.is_empty() {
                return Err(match quote.refusal {
                    Some(refusal) => {
                        let refusal =
                            offerable_relaxations(service, RefusalView::of(&refusal, window), &asked);
                        Rejection::Refusal(Box::new(refusal))
                    }
                    None => Rejection::Violations(broken),
                });
            }
            // In the planner's order where they meet the same.
            counters.sort_by_key(|(counter, _)| counter.unmet);
            counters.truncate(answers_max);
            let put = |(counter, candidate)| {
                let mut answer = counter_offer(service, id, (parent, &offer), counter, candidate, state);
                answer.words.constraints = open.clone();
                answer
            };
            Ok(counters.into_iter().map(put).collect())
        })
        .await
}

/// Stores an offer and its answers. An offer that cannot be stored because the tree has changed meanwhile is
/// rejected.
async fn store_answers(
    service: &Service,
    instance: &NegotiationInstance,
    IncomingOffer { offer, places, .. }: &IncomingOffer,
    (incoming, answers): (Option<OfferWords>, Vec<WordedOffer>),
    key: Option<RequestKey>,
    opening: Option<Initiate>,
) -> Result<Vec<WordedOffer>> {
    let is_opened = opening.is_none();
    let state = offer.offer_context.state;
    let bargain = ExchangeOffers {
        negotiation: instance.id,
        opening,
        incoming,
        answers: answers.iter().map(WordedOffer::to_store).collect(),
        otherwise: match state {
            OfferState::Solicited => OfferState::Rejected,
            _ => OfferState::Advisory,
        },
        idempotency: key.map(|key| key.kept(text_to_keep)),
    };
    let rejection = match service.send(bargain).await {
        Ok(stored) => {
            let said = stored.into_iter().zip(answers);
            let said = said.map(|(row, answer)| WordedOffer { row, ..answer });
            return Ok(said.collect());
        }
        Err(planner::Error::NotFound) if is_opened => {
            return Err(why_negotiation_is_over(service, instance).await);
        }
        Err(planner::Error::Repeated(before)) => {
            return earlier_answers(service, &read_kept_answer::<Vec<Uuid>>(&before)?).await;
        }
        // There is none that could say so.
        Err(why) if !is_opened => return Err(why.into()),
        Err(planner::Error::Stale(why)) => {
            let local = if why.contains("has this OfferId") && why.starts_with("another") {
                "/@wsag-neg:OfferId"
            } else {
                "/wsag-neg:NegotiationOfferContext/wsag-neg:CounterOfferTo"
            };
            Rejection::Violations(vec![violation_below_offer(places, local, why)])
        }
        Err(planner::Error::Refused(refusal)) => {
            let any = Interval::new(Time::MIN, Time::MAX);
            Rejection::Refusal(Box::new(RefusalView::of(&refusal, any)))
        }
        Err(why) => return Err(why.into()),
    };
    Ok(vec![rejection_of_offer(
        service,
        instance.id,
        None,
        offer,
        &rejection,
    )])
}

/// Checks an offer against the rules of the tree. The first offer finds the tree empty. The result has the other offers
/// that are stored with it.
pub(in crate::service) async fn check_offer_to_answer(
    service: &Service,
    instance: &NegotiationInstance,
    IncomingOffer { offer, places, .. }: &IncomingOffer,
    is_first: bool,
) -> Result<Result<(CheckedOffer, OfferWords), Vec<Violation>>> {
    let context = &offer.offer_context;
    let mut found = Vec::new();
    let name = offer.offer_id.clone().unwrap_or_default();
    if name.len() > TOKEN_MAX {
        let message = format!("at most {TOKEN_MAX} bytes are expected");
        found.push(violation_below_offer(places, "/@wsag-neg:OfferId", message));
    }
    let mut wrong = |local: &str, message: &str| {
        let below = format!("/wsag-neg:NegotiationOfferContext/wsag-neg:{local}");
        found.push(violation_below_offer(places, &below, message));
    };
    if context.creator != NegotiationRole::Initiator {
        let message = "NegotiationInitiator is expected: counter offers are the service's to make";
        wrong("Creator", message);
    }
    if let Some(at) = context.expiration_time
        && at.floor() <= service.clock.now().seconds()
    {
        wrong("ExpirationTime", "an instant in the future is expected");
    }
    let to = context.counter_offer_to.as_str();
    let answered = if is_first {
        None
    } else {
        negotiations::negotiation_offer_named(&service.store, instance.id, to).await?
    };
    let parent = match answered {
        Some((parent, document)) => {
            let id = parent.id;
            let words = WordedOffer::read(parent, &document)?.words;
            if words.context.template_id != offer.context.template_id {
                let message = "the offer that it answers was made from another template";
                wrong("CounterOfferTo", message);
            }
            Some(id)
        }
        None if answers_template(offer, to) => None,
        None => {
            let message = format!(
                "{to:?} is neither an offer of this negotiation nor the template of this offer, which is named by \
                 its TemplateId, its TemplateName or TemplateId-TemplateName"
            );
            wrong("CounterOfferTo", &message);
            None
        }
    };
    let said = offer.clone();
    let (demands, checked, document) = service
        .run_document_work(move |_| {
            let demands = CompiledConstraints::compile(&said.constraints);
            // It is cut out of its message, and written anew where it is shown: there it must still pass a guard.
            let written = negotiate_input(std::slice::from_ref(&said));
            let checked = guard::guard_document(written.as_bytes()).map(|_| ());
            (Arc::new(demands), checked, text_to_keep(&said))
        })
        .await?;
    for problem in demands.problems() {
        found.push(Violation {
            path: places.below(&problem.path),
            ..problem.clone()
        });
    }
    if let Err(why) = checked {
        let message = format!("it cannot be kept as a document of its own: {why}");
        found.push(violation_below_offer(places, "", message));
    }
    if !found.is_empty() {
        return Ok(Err(found));
    }
    let state = context.state;
    let understood = CheckedOffer {
        state,
        demands,
        about: OfferOrigin::Negotiation(instance.id),
    };
    let row = NegotiationOffer {
        name,
        expires: context.expiration_time.map(|at| Time(at.floor())),
        ..new_offer_row(service, instance.id, parent, NegotiationRole::Initiator, state)
    };
    Ok(Ok((understood, OfferWords { offer: row, document })))
}

/// The promise of a counter offer beside its place and its price, as it is understood now; or the faults that keep it from
/// being offered.
fn promise_of_answer(
    service: &Service,
    offer: &AgreementOffer,
    places: &ValuePlaces,
    terms: &OfferTerms,
    party: &str,
    replaced: Option<&Agreement>,
) -> Result<Promise, Vec<Violation>> {
    let requests = requests_of_offer(service, offer, places, party, replaced);
    let request = requests
        .and_then(only_reading_of_offer)
        .map_err(|why| match why {
            Error::Invalid(violations) | Error::NotOffered(violations) => violations.0,
            other => {
                tracing::warn!(error = %other, "a counter offer cannot be read");
                Vec::new()
            }
        })?;
    Ok(Promise {
        constraints: request.constraints(terms.slots.is_split()),
        template: request.template,
        job: request.job,
        guarantees: request.guarantees,
    })
}

/// Whether a first offer names its own template as the document that it answers, in one of the three forms.
fn answers_template(offer: &OfferDocument, to: &str) -> bool {
    let id = offer.context.template_id.as_deref().unwrap_or_default();
    let name = offer.context.template_name.as_deref().unwrap_or_default();
    !to.is_empty() && (to == id || to == name || to == format!("{id}-{name}"))
}

/// A fault at a path below an offer.
pub(in crate::service) fn violation_below_offer(
    places: &ValuePlaces,
    below: &str,
    message: impl Into<String>,
) -> Violation {
    violation_at_path(places.below(below), message)
}

pub(in crate::service) fn invalid_offer(violations: Vec<Violation>) -> Error {
    Error::Invalid(Violations::of(violations))
}
