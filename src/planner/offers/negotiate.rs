//! Negotiations: opened, ended and forgotten when their time is over; and how the planner is told to.

use scheduler::Time;
use uuid::Uuid;

use super::replace::PIECES_BEGUN;
use crate::agreement::{NegotiationInstance, NegotiationOffer};
use crate::clock::second_of;
use crate::planner::admission::quotas::exceeded;
use crate::planner::decide::Decider;
use crate::planner::{Acceptance, Accepted, Ask, Bargain, Command, Error, Idempotency, Planner, Quote};
use crate::store::Change;

/// A negotiation to be opened.
#[derive(Debug, Clone)]
pub struct Initiation {
    /// The negotiation.
    pub negotiation: NegotiationInstance,
    /// The document that asked for it.
    pub document: String,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<NegotiationInstance>>,
}

/// An order to end a negotiation before its time.
#[derive(Debug, Clone)]
pub struct NegotiationEnd {
    /// Which.
    pub id: Uuid,
    /// The party that it must be of; none for any.
    pub party: Option<String>,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<NegotiationInstance>>,
}

impl Planner {
    /// Opens a negotiation.
    ///
    /// # Errors
    /// [`Error::NotFound`] where it is about an agreement that is none of its party's or over, [`Error::Refused`] where
    /// the party has too many going on, [`Error::Repeated`] where its idempotency key has been used,
    /// [`Error::Unavailable`].
    pub async fn initiate(&self, initiation: Initiation) -> Result<NegotiationInstance, Error> {
        self.ask(|reply| Command::Initiate(Box::new(initiation), reply))
            .await
    }

    /// Ends a negotiation before its time and gives back its holds.
    ///
    /// # Errors
    /// [`Error::NotFound`] where no such negotiation goes on, [`Error::Repeated`] where its idempotency key has been used,
    /// [`Error::Unavailable`].
    pub async fn end_negotiation(&self, end: NegotiationEnd) -> Result<NegotiationInstance, Error> {
        self.ask(|reply| Command::EndNegotiation(Box::new(end), reply))
            .await
    }

    /// Keeps the answer to a request that took several commands.
    ///
    /// # Errors
    /// [`Error::Repeated`] where an answer has been kept under its key before, [`Error::Unavailable`].
    pub async fn keep(&self, request: Idempotency<String>, answer: String) -> Result<(), Error> {
        self.ask(|reply| Command::Keep(Box::new(request), answer, reply))
            .await
    }

    /// The present quote for a request. Nothing is stored or kept.
    ///
    /// # Errors
    /// [`Error::NotFound`] where no such negotiation goes on, [`Error::Lost`] where the agreement that it is to replace has
    /// begun or is over, [`Error::Unavailable`].
    pub async fn quote(&self, ask: Ask) -> Result<Quote, Error> {
        self.ask(|reply| Command::Quote(Box::new(ask), reply)).await
    }

    /// Stores an offer of the requester and the answers to it, and keeps the Acceptable ones. Returns the answers in
    /// their new states. Opens the negotiation with them where the request asks for it.
    ///
    /// # Errors
    /// The errors of [`Planner::initiate`] where the negotiation is opened. [`Error::NotFound`] where no such negotiation
    /// goes on, [`Error::Stale`] where the offer does not fit into its tree, [`Error::Refused`] where that is full,
    /// [`Error::Repeated`] where its idempotency key has been used, [`Error::Unavailable`]; nothing is stored then.
    pub async fn bargain(&self, bargain: Bargain) -> Result<Vec<NegotiationOffer>, Error> {
        self.ask(|reply| Command::Bargain(Box::new(bargain), reply)).await
    }

    /// Makes an agreement of an offer that is held, which takes over its place; where it replaces another agreement,
    /// that one is complete from then on.
    ///
    /// # Errors
    /// [`Error::Lost`] where it cannot be accepted any more, [`Error::NotFound`] where it is none of the party's,
    /// [`Error::Repeated`] where its idempotency key has been used, [`Error::Unavailable`].
    pub async fn accept(&self, acceptance: Acceptance) -> Result<Accepted, Error> {
        self.ask(|reply| Command::Accept(Box::new(acceptance), reply))
            .await
    }
}

