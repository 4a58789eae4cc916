//! What a cluster has to hold before it is promised. On a cluster that others use, a slot that begins soon may be gone before the cluster
//! holds its nodes. So the command that asks for such a slot waits here: the plan keeps the slot, nothing is stored, and the
//! resource's executor reserves the nodes as it does for agreements ([`domain::resources::ResourceAgreements`]). When it holds them the command is
//! decided again, with this slot. Where the cluster refuses, it is decided anew after the next report of the nodes.
//!
//! The acceptance of a held offer waits, too. Where the offer replaces an agreement, the nodes of the old agreement are held already: the
//! cluster has to hold the further nodes of its successor, and the agreement stays as it is until then.

use domain::agreement::{Agreement, NegotiationOffer, Slot, Spender, held_stretches};
use scheduler::{Move, Reason, Time};
use uuid::Uuid;

use crate::context::{Search, View};
use crate::decider::Decider;
use crate::elsewhere::HolderWord;
use crate::elsewhere::promise::put_promised_where_kept;
use crate::elsewhere::waiting_commands::{
    ReplacedAgreement, ReservationState, ReservationTries, ReservedSlot, TRIES_MAX, WAITING_MAX,
    WaitingCommand, waiting_command_refused_in_words,
};
use crate::error::{Error, OfferLoss, Result};
use crate::life::{admission, update};
use crate::limits::spending;
use crate::placement::places::Placement;
use crate::placement::reserved_starts::BEGINS_AFTER;
use crate::placement::{choice, trial};
use crate::refusal::{Refusal, bare_refusal};
use crate::request::Request;
use crate::schedules::need::{Need, requests_of_agreement};
use crate::table::negotiations;

/// Notes for which commands a resource holds the nodes.
pub(crate) fn note_reserved_on_cluster(decider: &mut Decider<'_>, resource: &str) {
    let now = decider.present_second();
    let Some(resource_plan) = decider.state.schedules.named(resource) else {
        return;
    };
    let near = decider.state.elsewhere.near_until(resource, now);
    let agreements = &decider.state.agreements;
    // A slot at a later time is reserved when that time comes. An agreement that has gone elsewhere since, or is over, does not count.
    let lacks_nodes = |moved: &Agreement| {
        let present = agreements.get(moved.id).filter(|plan| plan.resource == resource);
        let waits = present.filter(|plan| plan.is_waiting() || plan.is_being_carried_out());
        waits.is_some_and(|plan| !resource_plan.holds(plan, near, now))
    };
    decider.state.elsewhere.note_reserved(resource, |waiting| {
        resource_plan.holds(&waiting.agreement, near, now) && !waiting.moved.iter().any(lacks_nodes)
    });
}

/// Finds the place of an offer, as [`admission::admit_proposal_or`] does; none where its cluster has to hold it first, which the command
/// waits for from now on.
pub(crate) fn admit_or_wait_for_cluster(
    decider: &mut Decider<'_>,
    proposal: &Request,
    refused: impl FnOnce(&mut Search<'_>, &Need<'_>, Reason) -> Refusal,
) -> Result<Option<(Agreement, Placement, u64)>, Refusal> {
    if let Some(reserved) = decider.state.elsewhere.take(proposal.id) {
        let number = decider.state.placement.next_number();
        let mut agreement = admission::make_admitted_agreement(
            &mut decider.search(),
            proposal,
            reserved.window,
            &reserved.admitted,
        );
        choice::settle_room_of_choice(decider.view(), &mut agreement);
        choice::keep_shape_elsewhere(decider.view(), &mut agreement);
        decider.state.schedules.note_estimate(&mut agreement);
        put_promised_where_kept(
            &mut decider.search(),
            &agreement,
            number,
            reserved.admitted.resource,
        );
        return Ok(Some((agreement, reserved.admitted, number)));
    }
    let tried = decider.state.elsewhere.tried(proposal.id, decider.now);
    let tried = tried.map_err(|why| bare_refusal(Reason::NoCapacityInWindow, why))?;
    let not_before = tried.and_then(|tried| tried.not_before);
    decider.state.elsewhere.begin_after_refused(not_before);
    let admitted = admission::admit_proposal_or(decider, proposal, refused);
    decider.state.elsewhere.begin_after_refused(None);
    let (agreement, admitted, number) = match (admitted, tried) {
        (Ok(admitted), _) => admitted,
        (Err(refusal), Some(tried)) if may_cluster_have_later_slot(refusal.reason) => {
            return Err(bare_refusal(
                Reason::NoCapacityInWindow,
                waiting_command_refused_in_words(tried.slots),
            ));
        }
        (Err(refusal), _) => return Err(refusal),
    };
    let now = decider.present_second();
    let elsewhere = &decider.state.elsewhere;
    if !elsewhere.is_needed_with_others(&agreement, &admitted, now) {
        return Ok(Some((agreement, admitted, number)));
    }
    if decider.state.elsewhere.is_full() {
        update::update_moved_and_transferred(decider, &admitted, agreement.id);
        for request in requests_of_agreement(&agreement, number) {
            decider
                .state
                .schedules
                .vacate(admitted.resource, decider.present_second(), request.id);
        }
        let many = format!("{WAITING_MAX} requests wait for their clusters; another try may succeed");
        return Err(bare_refusal(Reason::NoCapacityInWindow, many));
    }
    let waiting = keep_until_cluster_reserves(decider, agreement, admitted, number, tried);
    wait_for_cluster(decider, proposal.spender, waiting);
    Ok(None)
}

