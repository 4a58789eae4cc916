//! An offer that is held is accepted.

use domain::agreement::{
    Agreement, BarredResource, Event, NegotiationInstance, NegotiationOffer, OfferState, OfferTerms, Slot,
};
use scheduler::{Interval, Reason, Time};
use uuid::Uuid;

use super::{Command, Decision};
use crate::context::View;
use crate::decider::{Decider, DecisionStep};
use crate::elsewhere::cluster;
use crate::elsewhere::promise::{
    Predecessor, Promise, name_request_of_promise, promise, put_promised_where_kept,
};
use crate::error::{Error, OfferLoss, Result};
use crate::life::{admission, succession};
use crate::limits::quotas;
use crate::placement::places::Placement;
use crate::placement::refuse::refused_as_barred_in_words;
use crate::placement::{choice, reserved_starts};
use crate::prices::placement_prices;
use crate::request::{AcceptedOffer, Idempotency, Request, Scope};
use crate::table::negotiations::offer_in_negotiation;
use crate::table::{holds, negotiations, replace};

/// An agreement is to be made of an offer that is held, which takes over its place; where it replaces another agreement, that one is
/// complete from then on.
///
/// # Errors
/// [`Error::Lost`] where it cannot be accepted any more, [`Error::NotFound`] where it is none
/// of the party's, [`Error::Repeated`] where its idempotency key has been used,
/// [`Error::Unavailable`].
#[derive(Debug, Clone)]
pub struct Accept {
    /// The negotiation.
    pub negotiation: Uuid,
    /// The offer.
    pub offer: Uuid,
    /// The request in the words that accept it. Only the agreement's name and document come from here. All else is as
    /// the stored offer promises.
    pub proposal: Request,
    /// The cluster that holds the offer, where it would refuse the job by now.
    pub barred: Option<BarredResource>,
}

impl Command for Accept {
    type Answer = AcceptedOffer;

    const COUNTED_AS: Option<&'static str> = Some("acceptance");

    fn scope(&self) -> Option<Scope> {
        self.proposal.idempotency.as_ref().map(Idempotency::scope)
    }

    fn awaited_agreement(&self) -> Option<Uuid> {
        Some(self.proposal.id)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let idempotency = self.proposal.idempotency.clone();
        decider.check_idempotency_key(idempotency.as_ref())?;
        let talks = decider.state.table.of_offer(self.offer);
        // A change takes the place of another agreement.
        if talks.is_none_or(|talks| talks.instance.agreement.is_none()) {
            quotas::check_agreements_quota(decider.view(), &self.proposal.party, Some(self.proposal.id))?;
        }
        let agreement = match make_accepted_agreement(decider, self, None)? {
            DecisionStep::Done(agreement) => agreement,
            DecisionStep::Wait(acceptance) => return Ok(DecisionStep::Wait(acceptance)),
        };
        let accepted = AcceptedOffer::alone(agreement);
        decider.remember_idempotent_answer(idempotency, &accepted);
        admission::note_admitted_booking(decider, &accepted);
        Ok(DecisionStep::Done(accepted))
    }
}

/// The agreement of an offer that is held for its party: a new one, or the one that has been `pending` for it. Its cluster may
/// have to hold its nodes first.
pub(super) fn make_accepted_agreement(
    decider: &mut Decider<'_>,
    mut acceptance: Accept,
    pending: Option<&Agreement>,
) -> Result<DecisionStep<Agreement, Accept>> {
    if let Some(pending) = pending {
        name_request_of_promise(&mut acceptance.proposal, pending);
    }
    let HeldOffer {
        offer,
        instance,
        terms,
        answer,
        resource,
        replaced,
    } = held_offer_to_accept(decider, &acceptance, pending)?;
    let begun = replaced.as_ref().is_some_and(Agreement::is_being_carried_out);
    let proposal = &acceptance.proposal;
    let mut admitted = place_held_for_accepted(decider.view(), resource, &terms);
    if let Some(old) = replaced.as_ref().filter(|_| begun) {
        let end = terms.slots.placement().end;
        if let Some(why) = why_not_accepted_as_offered(decider.view(), old, &terms) {
            negotiations::withdraw_offer(
                &mut decider.bargaining(),
                &offer,
                Reason::NoCapacityInWindow,
                why.to_owned(),
            );
            return Err(Error::Lost(OfferLoss::Withdrawn));
        }
        // A slot that is over by now stays as it was.
        admitted.slots = old.slots.ending(end);
    }
    let mut agreement =
        admission::make_admitted_agreement(&mut decider.search(), proposal, terms.window(), &admitted);
    succession::succeed_to_promise(&mut agreement, &terms);
    choice::settle_room_of_choice(decider.view(), &mut agreement);
    choice::keep_shape_elsewhere(decider.view(), &mut agreement);
    decider.state.schedules.note_estimate(&mut agreement);
    let spender = acceptance.proposal.spender;
    if cluster::wait_for_cluster_to_accept(
        decider,
        &offer,
        (&agreement, spender),
        &admitted,
        replaced.as_ref(),
    )? {
        return Ok(DecisionStep::Wait(acceptance));
    }
    if let Some(reserved) = decider.state.elsewhere.take(agreement.id) {
        agreement.slots = reserved.admitted.slots;
    }
    let mut old = replace::lift_replaced(&mut decider.search(), &instance)?;
    if let Some(old) = old.as_ref().filter(|_| begun) {
        agreement.slots = old.slots.ending(agreement.slots.placement().end);
    }
    let choice = decider.state.table.choice_of(offer.negotiation, answer);
    holds::take_hold_out(&mut decider.bargaining(), choice);
    let number = decider.state.placement.next_number();
    if let Some(pending) = pending {
        (agreement.created, agreement.version) = (pending.created, pending.version + 1);
    }
    // Its place was held.
    let mut settled = Vec::new();
    if let Some(old) = old.as_mut().filter(|_| begun) {
        settled = accept_for_begun_work(decider, old, (&mut agreement, number), resource);
    } else {
        put_promised_where_kept(&mut decider.search(), &agreement, number, resource);
    }
    let promise_of_offer = Promise {
        detail: acceptance_in_words(decider.view(), &agreement),
        offer: &offer,
        terms: &terms,
        spender,
        agreement,
        number,
        document: pending.is_none().then_some(acceptance.proposal.document),
        replaced: instance.agreement,
        predecessor: old.map(|agreement| Predecessor {
            agreement,
            goes_on: begun,
            settled,
        }),
    };
    promise(decider, promise_of_offer).map(DecisionStep::Done)
}