impl Decider<'_> {
    /// Opens a negotiation.
    pub(in crate::planner) fn initiate(
        &mut self,
        initiation: Initiation,
    ) -> Result<NegotiationInstance, Error> {
        let Initiation {
            negotiation: instance,
            document,
            idempotency,
        } = initiation;
        self.is_new(idempotency.as_ref())?;
        self.may_open(&instance)?;
        self.plan.table.open(instance.clone(), []);
        self.batch.push(Change::CreateNegotiation {
            negotiation: instance.clone(),
            document,
        });
        self.remember(idempotency, &instance);
        Ok(instance)
    }

    /// Whether a negotiation may be opened.
    pub(in crate::planner) fn may_open(&self, instance: &NegotiationInstance) -> Result<(), Error> {
        if let Some(agreement) = instance.agreement {
            let replaced = self.plan.get(agreement).ok_or(Error::NotFound)?;
            if replaced.party != instance.party {
                return Err(Error::NotFound);
            }
            if replaced.slots.is_split() && !replaced.is_waiting() {
                return Err(Error::Conflict(PIECES_BEGUN));
            }
        }
        let most = self.settings.negotiation.open_max;
        if self.plan.table.count(&instance.party) >= most {
            let binding = format!("a party may have {most} negotiations going on at a time");
            return Err(Error::Refused(Box::new(exceeded(binding))));
        }
        Ok(())
    }

    /// Keeps an answer.
    pub(in crate::planner) fn keep_answer(
        &mut self,
        request: Idempotency<String>,
        answer: &String,
    ) -> Result<(), Error> {
        self.is_new(Some(&request))?;
        self.remember(Some(request), answer);
        Ok(())
    }

    /// Ends a negotiation before its time.
    pub(in crate::planner) fn end_negotiation(
        &mut self,
        end: NegotiationEnd,
    ) -> Result<NegotiationInstance, Error> {
        let NegotiationEnd {
            id,
            party,
            idempotency,
        } = end;
        self.is_new(idempotency.as_ref())?;
        let talks = self.plan.table.get(id).ok_or(Error::NotFound)?;
        if party.is_some_and(|party| party != talks.instance.party) {
            return Err(Error::NotFound);
        }
        let ended = self.end_talks(id)?;
        self.remember(idempotency, &ended);
        Ok(ended)
    }

    /// Ends a negotiation of any party.
    pub(in crate::planner) fn end_talks(&mut self, id: Uuid) -> Result<NegotiationInstance, Error> {
        self.release_all(id, |_| true);
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
    pub(in crate::planner) fn lapse(&mut self) {
        let now: Time = second_of(self.now);
        for id in self.plan.table.due_by(now) {
            let Some(talks) = self.plan.table.get(id) else {
                continue;
            };
            let over = talks.instance.expires <= now;
            self.release_all(id, |offer| over || offer.is_expired(now));
            if over {
                self.plan.table.close(id);
            }
        }
        self.plan.table.expire(now);
    }

    /// Lets go of those offers of a negotiation that are held.
    fn release_all(&mut self, id: Uuid, of: impl Fn(&NegotiationOffer) -> bool) {
        let Some(talks) = self.plan.table.get(id) else {
            return;
        };
        let held = talks.offers.values().filter(|offer| offer.is_held() && of(offer));
        let held: Vec<NegotiationOffer> = held.cloned().collect();
        self.release(held);
    }

    /// Lets go of the holds that rely on the place of an agreement that has begun or is over.
    pub(in crate::planner) fn release_about(&mut self, agreement: Uuid) {
        let held: Vec<NegotiationOffer> = self.plan.table.about(agreement).cloned().collect();
        self.release(held);
    }
}