/// Has a command wait, and counts its price for its key.
fn wait_for_cluster(decider: &mut Decider<'_>, spender: Option<Spender>, waiting: WaitingCommand) {
    let (limits, others) = (&mut decider.state.limits, &decider.state.elsewhere);
    spending::note_spending_that_waits(limits, |id| others.has(id), spender, &waiting.agreement);
    decider.state.elsewhere.wait_for(waiting);
}

/// Keeps the slots of an agreement that were just found for it; they do not move.
fn keep_until_cluster_reserves(
    decider: &mut Decider<'_>,
    agreement: Agreement,
    mut admitted: Placement,
    number: u64,
    tried: Option<ReservationTries>,
) -> WaitingCommand {
    let now = decider.present_second();
    let moved = update::update_moved_and_transferred(decider, &admitted, agreement.id);
    let moves = std::mem::take(&mut admitted.moved);
    admitted.transferred.clear();
    admitted.new_shapes.clear();
    let at = admitted.resource;
    let mut numbers = Vec::new();
    for (request, (slot, nodes)) in requests_of_agreement(&agreement, number)
        .into_iter()
        .zip(agreement.loads())
    {
        decider.state.schedules.vacate(at, now, request.id);
        let fixed = scheduler::Request {
            id: decider.state.table.next_hold_number(),
            ready: slot.start,
            deadline: slot.end,
            nodes,
            ..request
        };
        decider.state.schedules.put_back(at, now, &fixed, slot.start);
        numbers.push(fixed.id);
    }
    WaitingCommand {
        moved,
        moves,
        ..WaitingCommand::new(agreement, admitted, numbers, tried, decider.now)
    }
}

/// Has the acceptance of an offer wait until the cluster holds the offered nodes, as far as the agreement that it replaces has not got them;
/// whether it waits.
///
/// # Errors
/// [`Error::Refused`] where its price passes the cap of its key; [`Error::Lost`] where the cluster does not hold them; the offer is
/// released then.
pub(crate) fn wait_for_cluster_to_accept(
    decider: &mut Decider<'_>,
    offer: &NegotiationOffer,
    (agreement, spender): (&Agreement, Option<Spender>),
    admitted: &Placement,
    replaced: Option<&Agreement>,
) -> Result<bool> {
    spending::check_spending_cap(decider.view(), spender, agreement.price)?;
    let id = agreement.id;
    if decider.state.elsewhere.has_reserved(id) {
        return Ok(false);
    }
    if let Some(why) = decider.state.elsewhere.tried(id, decider.now).transpose() {
        let why = why.map_or_else(|why| why, |tried| waiting_command_refused_in_words(tried.slots));
        negotiations::withdraw_offer(&mut decider.bargaining(), offer, Reason::NoCapacityInWindow, why);
        return Err(Error::Lost(OfferLoss::NotReserved));
    }
    // One that lapses before its nodes can be held is accepted as it stands.
    let lapses = offer
        .expires
        .is_some_and(|at| at <= decider.present_second() + 2 * BEGINS_AFTER);
    let replaced = replaced.filter(|replaced| replaced.resource == agreement.resource);
    if lapses || !needs_nodes_of_cluster(decider.view(), agreement, replaced) {
        return Ok(false);
    }
    if decider.state.elsewhere.is_full() {
        return Err(Error::Unavailable);
    }
    let (new, admitted) = (agreement.clone(), admitted.clone());
    let waiting = WaitingCommand {
        replaces: replaced.map(|agreement| ReplacedAgreement {
            work: agreement.execution_id(),
            has_begun: agreement.is_being_carried_out(),
        }),
        ..WaitingCommand::new(new, admitted, Vec::new(), None, decider.now)
    };
    wait_for_cluster(decider, spender, waiting);
    Ok(true)
}

