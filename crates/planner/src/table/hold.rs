//! The nodes that are kept for offers that can still be accepted. The offers of one answer are alternatives, and so are all
//! offers for a change of one agreement: they are one choice. So together they keep the pointwise maximum; in the schedule of
//! their resource that stands as requests for fixed slots.

use std::collections::BTreeSet;

use domain::agreement::{Agreement, NegotiationOffer, OfferTerms, held_stretches, stretches_held_beyond};
use domain::change::Change;
use domain::clock::{MICROS_PER_SECOND, second_after};
use scheduler::{Interval, Move, Request};
use uuid::Uuid;

use crate::context::{Bargaining, Search};
use crate::placement::find;
use crate::table::holds::HeldStretch;

/// Keeps the nodes that an offer needs beyond the hold of the other offers of its choice. Returns the moves of others;
/// none where there is no place.
pub(crate) fn keep_beside_others(
    search: &mut Search<'_>,
    (negotiation, answer): (Uuid, Uuid),
    terms: &OfferTerms,
    (is_new, numbers): (bool, &mut std::ops::RangeFrom<u64>),
) -> Option<(Vec<HeldStretch>, Vec<Move>)> {
    let now = search.present_second();
    let base = search
        .table
        .replaced_stretches(search.agreements, negotiation, &terms.resource);
    if !base.is_empty() {
        pin_renegotiated(search, negotiation);
    }
    let choice = search.table.choice_of(negotiation, answer);
    let mut offers = search.table.stretches_to_hold(negotiation, choice);
    let mut offers = offers.remove(&terms.resource).unwrap_or_default();
    let less = held_stretches(&offers, &base);
    offers.extend(terms.kept());
    let at = search.schedules.place_of(&terms.resource)?;
    let end = terms.slots.placement().end;
    let old = search
        .table
        .renegotiated(search.agreements, negotiation)
        .filter(|_| !base.is_empty());
    if old.is_some_and(|old| !search.life.may_keep_until(search.schedules, old, end)) {
        return None;
    }
    let resource = &search.schedules.get(at)?.resource;
    let filters = terms
        .promise
        .iter()
        .flat_map(|promise| &promise.constraints.filters);
    let mut required = filters.map(|filter| filter.requirement(terms.nodes()));
    let is_refused = resource.is_retired()
        || is_new && resource.is_frozen()
        || !required.all(|asked| resource.meets(&asked));
    let (mut added, mut moves) = (Vec::new(), Vec::new());
    for (interval, nodes) in stretches_held_beyond(&held_stretches(&offers, &base), &less) {
        // Its past part needs no hold.
        let stretch = (Interval::new(interval.start.max(now), interval.end), nodes);
        if stretch.0.is_empty() {
            continue;
        }
        if is_refused {
            return None;
        }
        let held = HeldStretch {
            resource: terms.resource.clone(),
            number: numbers.next()?,
            stretch,
        };
        let window = Interval::new(terms.ready, terms.deadline);
        moves.extend(make_place(search, at, &held.request(now), window)?);
        added.push(held);
    }
    Some((added, moves))
}

/// Puts a stretch that is to be kept in its place. Returns the moves of others. Where the place is free, no moves are needed
/// and nothing is searched. A request quoted in a window may get its place only with this window: an order by deadlines
/// places others before a request that has all of the window, and refuses a request that has no other place.
fn make_place(search: &mut Search<'_>, at: usize, request: &Request, window: Interval) -> Option<Vec<Move>> {
    let now = search.present_second();
    let resources = &mut *search.schedules;
    if resources.put(at, now, request, request.ready) {
        return Some(Vec::new());
    }
    if let Some((_, moved)) = resources.submit(at, now, request) {
        return Some(moved);
    }
    // A request with a budget was quoted from the time on at which it can pay.
    let since = Some(request.ready).filter(|ready| *ready != window.start);
    let mut quoted = [window.start].into_iter().chain(since).map(|ready| Request {
        ready,
        deadline: window.end,
        ..*request
    });
    let quoted = quoted.find(|quoted| resources.would_start(at, now, quoted) == Some(request.ready))?;
    let (_, moved) = resources.submit(at, now, &quoted)?;
    resources.vacate(at, now, request.id);
    resources.put_back(at, now, request, request.ready);
    Some(moved)
}

