//! Offers: taken one by one, and answered with counter offers, each on its own.

use std::sync::Arc;

use domain::agreement::{
    Agreement, NegotiationInstance, NegotiationOffer, OfferCreator, OfferState, OfferTerms, Promise, Shape,
};
use planner::{Candidate, ExchangeOffers, Initiate, OfferOrigin, OfferWords, Quote, QuoteOffers, Suggestion};
use scheduler::{Interval, Time};
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::constraints::CompiledConstraints;
use wsag::guard;
use wsag::negotiations::{
    NegotiationConstraints, NegotiationOffer as OfferDocument, NegotiationOfferState, NegotiationRole,
    negotiate_input,
};
use wsag::{ValuePlaces, Violation, Violations};

use super::counter::{
    make_counter_offer, ranking_weights, readings_of_offer, sayable_counter_offers, sizes_beyond_offer,
};
use super::demands::negotiable_constraints;
use super::negotiation_is_over;
use crate::negotiation::codec::json::TOKEN_MAX;
use crate::negotiation::error::violation_at_path;
use crate::negotiation::idempotency::{read_kept_answer, text_to_keep};
use crate::negotiation::request::offer::{Draft, only_reading_of_offer};
use crate::negotiation::views::offer::{WordedOffer, stored_offer_state};
use crate::negotiation::views::rejection::Rejection;
use crate::negotiation::{Error, RefusalView, RequestKey, Result, Scope, Service};

/// An offer, and where its maker has it.
pub(in crate::negotiation) struct IncomingOffer {
    pub(in crate::negotiation) offer: OfferDocument,
    pub(in crate::negotiation) places: ValuePlaces,
    /// The request that it makes, where that was found as it was read and it leaves no choice.
    pub(in crate::negotiation) draft: Option<Draft>,
    /// How many possible offers its maker wants to see at most.
    pub(in crate::negotiation) answers_max: usize,
}

impl IncomingOffer {
    /// An offer whose request is not found yet. It is given an id where its maker has given it none.
    pub(in crate::negotiation) fn new(mut offer: OfferDocument, places: ValuePlaces) -> Self {
        offer.offer_id.get_or_insert_with(|| Uuid::now_v7().to_string());
        Self {
            offer,
            places,
            draft: None,
            answers_max: usize::MAX,
        }
    }
}

/// How an offer comes to the table.
pub(in crate::negotiation) struct Arrival {
    /// The key that it has one effect under.
    pub(in crate::negotiation) key: Option<RequestKey>,
    /// The request that opens its negotiation with it.
    pub(in crate::negotiation) opening: Option<Initiate>,
}

/// A checked offer of the requester.
pub(in crate::negotiation) struct CheckedOffer {
    state: OfferState,
    demands: Arc<CompiledConstraints>,
    about: OfferOrigin,
}

