//! An offer that was held becomes an agreement, which takes over its place; and where it replaces another agreement,
//! that one ends in the same breath.

use domain::agreement::{
    Agreement, AgreementState, Event, EventKind, NegotiationInstance, NegotiationOffer, OfferState,
    OfferTerms, PostingKind, ServiceState, Slot, Spender,
};
use domain::change::Change;
use scheduler::{Interval, Reason, Time};
use uuid::Uuid;

use crate::admission::refuse::barred_in_words;
use crate::commands::Accept;
use crate::decider::Decider;
use crate::decider::DecisionStep;
use crate::error::{Error, OfferLoss, Result, bare_refusal};
use crate::offers::messages::refusal_in_short;
use crate::request::Request;
use crate::resources::need::Placement;

impl Decider<'_> {
    /// The agreement of an offer that is held for its party: a new one, or the one that has been `pending` for it. Its cluster may
    /// have to hold its nodes first.
    pub(crate) fn make_accepted_agreement(
        &mut self,
        mut acceptance: Accept,
        pending: Option<&Agreement>,
    ) -> Result<DecisionStep<Agreement, Accept>> {
        if let Some(pending) = pending {
            name_as_pending(&mut acceptance.proposal, pending);
        }
        let proposal = &acceptance.proposal;
        let (offer, instance) =
            self.offer_in_negotiation(&proposal.party, acceptance.negotiation, acceptance.offer)?;
        let (Some(terms), Some(answer)) = (offer.terms.clone(), offer.parent) else {
            return Err(Error::Lost(OfferLoss::NotHeld));
        };
        if let Some(why) = why_offer_is_lost(&offer, self.present_second()) {
            return Err(Error::Lost(why));
        }
        self.check_new_id(proposal, &[instance.agreement, pending.map(|pending| pending.id)])?;
        let resource = self.plan.schedules.required_place_of(&terms.resource);
        let resource = resource.ok_or(Error::Unavailable)?;
        let replaced = self.agreement_to_replace(&instance)?;
        let begun = replaced.as_ref().is_some_and(Agreement::is_being_carried_out);
        // Running work is not submitted again.
        if let Some(why) = barred_in_words(acceptance.barred.as_slice()).filter(|_| !begun) {
            self.withdraw(&offer, Reason::ResourceNotOffered, why.clone());
            return Err(Error::Lost(OfferLoss::Barred(why)));
        }
        let mut admitted = self.place_held_for_offer(resource, &terms);
        if let Some(old) = replaced.as_ref().filter(|_| begun) {
            let end = terms.slots.placement().end;
            if let Some(why) = self.why_not_as_offered(old, &terms) {
                self.withdraw(&offer, Reason::NoCapacityInWindow, why.to_owned());
                return Err(Error::Lost(OfferLoss::Withdrawn));
            }
            // A slot that is over by now stays as it was.
            admitted.slots = old.slots.ending(end);
        }
        let mut agreement = self.make_agreement(proposal, terms.window(), &admitted);
        keep_promise(&mut agreement, &terms);
        self.settle_room(&mut agreement);
        let spender = acceptance.proposal.spender;
        if self.waits_to_accept(&offer, (&agreement, spender), &admitted, replaced.as_ref())? {
            return Ok(DecisionStep::Wait(acceptance));
        }
        if let Some(reserved) = self.plan.waiting.take(agreement.id) {
            agreement.slots = reserved.admitted.slots;
        }
        let mut old = self.lift_replaced(&instance)?;
        if let Some(old) = old.as_ref().filter(|_| begun) {
            agreement.slots = old.slots.ending(agreement.slots.placement().end);
        }
        self.take_hold_out(self.plan.table.choice_of(offer.negotiation, answer));
        let number = self.plan.placement.next_number();
        if let Some(pending) = pending {
            (agreement.created, agreement.version) = (pending.created, pending.version + 1);
        }
        // Its place was held.
        let mut settled = Vec::new();
        if let Some(old) = old.as_mut().filter(|_| begun) {
            settled = self.settle_guarantees(old, &mut agreement);
            (agreement.service, agreement.started) = (old.service, old.started);
            agreement.origin = Some(old.execution_id());
            agreement.job.clone_from(&old.job);
            for (index, number) in (0..agreement.slots.len())
                .zip(number..)
                .skip(agreement.slots_over())
            {
                self.put_slot_back(resource, &agreement, index, number);
            }
        } else {
            self.put_reserved_slot(&agreement, number, resource);
        }
        self.plan.insert(agreement.clone(), number);
        let mut events = vec![self.event_of_offer_accepted(&agreement, spender)];
        // One that could not be kept is over already.
        let broken = instance.agreement.filter(|_| old.is_none());
        if let Some(old) = instance.agreement {
            let why = broken.map_or("", |_| ", which could not be kept");
            events.push(self.event(EventKind::Superseded, format!("in place of {old}{why}")));
        }
        // The work that it takes over follows.
        let stored = Box::new(Agreement {
            service: ServiceState::NotReady,
            ..agreement.clone()
        });
        self.batch.push(match pending {
            Some(_) => Change::UpdateAgreement {
                agreement: stored,
                events,
            },
            None => Change::CreateAgreement {
                agreement: stored,
                document: acceptance.proposal.document,
                events,
            },
        });
        if let Some(old) = broken {
            let new = agreement.id;
            self.batch.push(Change::Supersede { old, new });
        }
        // Before its siblings, so that none of them counts on a place that is no longer there.
        self.note_offer_accepted(&offer, agreement.id);
        if let Some(old) = old {
            if begun {
                agreement = self.take_over(&old, agreement);
            }
            self.supersede_offers(old, settled, agreement.id, &terms)?;
        }
        let siblings = self.sibling_offers(&offer);
        self.release(siblings);
        Ok(DecisionStep::Done(agreement))
    }

    /// Why another end of an agreement that has begun cannot be had as it was offered, if so.
    fn why_not_as_offered(&self, old: &Agreement, terms: &OfferTerms) -> Option<&'static str> {
        if !lies_as_offered(old, terms) {
            return Some("the agreement that it changes has moved");
        }
        let keeps = self
            .plan
            .life
            .may_keep_until(&self.plan.schedules, old, terms.slots.placement().end);
        (!keeps).then_some("its nodes are no longer there after its slot")
    }

    /// The place that is held for an offer: as offered, or from now on where that time has come.
    fn place_held_for_offer(&self, resource: usize, terms: &OfferTerms) -> Placement {
        let mut slots = terms.slots.clone();
        let placement = slots.placement();
        let latest = terms.kept_until - placement.duration();
        let later = self.reservable_start(&terms.resource, placement.start, latest) - placement.start;
        for slot in slots.iter_mut() {
            slot.placement = Interval::of(slot.placement.start + later, slot.placement.duration());
        }
        Placement::at(resource, slots, terms.price)
    }

    /// An offer of a party's negotiation, and the negotiation.
    fn offer_in_negotiation(
        &self,
        party: &str,
        negotiation: Uuid,
        id: Uuid,
    ) -> Result<(NegotiationOffer, NegotiationInstance)> {
        let talks = self.plan.table.get(negotiation);
        let talks = talks.ok_or(Error::Lost(OfferLoss::Expired))?;
        if talks.instance.party != party {
            return Err(Error::NotFound);
        }
        let offer = talks.offers.get(&id).ok_or(Error::NotFound)?;
        Ok((offer.clone(), talks.instance.clone()))
    }

    /// The line of the timeline for an acceptance, which is counted against the cap of its key.
    fn event_of_offer_accepted(&mut self, agreement: &Agreement, spender: Option<Spender>) -> Event {
        self.spend(spender, agreement);
        self.event(EventKind::Accepted, self.acceptance_in_words(agreement))
    }

    /// How an agreement came to its place and its price, in words for its party.
    fn acceptance_in_words(&self, agreement: &Agreement) -> String {
        let detail = format!("placed on {} as it was offered", agreement.resource);
        // The price of work that goes on under another agreement includes the time that has passed.
        let price = agreement.origin.is_none().then(|| self.price_in_words(agreement));
        match price.flatten() {
            Some(price) => format!("{detail}; {price}"),
            None => detail,
        }
    }

    /// Lets go of an offer that cannot be kept, for a reason in words.
    pub(crate) fn withdraw(&mut self, offer: &NegotiationOffer, reason: Reason, binding: String) {
        self.release(vec![NegotiationOffer {
            state: OfferState::Rejected,
            refusal: Some(refusal_in_short(&bare_refusal(reason, binding))),
            ..offer.clone()
        }]);
    }

    /// Notes that an offer has been accepted.
    fn note_offer_accepted(&mut self, offer: &NegotiationOffer, agreement: Uuid) {
        let taken = NegotiationOffer {
            agreement: Some(agreement),
            released: Some(self.now),
            ..offer.clone()
        };
        self.batch.push(Change::UpdateOffer(Box::new(taken.clone())));
        self.plan.table.put(taken);
    }

    /// The other held offers of the choice of an offer.
    pub(crate) fn sibling_offers(&self, offer: &NegotiationOffer) -> Vec<NegotiationOffer> {
        let Some(answer) = offer.parent else {
            return Vec::new();
        };
        let choice = self.plan.table.choice_of(offer.negotiation, answer);
        let offers = self.plan.table.held_offers_of(choice);
        offers.filter(|other| other.id != offer.id).cloned().collect()
    }

    /// Ends an agreement that another one has taken the place of, for the fee that was quoted.
    pub(crate) fn supersede_offers(
        &mut self,
        mut old: Agreement,
        mut events: Vec<Event>,
        by: Uuid,
        terms: &OfferTerms,
    ) -> Result<()> {
        events.push(self.event(EventKind::Superseded, format!("by {by}")));
        if let Some(fee) = terms.fee {
            let why = terms.fee_why.as_ref();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            events.extend(self.charge(&old, PostingKind::Change, fee, &format!("change{why}")));
        }
        events.extend(self.must_close(&mut old, AgreementState::Complete, self.now)?);
        self.batch.push(Change::Supersede { old: old.id, new: by });
        self.update(old, events);
        Ok(())
    }
}

