//! Negotiations: opened, ended and forgotten when their time is over; and how the planner is told to.

use domain::agreement::{NegotiationInstance, NegotiationOffer};
use domain::change::Change;
use scheduler::{Time, counted};
use uuid::Uuid;

use crate::batches::DecisionRecord;
use crate::decider::{Command, Decider};
use crate::error::{Error, Result, quota_exceeded};
use crate::handle::Planner;
use crate::offers::messages::{Acceptance, Bargain, Initiation, NegotiationEnd, OfferRequest, Quote};
use crate::request::{AcceptedOffer, Idempotency};

/// Negotiations about prices alone that a party may have for each other one: they cost memory only.
const QUOTES_PER_NEGOTIATION: usize = 10;

impl Planner {
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
}

impl Decider<'_> {
    /// Opens a negotiation.
    pub(crate) fn initiate(&mut self, initiation: Initiation) -> Result<NegotiationInstance> {
        let instance = initiation.negotiation;
        self.check_key_is_new(initiation.idempotency.as_ref())?;
        self.check_opening(&instance)?;
        self.plan.table.open(instance.clone(), []);
        self.batch.push(Change::CreateNegotiation {
            negotiation: instance.clone(),
            document: initiation.document,
        });
        self.remember(initiation.idempotency, &instance);
        Ok(instance)
    }

    /// Whether a negotiation may be opened.
    pub(crate) fn check_opening(&self, instance: &NegotiationInstance) -> Result<()> {
        if let Some(agreement) = instance.agreement {
            let replaced = self.plan.get(agreement).ok_or(Error::NotFound)?;
            if replaced.party != instance.party {
                return Err(Error::NotFound);
            }
        }
        let most = self.settings.negotiation.open_max;
        let (open, quotes) = self.plan.table.count(&instance.party);
        if quotes >= most.saturating_mul(QUOTES_PER_NEGOTIATION) {
            let binding =
                "a party may have more quotes when some have expired; they do where a request names no end";
            return Err(quota_exceeded(binding).into());
        }
        if open >= most {
            let binding = format!(
                "a party may have {} going on at a time",
                counted(most, "negotiation")
            );
            return Err(quota_exceeded(binding).into());
        }
        Ok(())
    }

    /// Keeps an answer.
    pub(crate) fn keep_answer(&mut self, request: Idempotency<String>, answer: &String) -> Result<()> {
        self.check_key_is_new(Some(&request))?;
        self.remember(Some(request), answer);
        Ok(())
    }

    /// Ends a negotiation before its time.
    pub(crate) fn end_negotiation(&mut self, end: NegotiationEnd) -> Result<NegotiationInstance> {
        self.check_key_is_new(end.idempotency.as_ref())?;
        let talks = self.plan.table.get(end.id).ok_or(Error::NotFound)?;
        if end.party.is_some_and(|party| party != talks.instance.party) {
            return Err(Error::NotFound);
        }
        let ended = self.end_any_negotiation(end.id)?;
        self.remember(end.idempotency, &ended);
        Ok(ended)
    }

    /// Ends a negotiation of any party.
    pub(crate) fn end_any_negotiation(&mut self, id: Uuid) -> Result<NegotiationInstance> {
        self.release_all_holds(id, |_| true);
        let talks = self.plan.table.close(id).ok_or(Error::NotFound)?;
        self.batch.push(Change::EndNegotiation {
            negotiation: id,
            at: self.now,
        });
        Ok(NegotiationInstance {
            ended: Some(self.now),
            ..talks.instance
        })
    }

    /// Lets go of the offers that have lapsed by now. This runs before every decision, so that no decision relies on a
    /// lapsed offer.
    pub(crate) fn lapse_negotiations(&mut self) {
        let now: Time = self.present_second();
        for id in self.plan.table.due.due_by(now) {
            let Some(talks) = self.plan.table.get(id) else {
                continue;
            };
            let over = talks.instance.expires <= now;
            self.release_all_holds(id, |offer| over || offer.is_expired(now));
            if over {
                self.plan.table.close(id);
            }
        }
        self.plan.table.expire(now);
    }

    /// Lets go of those offers of a negotiation that are held.
    fn release_all_holds(&mut self, id: Uuid, predicate: impl Fn(&NegotiationOffer) -> bool) {
        let Some(talks) = self.plan.table.get(id) else {
            return;
        };
        let held = talks
            .offers
            .values()
            .filter(|offer| offer.is_held() && predicate(offer));
        let held: Vec<NegotiationOffer> = held.cloned().collect();
        self.release(held);
    }

    /// Lets go of the holds that rely on the place of an agreement that has begun or is over.
    pub(crate) fn release_holds_about(&mut self, agreement: Uuid) {
        let held: Vec<NegotiationOffer> = self.plan.table.held_offers_about(agreement).cloned().collect();
        self.release(held);
    }
}
