//! Offers: taken one by one, and answered with counter offers, each on its own.

use std::sync::Arc;

use domain::agreement::{Agreement, NegotiationInstance, NegotiationRole, OfferState, OfferTerms, Promise};
use domain::resources::LOCAL;
use planner::{Candidate, ExchangeOffers, Initiate, OfferOrigin, OfferWords, QuoteOffers};
use scheduler::{Interval, Time};
use store::negotiations;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::constraints::CompiledConstraints;
use wsag::{ValuePlaces, Violation};

use crate::codec::kept_offer::{offer_words_to_keep, read_kept_offer, read_kept_offer_by_id};
use crate::idempotency::{earlier_answer, read_kept_answer, text_to_keep};
use crate::negotiations::counter_offers::{
    counter_offer, counter_offer_weights, make_counter_offer, other_counter_sizes, readings_to_counter,
    rejecting_counter_offer, sayable_counter_offers,
};
use crate::negotiations::demands::negotiable_demands;
use crate::negotiations::incoming_offer::{
    CheckedIncomingOffer, IncomingOffer, check_incoming_offer, invalid_offer, violation_below_offer,
};
use crate::negotiations::negotiation::{agreement_replaced_by_negotiation, why_negotiation_is_over};
use crate::negotiations::peer_offers::{end_unused_peer_offers, quote_with_peer_offers, why_travel_ends};
use crate::negotiations::relaxations::offerable_relaxations;
use crate::predictions::predicted_confidence_in_slot;
use crate::request::cluster_policy::note_barred_clusters;
use crate::request::offer::{only_request_of_offer, requests_of_offer};
use crate::views::rejection::Rejection;
use crate::views::worded_offer::WordedOffer;
use crate::{Error, RefusalView, RequestKey, Result, Service};