/// Lets go of the holds of offers, as of an instant, and records it in the store. Others move up into the free
/// nodes.
pub(crate) fn release(bargaining: &mut Bargaining<'_>, offers: Vec<NegotiationOffer>) {
    let mut choices = BTreeSet::new();
    for mut offer in offers {
        if offer.is_held() {
            let lapsed = offer
                .expires
                .map_or(bargaining.now, |at| at.seconds() * MICROS_PER_SECOND);
            // A clock that was set back does not make it end before it began.
            offer.released = Some(lapsed.min(bargaining.now).max(offer.held.unwrap_or(lapsed)));
            choices.extend(offer.parent.map(|answer| {
                let choice = bargaining.table.choice_of(offer.negotiation, answer);
                (choice, offer.negotiation)
            }));
        }
        bargaining
            .batch
            .push(Change::UpdateOffer(Box::new(offer.clone())));
        bargaining.table.put(offer);
    }
    for (choice, negotiation) in choices {
        shrink_hold(bargaining, negotiation, choice);
    }
}

/// Keeps for a choice only as much as its held offers still need.
fn shrink_hold(bargaining: &mut Bargaining<'_>, negotiation: Uuid, choice: Uuid) {
    let now = bargaining.present_second();
    let kept_so_far = bargaining.table.let_go(choice);
    let needed = bargaining
        .table
        .nodes_to_hold(bargaining.agreements, negotiation, choice);
    if needed.is_empty() {
        let end = second_after(bargaining.now);
        for held in kept_so_far {
            if let Some(at) = bargaining.schedules.required_place_of(&held.resource) {
                bargaining.schedules.free(at, end, held.number);
            }
        }
        unpin_renegotiated(bargaining, negotiation);
        return;
    }
    for held in kept_so_far {
        bargaining.schedules.vacate_on(&held.resource, now, held.number);
    }
    if let Err(why) = bargaining
        .table
        .hold_again(bargaining.schedules, choice, needed, now)
    {
        bargaining
            .schedules
            .note_impossible(|| format!("the hold of {choice} was given up for a moment: {why}"));
    }
}

/// Takes the hold of a choice out of the plan, for the agreement that takes it over.
pub(crate) fn take_hold_out(bargaining: &mut Bargaining<'_>, choice: Uuid) {
    for held in bargaining.table.let_go(choice) {
        bargaining
            .schedules
            .vacate_on(&held.resource, bargaining.present_second(), held.number);
    }
}

/// Takes the hold of a choice out of the schedules, in a trial that does not stay: it is still known.
pub(crate) fn vacate_hold(search: &mut Search<'_>, choice: Uuid) {
    for held in search.table.holds().of(choice).to_vec() {
        let at = search.schedules.place_of(&held.resource);
        if at.is_some_and(|at| search.schedules.has_request(at, held.number)) {
            search
                .schedules
                .vacate_on(&held.resource, search.present_second(), held.number);
        }
    }
}

/// Frees the nodes of all that is held for offers to a party.
pub(crate) fn vacate_holds_of(search: &mut Search<'_>, party: &str) {
    for choice in search.table.choices_held(party) {
        vacate_hold(search, choice);
    }
}

/// Takes the holds on a resource in a time out of the plan, with all other holds of the same choices. Returns these
/// choices.
pub(crate) fn take_holds_out_in(
    bargaining: &mut Bargaining<'_>,
    resource: &str,
    time: Interval,
) -> Vec<Uuid> {
    let here = bargaining.table.holds().on(resource);
    let here = here.take_while(|((start, _), _)| *start < time.end);
    let here = here.filter(|((start, _), (end, _))| Interval::new(*start, *end).meets(time));
    let choices: BTreeSet<Uuid> = here.map(|(_, (_, choice))| *choice).collect();
    for choice in &choices {
        take_hold_out(bargaining, *choice);
    }
    choices.into_iter().collect()
}

/// Keeps an agreement that is being renegotiated where it lies, as long as offers count on its place.
fn pin_renegotiated(search: &mut Search<'_>, negotiation: Uuid) {
    if let Some(agreement) = search.table.renegotiated(search.agreements, negotiation).cloned() {
        search.placement.fix(search.schedules, &agreement);
    }
}

/// Lets it move again.
pub(crate) fn unpin_renegotiated(bargaining: &mut Bargaining<'_>, negotiation: Uuid) {
    let now = bargaining.present_second();
    let moves = |agreement: &&Agreement| {
        agreement.has_more_to_begin() && !agreement.fixed && !bargaining.table.is_counted_on(agreement.id)
    };
    let agreement = bargaining
        .table
        .renegotiated(bargaining.agreements, negotiation)
        .filter(moves);
    let Some(agreement) = agreement.cloned() else {
        return;
    };
    if let Some((at, _)) = bargaining
        .placement
        .planned_slot(bargaining.schedules, &agreement, 0)
    {
        for (request, start) in
            find::take_slots_out(&mut bargaining.search(), &agreement, agreement.slots_begun(), now)
        {
            bargaining.schedules.put_back(at, now, &request, start);
        }
    }
}
