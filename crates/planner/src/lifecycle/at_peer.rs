//! Agreements that another domain, a peer, carries out for us by an agreement of its own with us.
//!
//! Ours is stored as Pending, with the peer's offer that it is to accept, before the peer is asked. It is in force only once the
//! peer's is known to be made. Its slot lies on the peer's resource here, where nothing moves it but the peer's word.

use domain::agreement::{
    Account, Agreement, AgreementState, AtPeer, Event, EventKind, JobEnd, Money, NegotiationOffer,
    OfferState, PostingKind, SeenAtPeer, ServiceState, Slots,
};
use domain::change::Change;
use domain::clock::{MICROS_PER_SECOND, Micros};
use scheduler::{Interval, Time};
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, OfferLoss, Result};
use crate::offers::accept::keep_promise;
use crate::plan::Plan;
use crate::request::Request;
use crate::requests::requests_of_agreement;
use crate::resources::need::Placement;
use crate::words::time_difference_in_words;

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

impl Plan {
    /// Whether a peer carries an agreement out.
    pub(crate) fn is_at_peer(&self, agreement: &Agreement) -> bool {
        let resource = self.resources.named(&agreement.resource);
        resource.is_some_and(|each| each.resource.is_peer())
    }
}

impl Decider<'_> {
    /// Whether a peer carries an agreement out.
    pub(crate) fn is_at_peer(&self, agreement: &Agreement) -> bool {
        self.plan.is_at_peer(agreement)
    }

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
        let mut old = replaced.and_then(|old| self.plan.get(old).cloned());
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
        let at = self.plan.resources.required_place_of(&terms.resource);
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
        let number = self.plan.next_number();
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
    fn try_put_rest(&mut self, (agreement, number): (&Agreement, u64), at: usize) -> bool {
        let now = self.present_second();
        let rest = self.running_of(at, agreement, number);
        self.plan.resources.put(at, now, &rest, rest.ready)
    }

    /// Puts an agreement where its peer has it, with the one that it replaces out of the plan; whether there was room.
    fn try_put_successor(
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

    /// Makes sure that there is room here for what a peer is to make of an agreement that it has.
    pub fn check_may_change(&mut self, id: Uuid, slots: &Slots, answer: Option<Uuid>) -> Result<()> {
        let old = self.live_agreement(id)?;
        let at = self.plan.resources.required_place_of(&old.resource);
        let at = at.ok_or(Error::Unavailable)?;
        let goes_on = old.is_being_carried_out();
        let slots = if goes_on {
            old.slots.ending(slots.placement().end)
        } else {
            slots.clone()
        };
        let (next, number) = (Agreement { slots, ..old.clone() }, self.plan.next_number());
        let fits = self.suppose_in_transaction(|this| {
            if answer.is_some() {
                this.vacate_hold(id);
            }
            if goes_on {
                this.lift_replaced_agreement(old.id).is_ok() && this.try_put_rest((&next, number), at)
            } else {
                this.try_put_successor(Some(&old), (&next, number), at)
            }
        });
        if fits {
            Ok(())
        } else {
            Err(Error::Lost(OfferLoss::Withdrawn))
        }
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
            let all = slots.all(|(request, start)| this.plan.resources.put(at, now, &request, start));
            all.then_some(())
        })
        .is_some()
    }

    /// Begins a slot at a peer, however late it is here. One that is over already waits until it is known how it ended there.
    pub(crate) fn begin_at_peer(&mut self, agreement: Agreement) -> Option<Agreement> {
        let is_over = agreement.job.is_some() && agreement.slot().end <= self.present_second();
        if is_over { None } else { self.begin(agreement) }
    }

    /// Takes over how an agreement stands at its peer.
    pub fn note_at_peer(&mut self, seen: SeenAtPeer) -> Result<()> {
        let SeenAtPeer {
            row,
            slot,
            started,
            lost,
            ended,
        } = seen;
        if let Some(started) = started {
            self.note_started_at_peer(&row, started);
        }
        let is_over = AgreementState::from_word(&row.state).is_some_and(AgreementState::is_final);
        // What was lost there before may have another place at the same peer.
        let is_over = lost.is_some() || is_over && !row.lost;
        let ours = self
            .plan
            .get(row.agreement)
            .filter(|agreement| agreement.resource == row.peer);
        let was_awaited = |ours: &&Agreement| {
            let is_ending = ours.state == AgreementState::ObservedAndTerminating;
            is_ending && ours.service == ServiceState::Idle && (is_over || !ours.never_had_nodes())
        };
        if let Some(agreement) = ours.filter(was_awaited).cloned() {
            self.finish_reservation(agreement)?;
        } else if let Some(agreement) = ours.filter(|agreement| agreement.is_waiting()).cloned() {
            if let Some(why) = lost {
                self.place_lost_at_peer(&agreement, &why);
            } else {
                if let Some((start, end)) = slot {
                    self.follow_peer(&agreement, Interval::new(Time(start), Time(end)));
                }
                if let Some(end) = ended {
                    self.end_at_peer(row.agreement, &end)?;
                }
            }
        } else if let Some((agreement, why)) = ours.cloned().zip(lost)
            && agreement.service == ServiceState::Idle
            && agreement.job.is_none()
        {
            self.lose_agreement_because(agreement, EventKind::Broken, why);
        }
        if row.settled.is_some() {
            self.post_to_peer(&row);
        }
        self.batch.push(Change::PutAtPeer(row));
        Ok(())
    }

    /// Takes note of when a peer has handed over the nodes of an agreement without a job. Its party has them in its slot here.
    fn note_started_at_peer(&mut self, row: &AtPeer, started: Micros) {
        let waits = |ours: &&Agreement| ours.has_nodes() && ours.never_had_nodes();
        let ours = self.plan.get(row.agreement).filter(waits).cloned();
        if let Some(agreement) = ours.filter(|ours| ours.resource == row.peer) {
            let start = agreement.slot().start.seconds() * MICROS_PER_SECOND;
            let since = started.clamp(start, self.now.max(start));
            self.note_handed_over(agreement, since);
        }
    }

    /// Ends an agreement whose work has run at its peer before its slot began here.
    fn end_at_peer(&mut self, id: Uuid, end: &JobEnd) -> Result<()> {
        let mut agreement = self.live_agreement(id)?;
        agreement.service = ServiceState::Processing;
        let event = self.event(EventKind::Begun, format!("at {}", agreement.resource));
        self.update(agreement, vec![event]);
        self.record_end(id, end)
    }

    /// Has the only slot of a waiting agreement lie where its peer has it now, inside what was agreed.
    fn follow_peer(&mut self, agreement: &Agreement, slot: Interval) {
        let now = self.present_second();
        let (before, nodes) = agreement.slots[0].stretch();
        let is_agreed = agreement.window().contains(slot) && slot.duration() == before.duration();
        if agreement.slots.is_split() || before == slot || !is_agreed {
            return;
        }
        let Some((at, _)) = self.plan.planned_slot(agreement, 0) else {
            return;
        };
        let placed = self.run_trial(|this| {
            this.plan.take_slot_out(agreement, 0, now);
            let (_, number) = this.plan.planned_slot(agreement, 0)?;
            let mut placed = agreement.clone();
            placed.place_slot(0, (slot, nodes));
            this.try_put_at_peer(&placed, number, at).then_some(placed)
        });
        // There is room again once another one has left.
        let Some(placed) = placed else { return };
        let moved = time_difference_in_words(slot.start - before.start);
        let event = self.event(EventKind::Moved, format!("{moved}, by {}", agreement.resource));
        self.update(placed, vec![event]);
    }

    /// Finds a place here for an agreement whose peer does not carry it out any more, or ends it.
    fn place_lost_at_peer(&mut self, agreement: &Agreement, why: &str) {
        let now = self.present_second();
        self.plan.take_slot_out(agreement, 0, now);
        let movable = Agreement {
            fixed: false,
            ..agreement.clone()
        };
        self.place_lost_slot(&movable, 0, why);
    }

    /// Posts what a peer has charged for an agreement and what it has paid back.
    fn post_to_peer(&mut self, row: &AtPeer) {
        let Some(Money { currency, .. }) = row.price else {
            return;
        };
        let peer = || Account::Peer(row.peer.clone());
        let both = [
            (
                PostingKind::Price,
                Account::Provider,
                peer(),
                row.charged,
                "charged by the peer",
            ),
            (
                PostingKind::Penalty,
                peer(),
                Account::Provider,
                row.paid_back,
                "paid back by the peer",
            ),
        ];
        for (kind, from, to, micros, what) in both {
            if micros > 0 {
                let amount = Money::new(micros, currency);
                self.post(row.agreement, kind, (from, to), amount, what.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests;