impl CheckedOffer {
    /// A question to which the answers are not held, in a negotiation that is not opened.
    pub(in crate::negotiation) fn of_question(instance: &NegotiationInstance) -> Self {
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
    pub(in crate::negotiation) fn of_provider(
        suggestion: Suggestion,
        demands: &NegotiationConstraints,
    ) -> Self {
        Self {
            state: OfferState::Solicited,
            demands: Arc::new(CompiledConstraints::compile(demands)),
            about: OfferOrigin::Proposal(Box::new(suggestion)),
        }
    }
}

impl Service {
    /// Answers one offer, once under its key.
    pub(in crate::negotiation) async fn answer_offer(
        &self,
        instance: &NegotiationInstance,
        placed: IncomingOffer,
        arrival: Arrival,
    ) -> Result<Vec<WordedOffer>> {
        if let Some(before) = self.earlier_answer::<Vec<Uuid>>(arrival.key.as_ref()).await? {
            return self.earlier_answers(&before).await;
        }
        let is_first = arrival.opening.is_some();
        let (mut understood, incoming) = match self.understand(instance, &placed, is_first).await? {
            Ok(understood) => understood,
            // An offer that cannot be answered in a negotiation opens none.
            Err(violations) if is_first => return Err(invalid_offer(violations)),
            // An offer without a place in the tree is not kept in it, and nor is its answer.
            Err(violations) => {
                let rejection = Rejection::Violations(violations);
                let offer = &placed.offer;
                return Ok(vec![self.rejection_of_offer(
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
            _ => self.counter_offers(instance, parent, understood, &placed).await?,
        };
        self.bargain(instance, &placed, Some(incoming), answers, arrival)
            .await
    }

    /// The answers that an offer was given before.
    pub(in crate::negotiation) async fn earlier_answers(&self, ids: &[Uuid]) -> Result<Vec<WordedOffer>> {
        let mut said = Vec::with_capacity(ids.len());
        for id in ids {
            said.push(self.worded_offer(*id).await?);
        }
        said.retain(|said| said.row.creator == OfferCreator::Responder);
        Ok(said)
    }

    /// A stored offer, with its words.
    pub(in crate::negotiation) async fn worded_offer(&self, id: Uuid) -> Result<WordedOffer> {
        let (row, document) = self.store.offer(id).await?.ok_or(Error::NotFound)?;
        WordedOffer::read(row, &document)
    }

    /// Answers an offer again, because its earlier answer cannot be accepted any more: with the earlier answers that
    /// are still held, or else anew, with a hold where that is asked for; once under its key.
    pub(in crate::negotiation) async fn answer_again(
        &self,
        instance: &NegotiationInstance,
        parent: Uuid,
        holds: bool,
        places: ValuePlaces,
        key: Option<RequestKey>,
    ) -> Result<Vec<WordedOffer>> {
        if let Some(before) = self.earlier_answer::<Vec<Uuid>>(key.as_ref()).await? {
            return self.earlier_answers(&before).await;
        }
        let now = self.clock.now();
        let offers = self.store.offers(instance.id).await?.into_iter();
        let held: Vec<_> = offers
            .filter(|(row, _)| row.parent == Some(parent) && row.is_held() && !row.is_expired(now))
            .map(|(row, document)| WordedOffer::read(row, &document))
            .collect::<Result<_, _>>()?;
        if !held.is_empty() {
            return Ok(held);
        }
        let WordedOffer { row, words: offer } = self.worded_offer(parent).await?;
        let (offer, demands) = self
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
        let answers = self.counter_offers(instance, parent, understood, &placed).await?;
        let arrival = Arrival { key, opening: None };
        self.bargain(instance, &placed, None, answers, arrival).await
    }

    /// The answers to an offer, not stored yet: the possible offers, or one that rejects it.
    pub(in crate::negotiation) async fn counter_offers(
        &self,
        instance: &NegotiationInstance,
        parent: Uuid,
        understood: CheckedOffer,
        placed: &IncomingOffer,
    ) -> Result<Vec<WordedOffer>> {
        let IncomingOffer { offer, places, .. } = placed;
        if let Some(why) = offer
            .offer_context
            .travel()
            .and_then(|travel| self.why_travel_ends(&travel, instance))
        {
            let below = "/wsag-neg:NegotiationOfferContext/bsp:Travel";
            let rejection = Rejection::Violations(vec![violation_below_offer(places, below, why)]);
            return Ok(vec![self.rejection_of_offer(
                instance.id,
                Some(parent),
                offer,
                &rejection,
            )]);
        }
        let mut rejected = None;
        for (number, asked) in readings_of_offer(offer).into_iter().enumerate() {
            // Peers are asked for the first preference only: each question takes its time.
            let asks_peers = number == 0;
            let tried = self
                .try_reading((instance, parent, asks_peers), &understood, placed, asked)
                .await?;
            match tried {
                Ok(answers) => {
                    self.end_unused_at_peers(instance, parent, &answers);
                    return Ok(answers);
                }
                // The answer is about the requester's first preference.
                Err(rejection) => drop(rejected.get_or_insert(rejection)),
            }
        }
        self.end_unused_at_peers(instance, parent, &[]);
        let rejection = rejected.unwrap_or_else(|| {
            let message = "choices between terms that can be read in fewer ways are expected";
            Rejection::Violations(vec![violation_below_offer(places, "/wsag:Terms", message)])
        });
        Ok(vec![self.rejection_of_offer(
            instance.id,
            Some(parent),
            offer,
            &rejection,
        )])
    }

    /// The sizes beyond those of an offer that its template allows.
    fn other_sizes(&self, asked: &AgreementOffer) -> Option<Vec<Shape>> {
        let offered = self.templates.get(asked.context.template_id.as_deref()?)?;
        sizes_beyond_offer(asked, &offered, self.templates.capacity())
    }

    /// The answers to one way to read an offer.
    async fn try_reading(
        &self,
        (instance, parent, asks_peers): (&NegotiationInstance, Uuid, bool),
        understood: &CheckedOffer,
        placed: &IncomingOffer,
        asked: AgreementOffer,
    ) -> Result<Result<Vec<WordedOffer>, Rejection>> {
        let (party, places) = (instance.party.clone(), placed.places.clone());
        let replaced = self.replaced(instance).await?;
        let known = placed.draft.clone();
        let (asked, places, replaced, drafted) = self
            .run_work_with_files(move |this| {
                let drafted = match known {
                    Some(draft) => Ok(draft),
                    None => this
                        .drafts_of(&asked, &places, &party, replaced.as_ref())
                        .and_then(only_reading_of_offer),
                };
                (asked, places, replaced, drafted)
            })
            .await?;
        let mut draft = match drafted {
            Ok(draft) => draft,
            Err(Error::Invalid(violations) | Error::NotOffered(violations)) => {
                return Ok(Err(Rejection::Violations(violations.0)));
            }
            Err(why) => return Err(why),
        };
        let job = draft.proposal.job.clone();
        let weights = ranking_weights(&asked);
        let others = self.other_sizes(&asked);
        self.note_barred_clusters(&mut draft.proposal, others.as_deref().unwrap_or_default())
            .await;
        let barred = draft.proposal.barred.clone();
        let proposal = draft.proposal;
        let ask = QuoteOffers {
            about: understood.about.clone(),
            proposal: proposal.clone(),
            others,
            weights,
        };
        let window = draft.window;
        let travel = placed.offer.offer_context.travel();
        let peers = (asks_peers && understood.may_ask_peers()).then_some((parent, travel.as_ref()));
        let wanted = (&asked, &proposal, window);
        let quote = Box::pin(self.quote_request(instance, ask, peers, wanted, replaced.as_ref())).await?;
        let state = match understood.state {
            OfferState::Advisory => OfferState::Advisory,
            _ => OfferState::Acceptable,
        };
        let (id, party) = (instance.id, instance.party.clone());
        let (offer, demands) = (placed.offer.clone(), Arc::clone(&understood.demands));
        let answers_max = placed.answers_max;
        self.run_document_work(move |this| {
            let template = asked.context.template_id.as_deref().unwrap_or_default();
            let Some(offered) = this.templates.get(template) else {
                return Err(Rejection::Violations(Vec::new()));
            };
            let times = (this.clock.now(), quote.latest);
            let open = negotiable_constraints(this.templates.capacity(), times, replaced.as_ref());
            let say = |candidate: &Candidate| {
                make_counter_offer(&asked, &places, &offered, &demands, &candidate.terms)
            };
            let (said, mut broken) = sayable_counter_offers(quote.candidates, weights, say);
            let mut counters = Vec::with_capacity(said.len());
            for (counter, mut candidate) in said {
                if state == OfferState::Acceptable {
                    let (offer, terms) = (&counter.offer, &candidate.terms);
                    match this.promise_of(offer, &places, terms, &party, replaced.as_ref()) {
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
                    job.and_then(|job| this.confidence_in(&candidate.terms, &party, job));
                counters.push((counter, candidate));
            }
            if counters.is_empty() {
                return Err(match quote.refusal {
                    Some(refusal) => {
                        let refusal = this.offerable(RefusalView::of(&refusal, window), &asked);
                        Rejection::Refusal(Box::new(refusal))
                    }
                    None => Rejection::Violations(broken),
                });
            }
            // In the planner's order where they meet the same.
            counters.sort_by_key(|(counter, _)| counter.unmet);
            counters.truncate(answers_max);
            let put = |(counter, candidate)| {
                let mut answer = this.counter_offer(id, (parent, &offer), counter, candidate, state);
                answer.words.constraints = open.clone();
                answer
            };
            Ok(counters.into_iter().map(put).collect())
        })
        .await
    }

    /// What the own domain could offer.
    pub(super) async fn quote_here(&self, instance: &NegotiationInstance, ask: QuoteOffers) -> Result<Quote> {
        let is_open = !matches!(ask.about, OfferOrigin::Opening(_));
        match self.send(ask).await {
            Err(planner::Error::NotFound) if is_open => Err(self.why_over(instance).await),
            quote => Ok(quote?),
        }
    }

    /// Stores an offer and its answers. An offer that cannot be stored because the tree has changed meanwhile is
    /// rejected.
    async fn bargain(
        &self,
        instance: &NegotiationInstance,
        IncomingOffer { offer, places, .. }: &IncomingOffer,
        incoming: Option<OfferWords>,
        answers: Vec<WordedOffer>,
        Arrival { key, opening }: Arrival,
    ) -> Result<Vec<WordedOffer>> {
        let is_opened = opening.is_none();
        let state = offer.offer_context.state;
        let bargain = ExchangeOffers {
            negotiation: instance.id,
            opening,
            incoming,
            answers: answers.iter().map(WordedOffer::to_store).collect(),
            otherwise: match state {
                NegotiationOfferState::Solicited => OfferState::Rejected,
                _ => OfferState::Advisory,
            },
            idempotency: key.map(|key| key.kept(text_to_keep)),
        };
        let rejection = match self.send(bargain).await {
            Ok(stored) => {
                let said = stored.into_iter().zip(answers);
                let said = said.map(|(row, answer)| WordedOffer { row, ..answer });
                return Ok(said.collect());
            }
            Err(planner::Error::NotFound) if is_opened => return Err(self.why_over(instance).await),
            Err(planner::Error::Repeated(before)) => {
                return self
                    .earlier_answers(&read_kept_answer::<Vec<Uuid>>(&before)?)
                    .await;
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
        Ok(vec![self.rejection_of_offer(
            instance.id,
            None,
            offer,
            &rejection,
        )])
    }

    /// Checks an offer against the rules of the tree. The first offer finds the tree empty. The result has the other offers
    /// that are stored with it.
    pub(in crate::negotiation) async fn understand(
        &self,
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
        if context.creator != NegotiationRole::NegotiationInitiator {
            let message = "NegotiationInitiator is expected: counter offers are the service's to make";
            wrong("Creator", message);
        }
        if let Some(at) = context.expiration_time
            && at.floor() <= self.clock.now().seconds()
        {
            wrong("ExpirationTime", "an instant in the future is expected");
        }
        let to = context.counter_offer_to.as_str();
        let answered = if is_first {
            None
        } else {
            self.store.offer_named(instance.id, to).await?
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
            None if names_template(offer, to) => None,
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
        let (demands, checked, document) = self
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
        let state = stored_offer_state(context.state);
        let understood = CheckedOffer {
            state,
            demands,
            about: OfferOrigin::Negotiation(instance.id),
        };
        let row = NegotiationOffer {
            name,
            expires: context.expiration_time.map(|at| Time(at.floor())),
            ..self.new_row(instance.id, parent, OfferCreator::Initiator, state)
        };
        Ok(Ok((understood, OfferWords { offer: row, document })))
    }

    /// The promise of a counter offer beside its place and its price, as it is understood now; or the faults that keep it from
    /// being offered.
    fn promise_of(
        &self,
        offer: &AgreementOffer,
        places: &ValuePlaces,
        terms: &OfferTerms,
        party: &str,
        replaced: Option<&Agreement>,
    ) -> Result<Promise, Vec<Violation>> {
        let drafts = self.drafts_of(offer, places, party, replaced);
        let draft = drafts.and_then(only_reading_of_offer).map_err(|why| match why {
            Error::Invalid(violations) | Error::NotOffered(violations) => violations.0,
            other => {
                tracing::warn!(error = %other, "a counter offer cannot be read");
                Vec::new()
            }
        })?;
        let constraints = draft.proposal.constraints(terms.slots.is_split());
        Ok(Promise {
            template: draft.proposal.template,
            constraints,
            job: draft.proposal.job,
            guarantees: draft.proposal.guarantees,
        })
    }

    /// Why a negotiation is no longer on the planner's table.
    pub(in crate::negotiation) async fn why_over(&self, before: &NegotiationInstance) -> Error {
        match self.visible_negotiation(&Scope::All, before.id).await {
            Ok(instance) => negotiation_is_over(&instance),
            Err(why) => why,
        }
    }
}

/// Whether a first offer names its own template as the document that it answers, in one of the three forms.
fn names_template(offer: &OfferDocument, to: &str) -> bool {
    let id = offer.context.template_id.as_deref().unwrap_or_default();
    let name = offer.context.template_name.as_deref().unwrap_or_default();
    !to.is_empty() && (to == id || to == name || to == format!("{id}-{name}"))
}

/// A fault at a path below an offer.
pub(in crate::negotiation) fn violation_below_offer(
    places: &ValuePlaces,
    below: &str,
    message: impl Into<String>,
) -> Violation {
    violation_at_path(places.below(below), message)
}

pub(in crate::negotiation) fn invalid_offer(violations: Vec<Violation>) -> Error {
    Error::Invalid(Violations::of(violations))
}