/// Answers one offer, once under its key. The first one of a negotiation comes with the request that opens it.
pub(crate) async fn answer_offer(
    service: &Service,
    instance: &NegotiationInstance,
    placed: &IncomingOffer,
    key: Option<RequestKey>,
    opening: Option<Initiate>,
) -> Result<Vec<WordedOffer>> {
    if let Some(before) = earlier_answer::<Vec<Uuid>>(service, key.as_ref()).await? {
        return earlier_negotiation_answers(service, &before).await;
    }
    let is_first = opening.is_some();
    let (mut understood, incoming) = match check_incoming_offer(service, instance, placed, is_first).await? {
        Ok(understood) => understood,
        // An offer that cannot be answered in a negotiation opens none.
        Err(violations) if is_first => return Err(invalid_offer(violations)),
        // An offer without a place in the tree is not kept in it, and nor is its answer.
        Err(violations) => {
            let rejection = Rejection::Violations(violations);
            let offer = &placed.offer;
            return Ok(vec![rejecting_counter_offer(
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
        _ => negotiation_answers_to_offer(service, instance, parent, understood, placed).await?,
    };
    store_negotiation_answers(service, instance, placed, (Some(incoming), answers), key, opening).await
}

/// The answers that an offer was given before.
pub(crate) async fn earlier_negotiation_answers(service: &Service, ids: &[Uuid]) -> Result<Vec<WordedOffer>> {
    let mut said = Vec::with_capacity(ids.len());
    for id in ids {
        said.push(read_kept_offer_by_id(service, *id).await?);
    }
    said.retain(|said| said.row.creator == NegotiationRole::Responder);
    Ok(said)
}

/// Answers an offer again, because its earlier answer cannot be accepted any more: with the earlier answers that
/// are still held, or else anew, with a hold where that is asked for; once under its key.
pub(crate) async fn answer_offer_again(
    service: &Service,
    instance: &NegotiationInstance,
    parent: Uuid,
    holds: bool,
    places: ValuePlaces,
    key: Option<RequestKey>,
) -> Result<Vec<WordedOffer>> {
    if let Some(before) = earlier_answer::<Vec<Uuid>>(service, key.as_ref()).await? {
        return earlier_negotiation_answers(service, &before).await;
    }
    let now = service.clock.now();
    let offers = negotiations::offers_of_negotiation(&service.store, instance.id)
        .await?
        .into_iter();
    let held: Vec<_> = offers
        .filter(|(row, _)| row.parent == Some(parent) && row.is_held() && !row.is_expired(now))
        .map(|(row, document)| read_kept_offer(row, &document))
        .collect::<Result<_, _>>()?;
    if !held.is_empty() {
        return Ok(held);
    }
    let WordedOffer { row, words: offer } = read_kept_offer_by_id(service, parent).await?;
    let (offer, demands) = service
        .run_document_work(move |_| {
            let demands = CompiledConstraints::compile(&offer.constraints);
            (offer, Arc::new(demands))
        })
        .await?;
    let understood = CheckedIncomingOffer {
        state: if holds { row.state } else { OfferState::Advisory },
        demands,
        about: OfferOrigin::Negotiation(instance.id),
    };
    let placed = IncomingOffer::new(offer, places);
    let answers = negotiation_answers_to_offer(service, instance, parent, understood, &placed).await?;
    store_negotiation_answers(service, instance, &placed, (None, answers), key, None).await
}

/// The answers to an offer, not stored yet: the possible offers, or one that rejects it.
pub(crate) async fn negotiation_answers_to_offer(
    service: &Service,
    instance: &NegotiationInstance,
    parent: Uuid,
    understood: CheckedIncomingOffer,
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
        return Ok(vec![rejecting_counter_offer(
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
        let tried = answers_to_read_offer(service, here, &understood, placed, asked).await?;
        match tried {
            Ok(answers) => {
                end_unused_peer_offers(service, instance, parent, &answers);
                return Ok(answers);
            }
            // The answer is about the requester's first preference.
            Err(rejection) => drop(rejected.get_or_insert(rejection)),
        }
    }
    end_unused_peer_offers(service, instance, parent, &[]);
    let rejection = rejected.unwrap_or_else(|| {
        let message = "choices between terms that can be read in fewer ways are expected";
        Rejection::Violations(vec![violation_below_offer(places, "/wsag:Terms", message)])
    });
    Ok(vec![rejecting_counter_offer(
        service,
        instance.id,
        Some(parent),
        offer,
        &rejection,
    )])
}

/// The answers to one way to read an offer.
async fn answers_to_read_offer(
    service: &Service,
    (instance, parent, asks_peers): (&NegotiationInstance, Uuid, bool),
    understood: &CheckedIncomingOffer,
    placed: &IncomingOffer,
    asked: AgreementOffer,
) -> Result<Result<Vec<WordedOffer>, Rejection>> {
    let (party, places) = (instance.party.clone(), placed.places.clone());
    let replaced = agreement_replaced_by_negotiation(service, instance).await?;
    let known = placed.request.clone();
    let (asked, places, replaced, read) = service
        .run_work_with_files(move |service| {
            let read = match &known {
                Some(request) => Ok(request.clone()),
                None => requests_of_offer(service, &asked, &places, &party, replaced.as_ref())
                    .and_then(only_request_of_offer),
            };
            (asked.clone(), places.clone(), replaced.clone(), read)
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
    let others = other_counter_sizes(service, &asked);
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
            let open = negotiable_demands(service.templates.capacity(), times, replaced.as_ref());
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
                    job.and_then(|job| predicted_confidence_in_slot(service, &candidate.terms, &party, job));
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
async fn store_negotiation_answers(
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
        answers: answers.iter().map(offer_words_to_keep).collect(),
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
            return earlier_negotiation_answers(service, &read_kept_answer::<Vec<Uuid>>(&before)?).await;
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
    Ok(vec![rejecting_counter_offer(
        service,
        instance.id,
        None,
        offer,
        &rejection,
    )])
}

/// Whether a resource is this machine: of others the shape stays that they hold.
fn is_on_own_nodes(service: &Service, resource: &str) -> bool {
    let resources = service.planner.resources();
    let mut named = resources.iter().filter(|each| each.name == resource);
    named.any(|each| each.kind == LOCAL)
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
        .and_then(only_request_of_offer)
        .map_err(|why| match why {
            Error::Invalid(violations) | Error::NotOffered(violations) => violations.0,
            other => {
                tracing::warn!(error = %other, "a counter offer cannot be read");
                Vec::new()
            }
        })?;
    let mut constraints = request.constraints(terms.slots.is_split());
    if !is_on_own_nodes(service, &terms.resource) {
        constraints.keep_shape();
    }
    Ok(Promise {
        constraints,
        template: request.template,
        job: request.job,
        guarantees: request.guarantees,
    })
}