/// An offer that can be accepted, with what it is about.
struct HeldOffer {
    offer: NegotiationOffer,
    instance: NegotiationInstance,
    terms: OfferTerms,
    /// The offer that it answers.
    answer: Uuid,
    /// The place of its resource.
    resource: usize,
    /// The agreement that it replaces.
    replaced: Option<Agreement>,
}

/// The offer that is accepted, where it is held for its party and can be accepted.
fn held_offer_to_accept(
    decider: &mut Decider<'_>,
    acceptance: &Accept,
    pending: Option<&Agreement>,
) -> Result<HeldOffer> {
    let proposal = &acceptance.proposal;
    let (offer, instance) = offer_in_negotiation(
        decider.view(),
        &proposal.party,
        acceptance.negotiation,
        acceptance.offer,
    )?;
    let (Some(terms), Some(answer)) = (offer.terms.clone(), offer.parent) else {
        return Err(Error::Lost(OfferLoss::NotHeld));
    };
    if let Some(why) = why_not_to_accept(&offer, decider.present_second()) {
        return Err(Error::Lost(why));
    }
    admission::check_id_to_admit(
        decider.view(),
        proposal,
        &[instance.agreement, pending.map(|pending| pending.id)],
    )?;
    let resource = decider.state.schedules.required_place_of(&terms.resource);
    let resource = resource.ok_or(Error::Unavailable)?;
    let replaced = replace::agreement_to_replace(&mut decider.search(), &instance)?;
    let begun = replaced.as_ref().is_some_and(Agreement::is_being_carried_out);
    // Running work is not submitted again.
    if let Some(why) = refused_as_barred_in_words(acceptance.barred.as_slice()).filter(|_| !begun) {
        negotiations::withdraw_offer(
            &mut decider.bargaining(),
            &offer,
            Reason::ResourceNotOffered,
            why.clone(),
        );
        return Err(Error::Lost(OfferLoss::Barred(why)));
    }
    Ok(HeldOffer {
        offer,
        instance,
        terms,
        answer,
        resource,
        replaced,
    })
}

/// Has an agreement take over the work of another one that has begun, and the rest of its slots. Returns the lines for the other one's
/// timeline.
fn accept_for_begun_work(
    decider: &mut Decider<'_>,
    old: &mut Agreement,
    (agreement, number): (&mut Agreement, u64),
    at: usize,
) -> Vec<Event> {
    let settled = succession::succeed_to_work(decider, old, agreement);
    let slots = (0..agreement.slots.len()).zip(number..);
    for (index, number) in slots.skip(agreement.slots_over()) {
        replace::put_replaced_slot_back(&mut decider.search(), at, agreement, index, number);
    }
    settled
}

/// Why another end of an agreement that has begun cannot be had as it was offered, if so.
fn why_not_accepted_as_offered(view: View<'_>, old: &Agreement, terms: &OfferTerms) -> Option<&'static str> {
    if !is_unmoved_for_acceptance(old, terms) {
        return Some("the agreement that it changes has moved");
    }
    let keeps = view
        .life
        .may_keep_held_nodes_until(view.schedules, old, terms.slots.placement().end);
    (!keeps).then_some("its nodes are no longer there after its slot")
}

/// The place that is held for an offer: as offered, or from now on where that time has come.
fn place_held_for_accepted(view: View<'_>, resource: usize, terms: &OfferTerms) -> Placement {
    let mut slots = terms.slots.clone();
    let placement = slots.placement();
    let latest = terms.kept_until - placement.duration();
    let later =
        reserved_starts::reservable_start(view, &terms.resource, placement.start, latest) - placement.start;
    for slot in slots.iter_mut() {
        slot.placement = Interval::of(slot.placement.start + later, slot.placement.duration());
    }
    Placement::at(resource, slots, terms.price)
}

/// How an agreement came to its place and its price, in words for its party.
fn acceptance_in_words(view: View<'_>, agreement: &Agreement) -> String {
    let detail = format!("placed on {} as it was offered", agreement.resource);
    // The price of work that goes on under another agreement includes the time that has passed.
    let price = agreement
        .origin
        .is_none()
        .then(|| placement_prices::placement_price_in_words(view, agreement));
    match price.flatten() {
        Some(price) => format!("{detail}; {price}"),
        None => detail,
    }
}

/// Whether the slots of an agreement that are not over lie where they did when a change of its end was offered.
fn is_unmoved_for_acceptance(old: &Agreement, terms: &OfferTerms) -> bool {
    let place = |slot: &Slot| (slot.placement.start, slot.nodes);
    let [now, then] = [&old.slots, &terms.slots].map(|slots| slots.iter().map(place));
    let over = old.slots_over();
    now.skip(over).eq(then.skip(over))
}

/// Why an offer cannot be accepted, if so.
fn why_not_to_accept(offer: &NegotiationOffer, now: Time) -> Option<OfferLoss> {
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
