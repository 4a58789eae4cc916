//! What parties and the provider offer each other in a story: about something new, in place of an agreement, and by the provider.

use domain::agreement::{
    Agreement, NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState, Shape,
};
use domain::clock::MICROS_PER_SECOND;
use uuid::Uuid;

use super::Story;
use super::trace::{agreement_in_words, offer_in_words, quote_in_words};
use crate::{
    Accept, EndNegotiation, ExchangeOffers, Initiate, OfferOrigin, OfferWords, Propose, Quote, QuoteOffers,
    Request, Suggestion, Weights, rank_best_candidates,
};

fn offers_in_words(offers: &[NegotiationOffer]) -> String {
    let words = offers.iter().map(offer_in_words);
    words.collect::<Vec<_>>().join("; ")
}

impl Story {
    /// A step of a negotiation about something new, or the end of one.
    pub(super) fn negotiate(&mut self) {
        match self.random.below(8) {
            0 => self.open(None),
            1 => self.end_negotiation(),
            2 => self.reject(),
            3 | 4 => self.accept(),
            _ => {
                if self.negotiations.is_empty() {
                    self.open(None);
                }
                self.bargain();
            }
        }
    }

    /// A change of an agreement is negotiated, and often made.
    pub(super) fn renegotiate(&mut self) {
        let about = self.any_agreement();
        self.open(about);
        self.bargain();
        if self.random.below(2) == 0 {
            self.accept();
        }
    }

    fn instance(&mut self, about: Option<&Agreement>) -> NegotiationInstance {
        let lasts = 1 + self.random.seconds(400);
        NegotiationInstance {
            id: Uuid::now_v7(),
            party: about.map_or("physics", |agreement| &agreement.party).into(),
            agreement: about.map(|agreement| agreement.id),
            created: self.domain.now * MICROS_PER_SECOND,
            expires: scheduler::Time(self.domain.now + lasts),
            ended: None,
            proposed: None,
        }
    }

    fn open(&mut self, about: Option<Uuid>) {
        let about = about.and_then(|id| self.domain.known.get(&id).cloned());
        let negotiation = self.instance(about.as_ref());
        let asked = match &about {
            Some(agreement) => format!("open about {}", agreement.id),
            None => "open".to_owned(),
        };
        let initiation = Initiate {
            negotiation,
            document: "<opening/>".into(),
            idempotency: None,
        };
        let opened = self.ask(
            &asked,
            |decider| decider.decide(initiation),
            |opened| opened.id.to_string(),
        );
        self.negotiations.extend(opened);
    }

