//! What a peer, another domain, has to hold before it is promised: it carries an agreement out for us by an agreement of its own with us.
//!
//! Ours is stored as Pending, with the peer's offer that it is to accept, before the peer is asked. It is in force only once the
//! peer's is known to be made. Its slot lies on the peer's resource here, where nothing moves it but the peer's word.

use domain::agreement::{Agreement, AtPeer, Event, NegotiationOffer};
use domain::change::Change;
use uuid::Uuid;

use crate::context::{Search, View};
use crate::decider::Decider;
use crate::elsewhere::promise::{Predecessor, Promise, name_request_of_promise, promise};
use crate::error::{Error, OfferLoss, Result};
use crate::life::{admission, keep_offers, starts, succession};
use crate::limits::spending;
use crate::placement::places::Placement;
use crate::placement::{choice, peer_places, trial};
use crate::prices::placement_prices;
use crate::request::Request;
use crate::table::{holds, replace};

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

/// Brings a pending agreement into force whose peer's agreement is made, also where its offer has lapsed meanwhile.
///
/// # Errors
/// [`Error::Unfit`] where there is no room for it on the peer's resource here: the peer's agreement is to be ended.
pub(crate) fn make_agreement_at_peer(
    decider: &mut Decider<'_>,
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
    let offer = standing_offer_of_peer(decider.view(), &offer).unwrap_or(offer);
    if offer.agreement.is_some() {
        return Err(Error::Lost(OfferLoss::Accepted));
    }
    let is_changed_there = terms.peer.as_ref().is_some_and(|held| held.replaces.is_some());
    let mut old = replaced.and_then(|old| decider.state.agreements.get(old).cloned());
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
    if let Err(why) = spending::check_spending_cap(decider.view(), proposal.spender, terms.price)
        && !is_changed_there
    {
        return Err(Error::Unfit(why.binding));
    }
    let at = decider.state.schedules.required_place_of(&terms.resource);
    let at = at.ok_or(Error::Unavailable)?;
    name_request_of_promise(&mut proposal, pending);
    let admitted = Placement::at(at, terms.slots.clone(), terms.price);
    let mut agreement =
        admission::make_admitted_agreement(&mut decider.search(), &proposal, terms.window(), &admitted);
    succession::succeed_to_promise(&mut agreement, &terms);
    choice::keep_shape_elsewhere(decider.view(), &mut agreement);
    (agreement.created, agreement.version) = (pending.created, pending.version + 1);
    agreement.fixed = true;
    let held = offer
        .parent
        .filter(|_| standing_offer_of_peer(decider.view(), &offer).is_some());
    let held = held.map(|answer| decider.state.table.choice_of(offer.negotiation, answer));
    let number = decider.state.placement.next_number();
    if let Some(choice) = held {
        holds::take_hold_out(&mut decider.bargaining(), choice);
    }
    let put = match old.as_mut().filter(|_| begun) {
        Some(old) => go_on_at_same_peer(decider, old, (&mut agreement, number), at),
        None => {
            try_replace_at_peer(&mut decider.search(), old.as_ref(), (&agreement, number), at).then(Vec::new)
        }
    };
    let Some(settled) = put else {
        if let Some(choice) = held {
            keep_offers::keep_offers_again(decider, choice, "its acceptance has failed");
        }
        return Err(Error::Unfit(format!("{} has no room for it here", row.peer)));
    };
    let promise_of_offer = Promise {
        detail: acceptance_by_peer_in_words(decider.view(), &agreement, &row.peer),
        offer: &offer,
        terms: &terms,
        spender: proposal.spender,
        agreement,
        number,
        document: None,
        replaced,
        predecessor: old.map(|agreement| Predecessor {
            agreement,
            goes_on: begun,
            settled,
        }),
    };
    let agreement = promise(decider, promise_of_offer)?;
    decider.batch.push(Change::PutAtPeer(row));
    Ok(agreement)
}

/// Has an agreement take over the work of another one that has begun at the same peer, and its place. Returns the lines for the
/// other one's timeline; none where there is no room for it here.
fn go_on_at_same_peer(
    decider: &mut Decider<'_>,
    old: &mut Agreement,
    (agreement, number): (&mut Agreement, u64),
    at: usize,
) -> Option<Vec<Event>> {
    agreement.slots = old.slots.ending(agreement.slots.placement().end);
    let put = trial::run_trial(&mut decider.search(), |search| {
        replace::lift_replaced_agreement(search, old.id).ok()?;
        try_put_rest_at_peer(search, (agreement, number), at).then_some(())
    });
    put?;
    Some(succession::succeed_to_work(decider, old, agreement))
}

/// Puts the rest of a slot that has begun at a peer where an agreement goes on with it; whether there was room.
pub(crate) fn try_put_rest_at_peer(
    search: &mut Search<'_>,
    (agreement, number): (&Agreement, u64),
    at: usize,
) -> bool {
    let now = search.present_second();
    let rest = replace::running_to_replace(search.view(), at, agreement, number);
    search.schedules.put(at, now, &rest, rest.ready)
}

/// Puts an agreement where its peer has it, with the one that it replaces out of the plan; whether there was room.
pub(crate) fn try_replace_at_peer(
    search: &mut Search<'_>,
    old: Option<&Agreement>,
    (agreement, number): (&Agreement, u64),
    at: usize,
) -> bool {
    let put = trial::run_trial(search, |search| {
        if let Some(old) = old {
            // One at its end has nothing left to give up.
            let _ = replace::lift_replaced_agreement(search, old.id);
        }
        peer_places::try_put_in_peer_place(search, agreement, number, at).then_some(())
    });
    put.is_some()
}

/// How a peer came to carry an agreement out, and the price of the agreement, in words for its party.
fn acceptance_by_peer_in_words(view: View<'_>, agreement: &Agreement, peer: &str) -> String {
    let detail = format!("{peer} carries it out, as it was offered");
    match placement_prices::placement_price_in_words(view, agreement) {
        Some(price) => format!("{detail}; {price}"),
        None => detail,
    }
}

/// An offer as it stands in its negotiation; none where that is over.
fn standing_offer_of_peer(view: View<'_>, offer: &NegotiationOffer) -> Option<NegotiationOffer> {
    let talks = view.table.get(offer.negotiation)?;
    talks.offers.get(&offer.id).cloned()
}

/// Begins a slot at a peer, however late it is here. One that is over already waits until it is known how it ended there.
pub(crate) fn begin_at_peer(decider: &mut Decider<'_>, agreement: Agreement) -> Option<Agreement> {
    let is_over = agreement.job.is_some() && agreement.slot().end <= decider.present_second();
    if is_over {
        None
    } else {
        starts::begin_slot(decider, agreement)
    }
}

#[cfg(test)]
mod tests;
