//! Negotiations, their offers, and the times in which nodes are free.

use std::sync::PoisonError;

use domain::agreement::{Money, NegotiationInstance, NegotiationOffer};
use planner::{
    Acceptance, AcceptedOffer, Availability, Bargain, Decider, Error, Idempotency, Initiation,
    NegotiationEnd, OfferRequest, ProposedNegotiation, Quote, Result, Suggestion,
};
use scheduler::Interval;
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::batches::DecisionRecord;
use crate::command::Command;
use crate::handle::Planner;

impl Planner {
    /// The suggestions of the provider for proposals to parties. The first listener hears all since the start, a later one those
    /// from now on.
    pub fn subscribe_suggestions(&self) -> broadcast::Receiver<Suggestion> {
        let first = self.unheard.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(|| self.suggested.subscribe())
    }

    /// Opens a negotiation of the provider's own with its offers, which are held.
    ///
    /// # Errors
    /// [`Error::NotFound`] where the agreement that is to be moved does not wait any more, [`Error::Stale`] where enough is
    /// proposed, or nothing could be held, [`Error::Unavailable`].
    pub async fn propose(&self, proposed: ProposedNegotiation) -> Result<Vec<NegotiationOffer>> {
        self.ask(|decider| decider.propose(proposed)).await
    }

    /// Opens a negotiation.
    ///
    /// # Errors
    /// [`Error::NotFound`] where it is about an agreement that is none of its party's or over, [`Error::Refused`] where
    /// the party has too many going on, [`Error::Repeated`] where its idempotency key has been used,
    /// [`Error::Unavailable`].
    pub async fn initiate(&self, initiation: Initiation) -> Result<NegotiationInstance> {
        let scope = initiation.idempotency.as_ref().map(Idempotency::scope);
        self.ask_once(scope, move |decider, _| {
            let about = &initiation.negotiation;
            let (party, id) = (about.party.clone(), about.id);
            let mut decided = decider.initiate(initiation);
            decider.note_refused(&party, id, &mut decided);
            decided
        })
        .await
    }

    /// Ends a negotiation before its time and gives back its holds.
    ///
    /// # Errors
    /// [`Error::NotFound`] where no such negotiation goes on, [`Error::Repeated`] where its idempotency key has been used,
    /// [`Error::Unavailable`].
    pub async fn end_negotiation(&self, end: NegotiationEnd) -> Result<NegotiationInstance> {
        let scope = end.idempotency.as_ref().map(Idempotency::scope);
        self.ask_once(scope, |decider, _| decider.end_negotiation(end))
            .await
    }

    /// Keeps the answer to a request that took several commands.
    ///
    /// # Errors
    /// [`Error::Repeated`] where an answer has been kept under its key before, [`Error::Unavailable`].
    pub async fn keep(&self, request: Idempotency<String>, answer: String) -> Result<()> {
        self.ask_once(Some(request.scope()), move |decider, _| {
            decider.keep_answer(request, &answer)
        })
        .await
    }

    /// The present quote for a request. Nothing is stored or kept.
    ///
    /// # Errors
    /// [`Error::NotFound`] where no such negotiation goes on, [`Error::Lost`] where the agreement that it is to replace has
    /// begun or is over, [`Error::Unavailable`].
    pub async fn quote(&self, ask: OfferRequest) -> Result<Quote> {
        self.ask_once(None, move |decider, decisions| {
            let latest = decider.horizon_of(&ask.proposal.party);
            let decided = decider.quote(&ask).map(|quote| Quote { latest, ..quote });
            decisions.push(match &decided {
                Ok(Quote {
                    refusal: Some(refusal),
                    ..
                }) => DecisionRecord::refused("quote", refusal),
                _ => DecisionRecord::of("quote", &decided),
            });
            decided
        })
        .await
    }

    /// Stores an offer of the requester and the answers to it, and keeps the Acceptable ones. Returns the answers in
    /// their new states. Opens the negotiation with them where the request asks for it.
    ///
    /// # Errors
    /// The errors of [`Planner::initiate`] where the negotiation is opened. [`Error::NotFound`] where no such negotiation
    /// goes on, [`Error::Stale`] where the offer does not fit into its tree, [`Error::Refused`] where that is full,
    /// [`Error::Repeated`] where its idempotency key has been used, [`Error::Unavailable`]; nothing is stored then.
    pub async fn exchange_offers(&self, bargain: Bargain) -> Result<Vec<NegotiationOffer>> {
        let scope = bargain.idempotency.as_ref().map(Idempotency::scope);
        self.ask_once(scope, |decider, _| decider.exchange_offers(bargain))
            .await
    }

    /// Makes an agreement of an offer that is held, which takes over its place; where it replaces another agreement,
    /// that one is complete from then on.
    ///
    /// # Errors
    /// [`Error::Lost`] where it cannot be accepted any more, [`Error::NotFound`] where it is none of the party's,
    /// [`Error::Repeated`] where its idempotency key has been used, [`Error::Unavailable`].
    pub async fn accept(&self, acceptance: Acceptance) -> Result<AcceptedOffer> {
        let scope = acceptance.proposal.idempotency.as_ref().map(Idempotency::scope);
        let about = (acceptance.proposal.id, acceptance);
        let booked_by = self.booked_by.clone();
        let count = move |decider: &mut Decider<'_>, decided: &mut Result<_>| {
            decider.note_booked(booked_by.as_deref(), decided);
            DecisionRecord::of("acceptance", decided)
        };
        self.send(|reply| {
            Command::that_may_wait(
                about,
                scope,
                reply,
                |decider, request| decider.accept(request),
                count,
            )
        })
        .await
    }

    /// Adds the fees to offers in place of the agreement `id`: ours by our prices, and at least the charge of the peer that has it now,
    /// which stands at the same place in `charges`; at most the agreement's price. Offers beyond the budget are taken away.
    ///
    /// # Errors
    /// [`Error::NotFound`] where the agreement is over, and those of a change.
    pub async fn add_fees_of_change(
        &self,
        id: Uuid,
        budget: Option<Money>,
        charges: Vec<Option<Money>>,
        quote: Quote,
    ) -> Result<Quote, Error> {
        self.ask(move |decider| decider.add_fees_of_change(id, budget, &charges, quote))
            .await
    }

    /// The times in which this number of nodes is free on some resource of a class, in order and apart from each other,
    /// in the provider's steps; none where the provider does not show it. O(g log g) for g gaps of all its resources.
    ///
    /// # Errors
    /// `Error::Refused` where its party asks more often than it may, `Error::Unavailable` when the planner has stopped.
    pub async fn availability(&self, asked: Availability) -> Result<Option<Vec<Interval>>> {
        self.ask(move |decider| decider.availability(&asked)).await
    }
}
