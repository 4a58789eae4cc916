//! The acceptance of a held offer waits for its cluster, too. Where the offer replaces an agreement, the nodes of the old
//! agreement are held already: the cluster has to hold the further nodes of its successor, and the agreement stays as it is
//! until then.

use domain::agreement::{Agreement, NegotiationOffer, Slot, Spender, held_stretches};
use scheduler::Reason;

use crate::context::View;
use crate::decider::Decider;
use crate::error::{Error, OfferLoss, Result};
use crate::limits::spending;
use crate::schedules::need::Placement;
use crate::table::negotiate;
use crate::waiting::{BEGINS_AFTER, ReplacedAgreement, WaitingCommand, refused_slots_in_words};

/// Whether the acceptance of an offer waits until the cluster holds the offered nodes, as far as the agreement that it
/// replaces has not got them.
///
/// # Errors
/// [`Error::Refused`] where its price passes the cap of its key; [`Error::Lost`] where the cluster does not hold them; the offer is
/// released then.
pub(crate) fn waits_to_accept(
    decider: &mut Decider<'_>,
    offer: &NegotiationOffer,
    (agreement, spender): (&Agreement, Option<Spender>),
    admitted: &Placement,
    replaced: Option<&Agreement>,
) -> Result<bool> {
    spending::check_cap(decider.view(), spender, agreement.price)?;
    let id = agreement.id;
    if decider.state.waiting.has_reserved(id) {
        return Ok(false);
    }
    if let Some(why) = decider.state.waiting.tried(id, decider.now).transpose() {
        let why = why.map_or_else(|why| why, |tried| refused_slots_in_words(tried.slots));
        negotiate::withdraw(&mut decider.bargaining(), offer, Reason::NoCapacityInWindow, why);
        return Err(Error::Lost(OfferLoss::NotReserved));
    }
    // One that lapses before its nodes can be held is accepted as it stands.
    let lapses = offer
        .expires
        .is_some_and(|at| at <= decider.present_second() + 2 * BEGINS_AFTER);
    let replaced = replaced.filter(|replaced| replaced.resource == agreement.resource);
    if lapses || !needs_nodes(decider.view(), agreement, replaced) {
        return Ok(false);
    }
    if decider.state.waiting.is_full() {
        return Err(Error::Unavailable);
    }
    let (new, admitted) = (agreement.clone(), admitted.clone());
    decider.state.waiting.wait_for(WaitingCommand {
        replaces: replaced.map(|agreement| ReplacedAgreement {
            work: agreement.execution_id(),
            has_begun: agreement.is_being_carried_out(),
        }),
        ..WaitingCommand::new(new, admitted, Vec::new(), None, decider.now)
    });
    let (limits, waiting) = (&mut decider.state.limits, &decider.state.waiting);
    spending::note_waiting_price(limits, |id| waiting.has(id), spender, agreement);
    Ok(true)
}

/// Whether nodes have to be reserved for an agreement soon that the one that it replaces there does not have.
fn needs_nodes(view: View<'_>, agreement: &Agreement, replaced: Option<&Agreement>) -> bool {
    let now = view.present_second();
    let Some(near) = view.waiting.near_until(&agreement.resource, now) else {
        return false;
    };
    let at = view.schedules.named(&agreement.resource);
    let base = replaced.map_or_else(Vec::new, |old| {
        let slots = old.slots.iter().enumerate();
        let held = slots.filter(|(index, slot)| {
            // A slot that has begun has its nodes, also where its cluster does not say so.
            let runs = slot.ended.is_none() && *index < old.slots_begun();
            runs || at.is_some_and(|at| at.holds_slot(old, *index, now))
        });
        held.map(|(_, slot)| (slot.occupied(), slot.nodes)).collect()
    });
    let to_come = agreement.slots.iter().filter(|slot| slot.ended.is_none());
    let to_come: Vec<_> = to_come.map(Slot::stretch).collect();
    let needed = held_stretches(&to_come, &base);
    needed.iter().any(|(slot, _)| slot.start <= near)
}
