//! Agreements that another domain, a peer, carries out for us by an agreement of its own with us.
//!
//! Ours is stored as Pending, with the peer's offer that it is to accept, before the peer is asked. It is in force only once the
//! peer's is known to be made. Its slot lies on the peer's resource here, where nothing moves it but the peer's word.

use domain::agreement::{Agreement, AtPeer, Event, EventKind, NegotiationOffer, OfferState, ServiceState};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, OfferLoss, Result};
use crate::offers::accept::keep_promise;
use crate::request::Request;
use crate::requests::requests_of_agreement;
use crate::resources::need::Placement;

/// The peer's agreement behind a pending one of ours, which comes into force with it.
#[derive(Debug, Clone)]
pub struct MadeAtPeer {
    /// The request in the words that accept our offer.
    pub proposal: Request,
    /// Our offer.
    pub offer: NegotiationOffer,
    /// The agreement that ours is to replace, if any.
    pub replaced: Option<Uuid>,
    /// The peer's agreement.
    pub row: AtPeer,
}

impl Decider<'_> {
    /// Brings a pending agreement into force whose peer's agreement is made, also where its offer has lapsed meanwhile.
    ///
    /// # Errors
    /// [`Error::Unfit`] where there is no room for it on the peer's resource here: the peer's agreement is to be ended.
    pub(crate) fn make_agreement_at_peer(
        &mut self,
        pending: &Agreement,
        made: MadeAtPeer,
    ) -> Result<Agreement> {
        let MadeAtPeer {
            mut proposal,
            offer,
            replaced,
            row,
        } = made;
        let terms = offer.terms.clone().ok_or(Error::Unavailable)?;
        let offer = self.offer_on_table(&offer).unwrap_or(offer);
        if offer.agreement.is_some() {
            return Err(Error::Lost(OfferLoss::Accepted));
        }
        let is_changed_there = terms.peer.as_ref().is_some_and(|held| held.replaces.is_some());
        let mut old = replaced.and_then(|old| self.plan.agreements.get(old).cloned());
        let may_change = |old: &Agreement| old.is_waiting() || is_changed_there && old.is_being_carried_out();
        if replaced.is_some() && !old.as_ref().is_some_and(may_change) {
            return Err(Error::Unfit(
                "the agreement that it replaces has begun or is over".to_owned(),
            ));
        }
        // One that has begun since a later slot was offered does not go on in that.
        let goes_on =
            |old: &Agreement| old.is_being_carried_out() && old.placement().start == terms.placement().start;
        let begun = old.as_ref().is_some_and(goes_on);
        // What a peer has changed cannot be taken back there. The cap was checked before the peer was asked.
        if let Err(why) = self.check_cap(proposal.spender, terms.price)
            && !is_changed_there
        {
            return Err(Error::Unfit(why.binding));
        }
        let at = self.plan.schedules.required_place_of(&terms.resource);
        let at = at.ok_or(Error::Unavailable)?;
        (proposal.id, proposal.name) = (pending.id, pending.name.clone());
        proposal.initiator_id.clone_from(&pending.initiator_id);
        let admitted = Placement::at(at, terms.slots.clone(), terms.price);
        let mut agreement = self.make_agreement(&proposal, terms.window(), &admitted);
        keep_promise(&mut agreement, &terms);
        (agreement.created, agreement.version) = (pending.created, pending.version + 1);
        agreement.fixed = true;
        let held = offer.parent.filter(|_| self.offer_on_table(&offer).is_some());
        let held = held.map(|answer| self.plan.table.choice_of(offer.negotiation, answer));
        let number = self.plan.placement.next_number();
        if let Some(choice) = held {
            self.take_hold_out(choice);
        }
        let put = match old.as_mut().filter(|_| begun) {
            Some(old) => self.go_on_at_peer(old, (&mut agreement, number), at),
            None => self
                .try_put_successor(old.as_ref(), (&agreement, number), at)
                .then(Vec::new),
        };
        let Some(settled) = put else {
            if let Some(choice) = held {
                self.hold_offers_again(choice, "its acceptance has failed");
            }
            return Err(Error::Unfit(format!("{} has no room for it here", row.peer)));
        };
        self.plan.insert(agreement.clone(), number);
        let detail = format!("{} carries it out, as it was offered", row.peer);
        let mut events = vec![self.acceptance_of_peer(&agreement, &detail)];
        self.spend(proposal.spender, &agreement);
        events.extend(replaced.map(|old| self.event(EventKind::Superseded, format!("in place of {old}"))));
        // The work that it takes over follows.
        self.batch.push(Change::UpdateAgreement {
            agreement: Box::new(Agreement {
                service: ServiceState::NotReady,
                ..agreement.clone()
            }),
            events,
        });
        self.batch.push(Change::PutAtPeer(row));
        self.note_taken_at_peer(&offer, agreement.id);
        if let Some(old) = old {
            if begun {
                agreement = self.take_over(&old, agreement);
            }
            self.supersede_offers(old, settled, agreement.id, &terms)?;
        }
        if held.is_some() {
            let siblings = self.sibling_offers(&offer);
            self.release(siblings);
        }
        Ok(agreement)
    }

    /// Has an agreement take over the work of another one that has begun at the same peer, and its place. Returns the lines for the
    /// other one's timeline; none where there is no room for it here.
    fn go_on_at_peer(
        &mut self,
        old: &mut Agreement,
        (agreement, number): (&mut Agreement, u64),
        at: usize,
    ) -> Option<Vec<Event>> {
        agreement.slots = old.slots.ending(agreement.slots.placement().end);
        let put = self.run_trial(|this| {
            this.lift_replaced_agreement(old.id).ok()?;
            this.try_put_rest((agreement, number), at).then_some(())
        });
        put?;
        let settled = self.settle_guarantees(old, agreement);
        (agreement.service, agreement.started) = (old.service, old.started);
        agreement.origin = Some(old.execution_id());
        agreement.job.clone_from(&old.job);
        Some(settled)
    }

    /// Puts the rest of a slot that has begun at a peer where an agreement goes on with it; whether there was room.
    pub(crate) fn try_put_rest(&mut self, (agreement, number): (&Agreement, u64), at: usize) -> bool {
        let now = self.present_second();
        let rest = self.running_of(at, agreement, number);
        self.plan.schedules.put(at, now, &rest, rest.ready)
    }

    /// Puts an agreement where its peer has it, with the one that it replaces out of the plan; whether there was room.
    pub(crate) fn try_put_successor(
        &mut self,
        old: Option<&Agreement>,
        (agreement, number): (&Agreement, u64),
        at: usize,
    ) -> bool {
        let put = self.run_trial(|this| {
            if let Some(old) = old {
                // One at its end has nothing left to give up.
                let _ = this.lift_replaced_agreement(old.id);
            }
            this.try_put_at_peer(agreement, number, at).then_some(())
        });
        put.is_some()
    }

    fn acceptance_of_peer(&self, agreement: &Agreement, detail: &str) -> Event {
        let price = self.price_in_words(agreement);
        let detail = price.map_or(detail.to_owned(), |price| format!("{detail}; {price}"));
        self.event(EventKind::Accepted, detail)
    }

    /// An offer as it stands in its negotiation; none where that is over.
    fn offer_on_table(&self, offer: &NegotiationOffer) -> Option<NegotiationOffer> {
        let talks = self.plan.table.get(offer.negotiation)?;
        talks.offers.get(&offer.id).cloned()
    }

    /// Notes that our offer was taken. One that has lapsed or was released meanwhile stays released since then.
    fn note_taken_at_peer(&mut self, offer: &NegotiationOffer, agreement: Uuid) {
        let lapses = offer
            .expires
            .map_or(self.now, |at| at.seconds() * MICROS_PER_SECOND);
        let taken = NegotiationOffer {
            agreement: Some(agreement),
            state: OfferState::Acceptable,
            refusal: None,
            released: offer.released.or(Some(self.now.min(lapses))),
            ..offer.clone()
        };
        self.batch.push(Change::UpdateOffer(Box::new(taken.clone())));
        if self.offer_on_table(offer).is_some() {
            self.plan.table.put(taken);
        }
    }

    /// Puts the slots of an agreement where its peer has them; whether there was room for all.
    pub(crate) fn try_put_at_peer(&mut self, agreement: &Agreement, number: u64, at: usize) -> bool {
        let now = self.present_second();
        let slots = requests_of_agreement(agreement, number).into_iter();
        let starts = agreement.loads().into_iter().map(|(slot, _)| slot.start);
        let slots: Vec<_> = slots.zip(starts).collect();
        self.run_trial(|this| {
            let mut slots = slots.into_iter();
            let all = slots.all(|(request, start)| this.plan.schedules.put(at, now, &request, start));
            all.then_some(())
        })
        .is_some()
    }

    /// Begins a slot at a peer, however late it is here. One that is over already waits until it is known how it ended there.
    pub(crate) fn begin_at_peer(&mut self, agreement: Agreement) -> Option<Agreement> {
        let is_over = agreement.job.is_some() && agreement.slot().end <= self.present_second();
        if is_over { None } else { self.begin(agreement) }
    }
}

#[cfg(test)]
mod tests;