/// Gives a request the names of the agreement that has been pending for it: they are in the words that accepted the offer.
fn name_as_pending(request: &mut Request, pending: &Agreement) {
    request.id = pending.id;
    request.name.clone_from(&pending.name);
    request.initiator_id.clone_from(&pending.initiator_id);
}

/// Makes an agreement as its offer promised. The words that accept it may be understood in another way by now.
pub(crate) fn keep_promise(agreement: &mut Agreement, terms: &OfferTerms) {
    if let Some(promise) = terms.promise.as_deref().cloned() {
        agreement.template = promise.template;
        agreement.constraints = promise.constraints;
        agreement.job = promise.job;
        agreement.guarantees = promise.guarantees;
    }
}

/// Whether the slots of an agreement that are not over lie where they did when a change of its end was offered.
fn lies_as_offered(old: &Agreement, terms: &OfferTerms) -> bool {
    let place = |slot: &Slot| (slot.placement.start, slot.nodes);
    let [now, then] = [&old.slots, &terms.slots].map(|slots| slots.iter().map(place));
    let over = old.slots_over();
    now.skip(over).eq(then.skip(over))
}

/// Why an offer cannot be accepted, if so.
fn why_offer_is_lost(offer: &NegotiationOffer, now: Time) -> Option<OfferLoss> {
    if offer.agreement.is_some() {
        Some(OfferLoss::Accepted)
    } else if offer.is_withdrawn() {
        Some(OfferLoss::Withdrawn)
    } else if offer.state == OfferState::Rejected {
        Some(OfferLoss::Rejected)
    } else if offer.is_expired(now) {
        Some(OfferLoss::Expired)
    } else if offer.is_held() {
        None
    } else {
        Some(OfferLoss::NotHeld)
    }
}