/// Whether nodes have to be reserved for an agreement soon that the one that it replaces there does not have.
fn needs_nodes_of_cluster(view: View<'_>, agreement: &Agreement, replaced: Option<&Agreement>) -> bool {
    let now = view.present_second();
    let Some(near) = view.elsewhere.near_until(&agreement.resource, now) else {
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

/// Takes the word of the cluster for a command that is decided now, where the command about this agreement has waited. Its kept slots leave
/// the plan, so that it can have them.
pub(crate) fn take_word_of_cluster(decider: &mut Decider<'_>, id: Uuid) {
    let now = decider.present_second();
    let Some(waiting) = decider.state.elsewhere.begin(id) else {
        return;
    };
    let at = waiting.admitted.resource;
    // Nodes that were taken out of use took it with them.
    let is_kept = waiting
        .numbers
        .iter()
        .all(|number| decider.state.schedules.has_request(at, *number));
    for number in &waiting.numbers {
        decider.state.schedules.vacate(at, now, *number);
    }
    let word = match waiting.outcome {
        // One that is reserved too late is tried again, later.
        ReservationState::Reserved if is_kept && !waiting.is_too_late(now) => {
            HolderWord::Held(Box::new(ReservedSlot {
                window: waiting.agreement.window(),
                admitted: waiting.admitted,
                moved: waiting.moved,
            }))
        }
        ReservationState::Unknown if waiting.tried.slots == 0 => HolderWord::Silent,
        _ => HolderWord::Refused(ReservationTries {
            since: waiting.tried.since,
            slots: waiting.tried.slots + 1,
            not_before: Some(
                waiting.agreement.slot().start.max(now)
                    + (BEGINS_AFTER << waiting.tried.slots.min(TRIES_MAX)),
            ),
        }),
    };
    if !matches!(word, HolderWord::Held(_)) {
        move_back_for_cluster(decider, at, &waiting.moves);
    }
    decider.state.elsewhere.set_word(id, word);
}

/// Moves agreements back that have moved for a command, after the cluster has refused the command's slot: all of
/// them, or none where a place is taken or one of them may move no more.
fn move_back_for_cluster(decider: &mut Decider<'_>, at: usize, moves: &[Move]) {
    let now = decider.present_second();
    let back = trial::run_trial(&mut decider.search(), |search| {
        let mut back = Vec::new();
        for one_move in moves {
            let is_there = |start: Time| start == one_move.to && one_move.from > now;
            let waits = search.schedules.waiting_request(at, one_move.id);
            if waits.is_some_and(|(_, start)| is_there(start)) {
                let (agreement, _) = search.placement.slot_by_number(search.agreements, one_move.id)?;
                if agreement.fixed || search.table.is_counted_on(agreement.id) {
                    return None;
                }
                let (request, _) = search.schedules.withdraw(at, one_move.id)?;
                back.push((request, one_move.from));
            }
        }
        let are_back = search.schedules.put_all(at, now, &back);
        are_back.then_some(back)
    });
    let moves = |(request, _): &(scheduler::Request, Time)| {
        let this_move = moves.iter().find(|one_move| one_move.id == request.id)?;
        Some(Move {
            id: this_move.id,
            from: this_move.to,
            to: this_move.from,
        })
    };
    let moves: Vec<Move> = back.iter().flatten().filter_map(moves).collect();
    update::update_after_moves(decider, &moves, "back: the cluster has refused the new place");
}

/// Whether a later begin may be the reason for a refusal.
fn may_cluster_have_later_slot(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NoCapacityInWindow | Reason::WindowContradictory | Reason::WindowInThePast
    )
}

#[cfg(test)]
mod tests;