    /// An offer without terms yet.
    fn offer(
        &self,
        negotiation: Uuid,
        parent: Option<Uuid>,
        (creator, state): (NegotiationRole, OfferState),
    ) -> NegotiationOffer {
        let id = Uuid::now_v7();
        NegotiationOffer {
            id,
            negotiation,
            name: id.to_string(),
            parent,
            creator,
            state,
            created: self.domain.now * MICROS_PER_SECOND,
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
        let says = (NegotiationRole::Responder, OfferState::Acceptable);
        let answers = best.into_iter().flatten().map(|candidate| OfferWords {
            offer: NegotiationOffer {
                expires: Some(candidate.expires),
                terms: Some(candidate.terms),
                ..self.offer(incoming.negotiation, Some(incoming.id), says)
            },
            document: "<offer/>".into(),
        });
        ExchangeOffers {
            opening: None,
            negotiation: incoming.negotiation,
            answers: answers.collect(),
            otherwise: OfferState::Rejected,
            idempotency: None,
            incoming: Some(OfferWords {
                offer: incoming,
                document: "<offer/>".into(),
            }),
        }
    }

    /// A request in a negotiation, where an offer and the words that accept it are of one template.
    fn negotiable(&mut self, party: &str) -> Request {
        Request {
            template: "advance-reservation".into(),
            fix_at_ppm: None,
            ..self.request(party)
        }
    }

    fn quote(&mut self, about: OfferOrigin, request: Request) -> Option<Quote> {
        let other = request.shapes.first().map(|shape| Shape {
            nodes: (shape.nodes / 2).max(1),
            ..*shape
        });
        let ask = QuoteOffers {
            about,
            proposal: request,
            others: other.map(|shape| vec![shape]),
            weights: Weights::default(),
        };
        self.ask("quote", |decider| decider.decide(ask.clone()), quote_in_words)
    }

    /// An offer of a party in the last negotiation or in another one, and the answers.
    fn bargain(&mut self) {
        let last = self.negotiations.last().cloned();
        let other = self.random.choose(&self.negotiations).cloned();
        let of_last = self.random.below(2) == 0;
        let chosen = if of_last { last } else { other };
        let Some(negotiation) = chosen else { return };
        let mut asked = self.negotiable(&negotiation.party);
        let replaced = negotiation.agreement;
        let replaced = replaced.and_then(|id| self.domain.known.get(&id).cloned());
        if let Some(old) = replaced.filter(|_| self.random.below(3) > 0) {
            // As a party would ask for running work to end at another time.
            asked.shapes.truncate(1);
            asked.shapes[0].nodes = old.nodes();
            asked.job.clone_from(&old.job);
            (asked.ready, asked.deadline) = (None, None);
        }
        let Some(quote) = self.quote(OfferOrigin::Negotiation(negotiation.id), asked) else {
            return;
        };
        let said = (NegotiationRole::Initiator, OfferState::Solicited);
        let bargain = self.exchange(self.offer(negotiation.id, None, said), Some(&quote));
        let answered = self.ask(
            &format!("bargain in {}", negotiation.id),
            |decider| decider.decide(bargain),
            |offers| offers_in_words(offers),
        );
        self.offers.extend(answered.into_iter().flatten());
    }

    /// One of the last offers that were made.
    fn any_offer(&mut self) -> Option<NegotiationOffer> {
        let late = self.offers.len().saturating_sub(6);
        self.random.choose(&self.offers[late..]).cloned()
    }

    fn accept(&mut self) {
        let Some(offer) = self.any_offer() else { return };
        let mut negotiations = self.negotiations.iter();
        let negotiation = negotiations.find(|negotiation| negotiation.id == offer.negotiation);
        let party = negotiation.unwrap().party.clone();
        let cut = offer.terms.is_some_and(|terms| terms.slots.is_split());
        let mut proposal = self.negotiable(&party);
        // An offer in pieces runs something.
        while cut && proposal.job.is_none() {
            proposal = self.negotiable(&party);
        }
        let acceptance = Accept {
            negotiation: offer.negotiation,
            offer: offer.id,
            proposal,
            barred: None,
        };
        self.ask(
            &format!("accept {}", offer.id),
            |decider| decider.decide(acceptance),
            |accepted| agreement_in_words(&accepted.agreement),
        );
    }

    fn reject(&mut self) {
        let Some(offer) = self.any_offer() else { return };
        let said = (NegotiationRole::Initiator, OfferState::Rejected);
        let rejected = self.offer(offer.negotiation, Some(offer.id), said);
        let bargain = self.exchange(rejected, None);
        self.ask(
            &format!("reject {}", offer.id),
            |decider| decider.decide(bargain),
            |offers| offers_in_words(offers),
        );
    }

    fn end_negotiation(&mut self) {
        let Some(negotiation) = self.random.choose(&self.negotiations).cloned() else {
            return;
        };
        let end = EndNegotiation {
            id: negotiation.id,
            party: Some(negotiation.party),
            idempotency: None,
        };
        self.ask(
            &format!("end negotiation {}", negotiation.id),
            |decider| decider.decide(end),
            |ended| format!("{:?}", ended.ended),
        );
    }

    /// The provider makes offers of its planner's suggestions.
    pub(super) fn propose(&mut self) {
        for suggestion in self.domain.state.table.take_suggestions() {
            self.propose_what(suggestion);
        }
    }

    fn propose_what(&mut self, suggestion: Suggestion) {
        let about = suggestion.agreement.clone();
        let negotiation = NegotiationInstance {
            proposed: Some(suggestion.reason),
            ..self.instance(Some(&about))
        };
        let mut asked = self.negotiable(&about.party);
        asked.shapes = vec![Shape {
            nodes: about.nodes(),
            duration: about.duration,
        }];
        (asked.ready, asked.deadline) = (Some(about.ready), Some(about.deadline));
        let quote = self.quote(OfferOrigin::Proposal(Box::new(suggestion)), asked);
        let Some(quote) = quote.filter(|quote| !quote.candidates.is_empty()) else {
            return;
        };
        let said = (NegotiationRole::Responder, OfferState::Advisory);
        let proposed = Propose {
            offers: self.exchange(self.offer(negotiation.id, None, said), Some(&quote)),
            document: "<opening/>".into(),
            negotiation: negotiation.clone(),
        };
        let made = self.ask(
            &format!("propose instead of {}", about.id),
            |decider| decider.decide(proposed),
            |offers| offers_in_words(offers),
        );
        if let Some(offers) = made {
            self.negotiations.push(negotiation);
            self.offers.extend(offers);
        }
    }
}
