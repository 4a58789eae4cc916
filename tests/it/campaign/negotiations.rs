//! Offers, counter offers, acceptances and renegotiations in random states. A held offer can always be accepted, once and in time, and
//! nothing else can.

use std::collections::BTreeSet;

use domain::agreement::{NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState, Shape};
use planner::{
    Accept, EndNegotiation, Error, ExchangeOffers, Initiate, ListRunning, OfferLoss, OfferOrigin, OfferWords,
    Propose, Quote, QuoteOffers, Request, Suggestion, Weights, rank_best_candidates,
};
use store::negotiations;
use uuid::Uuid;

use super::{Aim, Campaign};

impl Campaign<'_> {
    /// An offer without values yet.
    fn offer(
        &self,
        negotiation: Uuid,
        parent: Option<Uuid>,
        creator: NegotiationRole,
        state: OfferState,
    ) -> NegotiationOffer {
        let id = Uuid::now_v7();
        NegotiationOffer {
            id,
            negotiation,
            name: id.to_string(),
            parent,
            creator,
            state,
            created: self.domain.clock.micros(),
            expires: None,
            terms: None,
            refusal: None,
            held: None,
            released: None,
            agreement: None,
        }
    }

    /// The best of a quote as offers that answer another one.
    fn exchange(&self, incoming: NegotiationOffer, quote: Option<&Quote>) -> ExchangeOffers {
        let best = quote.map(|quote| rank_best_candidates(&quote.candidates, Weights::default()));
        let (id, responder) = (incoming.id, NegotiationRole::Responder);
        let answers = best.into_iter().flatten().map(|candidate| OfferWords {
            offer: NegotiationOffer {
                expires: Some(candidate.expires),
                terms: Some(candidate.terms),
                ..self.offer(incoming.negotiation, Some(id), responder, OfferState::Acceptable)
            },
            document: "<offer/>".into(),
        });
        ExchangeOffers {
            opening: None,
            negotiation: incoming.negotiation,
            answers: answers.collect(),
            incoming: Some(OfferWords {
                offer: incoming,
                document: "<offer/>".into(),
            }),
            otherwise: OfferState::Rejected,
            idempotency: None,
        }
    }

    fn learn(&mut self, offers: Vec<NegotiationOffer>) {
        let held = offers.iter().filter(|offer| offer.is_held());
        self.told.standing.extend(held.map(|held| held.id));
        self.told.offers.extend(offers);
    }

    /// The provider makes offers of its planner's suggestions.
    pub(super) async fn propose(&mut self) {
        // A suggestion comes with the answers, and is there before the next one.
        self.domain.planner.send(ListRunning).await.expect("it answers");
        while let Ok(suggestion) = self.suggestions.try_recv() {
            self.propose_what(suggestion).await;
        }
    }

    async fn propose_what(&mut self, suggestion: Suggestion) {
        let about = suggestion.agreement.clone();
        let negotiation = NegotiationInstance {
            id: Uuid::now_v7(),
            party: about.party.clone(),
            agreement: Some(about.id),
            created: self.domain.clock.micros(),
            expires: self.now() + 100,
            ended: None,
            proposed: Some(suggestion.reason),
        };
        let mut asked = self.negotiable();
        asked.shapes = vec![Shape {
            nodes: about.nodes(),
            duration: about.duration,
        }];
        (asked.ready, asked.deadline) = (Some(about.ready), Some(about.deadline));
        let ask = QuoteOffers {
            about: OfferOrigin::Proposal(Box::new(suggestion)),
            proposal: asked,
            others: None,
            weights: Weights::default(),
        };
        let quote = match self.domain.planner.send(ask).await {
            Ok(quote) if !quote.candidates.is_empty() => quote,
            Ok(_)
            | Err(
                Error::NotFound | Error::Lost(OfferLoss::Replaced) | Error::Conflict(_) | Error::Unavailable,
            ) => {
                return;
            }
            Err(why) => panic!("{why}"),
        };
        let root = self.offer(
            negotiation.id,
            None,
            NegotiationRole::Responder,
            OfferState::Advisory,
        );
        let proposed = Propose {
            offers: self.exchange(root, Some(&quote)),
            document: "<opening/>".into(),
            negotiation: negotiation.clone(),
        };
        match self.domain.planner.send(proposed).await {
            Ok(offers) => {
                self.saw(Aim::Proposed, true);
                self.told.negotiations.push(negotiation);
                self.learn(offers);
            }
            Err(Error::NotFound | Error::Stale(_)) => {}
            Err(why) => panic!("{why}"),
        }
    }

    /// A party opens a negotiation about something new, or about one of its agreements.
    pub(super) async fn initiate(&mut self) {
        let about = self.aim == Aim::Changed || self.random.below(2) == 0;
        let ids: Vec<Uuid> = self.told.accepted.keys().copied().collect();
        let agreement = self.random.choose(&ids).copied().filter(|_| about);
        let party = agreement.map_or("physics", |id| &self.told.accepted[&id].party);
        let instance = NegotiationInstance {
            id: Uuid::now_v7(),
            party: party.into(),
            agreement,
            created: self.domain.clock.micros(),
            expires: self.now() + 1 + self.random.seconds(400),
            ended: None,
            proposed: None,
        };
        let initiation = Initiate {
            negotiation: instance,
            document: "<opening/>".into(),
            idempotency: None,
        };
        match self.domain.planner.send(initiation).await {
            Ok(opened) => self.told.negotiations.push(opened),
            Err(Error::NotFound | Error::Refused(_)) => {}
            // It may have got a piece more meanwhile.
            Err(Error::Conflict(why)) if why.contains("pieces") => {}
            Err(why) => panic!("{why}"),
        }
    }

    /// An offer of a party in a negotiation, and the answers.
    pub(super) async fn bargain(&mut self) {
        let Some(negotiation) = self.random.choose(&self.told.negotiations).cloned() else {
            return;
        };
        let mut asked = Request {
            party: negotiation.party.clone(),
            ..self.negotiable()
        };
        let replaced = negotiation.agreement.and_then(|id| self.told.accepted.get(&id));
        if let Some(old) = replaced.filter(|_| self.random.below(3) > 0) {
            // As a party would ask for running work to end at another time.
            asked.shapes[0].nodes = old.nodes();
            asked.job.clone_from(&old.job);
            (asked.ready, asked.deadline) = (None, None);
        }
        let other = asked.shapes.first().map(|shape| Shape {
            nodes: (shape.nodes / 2).max(1),
            ..*shape
        });
        let ask = QuoteOffers {
            about: OfferOrigin::Negotiation(negotiation.id),
            proposal: asked,
            others: other.map(|shape| vec![shape]),
            weights: Weights::default(),
        };
        let quote = match self.domain.planner.send(ask).await {
            Ok(quote) => quote,
            // Until it is told that a piece is over, it is not known where the next ones may lie.
            Err(Error::Unavailable) if negotiation.agreement.is_some() => return,
            // Work that has begun keeps its size and its job.
            Err(
                Error::NotFound | Error::Lost(OfferLoss::Replaced) | Error::Conflict(_) | Error::Stale(_),
            ) => {
                return;
            }
            Err(why) => panic!("{why}"),
        };
        assert_eq!(quote.candidates.is_empty(), quote.refusal.is_some());
        let of_it = |offer: &&NegotiationOffer| offer.negotiation == negotiation.id;
        let earlier: Vec<Uuid> = self
            .told
            .offers
            .iter()
            .filter(of_it)
            .map(|offer| offer.id)
            .collect();
        let answers_one = self.random.below(3) == 0;
        let parent = self.random.choose(&earlier).copied().filter(|_| answers_one);
        let solicited = self.offer(
            negotiation.id,
            parent,
            NegotiationRole::Initiator,
            OfferState::Solicited,
        );
        let bargain = self.exchange(solicited, Some(&quote));
        match self.domain.planner.send(bargain).await {
            Ok(answered) => {
                for one in &answered {
                    assert_eq!(one.is_held(), one.state == OfferState::Acceptable, "{one:?}");
                }
                self.learn(answered);
            }
            Err(Error::NotFound | Error::Stale(_) | Error::Refused(_)) => {}
            Err(why) => panic!("{why}"),
        }
    }

    pub(super) async fn accept(&mut self) {
        let seed = self.seed;
        let Some(offer) = self.random.choose(&self.told.offers).cloned() else {
            return;
        };
        let mut negotiations = self.told.negotiations.iter();
        let negotiation = negotiations.find(|negotiation| negotiation.id == offer.negotiation);
        let negotiation = negotiation.expect("it was opened").clone();
        let terms = offer.terms.as_ref();
        let cut = terms.is_some_and(|terms| !terms.slots.pieces().is_empty());
        let mut words = self.negotiable();
        // An offer in pieces runs something.
        while cut && words.job.is_none() {
            words = self.negotiable();
        }
        let acceptance = Accept {
            negotiation: offer.negotiation,
            offer: offer.id,
            proposal: Request {
                party: negotiation.party.clone(),
                ..words
            },
            barred: None,
        };
        let now = self.now();
        let in_time = offer.expires.is_some_and(|at| now < at) && now < negotiation.expires;
        let stood = self.told.standing.contains(&offer.id);
        match self.domain.planner.send(acceptance).await {
            Ok(accepted) => {
                assert!(stood && in_time, "seed {seed}: it did not stand any more");
                let (agreement, terms) = (accepted.agreement, offer.terms.as_ref().expect("it could be had"));
                assert_eq!(
                    (agreement.nodes(), agreement.duration, agreement.window()),
                    (terms.nodes(), terms.duration(), terms.window()),
                    "seed {seed}: it is the offered one"
                );
                assert_eq!(agreement.slots.pieces(), terms.slots.pieces(), "seed {seed}");
                let began = agreement
                    .origin
                    .map_or(terms.placement().start.max(now), |_| terms.placement().start);
                assert_eq!(agreement.placement().start, began, "seed {seed}");
                self.saw(Aim::Accepted, true);
                self.saw(Aim::Changed, negotiation.agreement.is_some());
                self.told.made.insert(offer.id, agreement.id);
                self.told.accepted.insert(agreement.id, agreement);
                self.forget_siblings(&offer, &negotiation);
            }
            Err(Error::Lost(why)) => {
                let replaces = negotiation.agreement.is_some();
                // The agreement that it was to replace may have begun, or be over.
                assert!(
                    !stood || !in_time || replaces,
                    "seed {seed}: it stood, and {why:?}"
                );
                assert_eq!(
                    self.told.made.contains_key(&offer.id) && now < negotiation.expires,
                    why == OfferLoss::Accepted,
                    "seed {seed}: {why:?}"
                );
            }
            Err(Error::Unavailable) if negotiation.agreement.is_some() => {}
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }

    /// With an accepted offer its siblings are released, and so are offers to replace the same agreement.
    fn forget_siblings(&mut self, accepted: &NegotiationOffer, negotiation: &NegotiationInstance) {
        let rivals = self.told.negotiations.iter().filter(|one_negotiation| {
            one_negotiation.agreement.is_some() && one_negotiation.agreement == negotiation.agreement
        });
        let rivals: BTreeSet<Uuid> = rivals.map(|rival| rival.id).collect();
        let released = |offer: &&NegotiationOffer| {
            offer.parent == accepted.parent || rivals.contains(&offer.negotiation)
        };
        for offer in self.told.offers.iter().filter(released) {
            self.told.standing.remove(&offer.id);
        }
    }

    pub(super) async fn reject(&mut self) {
        let Some(offer) = self.random.choose(&self.told.offers).cloned() else {
            return;
        };
        let rejected = self.offer(
            offer.negotiation,
            Some(offer.id),
            NegotiationRole::Initiator,
            OfferState::Rejected,
        );
        let answer = self.domain.planner.send(self.exchange(rejected, None)).await;
        match answer {
            Ok(answered) => assert!(answered.is_empty()),
            Err(Error::NotFound | Error::Stale(_) | Error::Refused(_)) => return,
            Err(why) => panic!("{why}"),
        }
        // And the offers that came after it.
        let stored = negotiations::offers_of_negotiation(&self.domain.store, offer.negotiation).await;
        let stored = stored.expect("they can be read");
        let mut gone = BTreeSet::from([offer.id]);
        loop {
            let below = stored
                .iter()
                .filter(|(stored, _)| stored.parent.is_some_and(|parent| gone.contains(&parent)));
            let before = gone.len();
            gone.extend(below.map(|(below, _)| below.id).collect::<Vec<_>>());
            if gone.len() == before {
                break;
            }
        }
        self.told.standing.retain(|standing| !gone.contains(standing));
    }

    /// A party ends its negotiation; another party cannot.
    pub(super) async fn end_negotiation(&mut self) {
        let Some(negotiation) = self.random.choose(&self.told.negotiations).cloned() else {
            return;
        };
        let end = |party: &str| EndNegotiation {
            id: negotiation.id,
            party: Some(party.to_owned()),
            idempotency: None,
        };
        let planner = &self.domain.planner;
        let foreign = planner.send(end("chemistry")).await;
        assert!(matches!(foreign, Err(Error::NotFound)), "{foreign:?}");
        match planner.send(end(&negotiation.party)).await {
            Ok(_) => {
                let of_it = |offer: &NegotiationOffer| offer.negotiation == negotiation.id;
                for offer in self.told.offers.iter().filter(|offer| of_it(offer)) {
                    self.told.standing.remove(&offer.id);
                }
                self.told.offers.retain(|offer| !of_it(offer));
            }
            Err(Error::NotFound) => {}
            Err(why) => panic!("{why}"),
        }
    }
}
