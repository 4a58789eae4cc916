//! Nodes are held before they are promised. On a cluster that others use, a slot that begins soon may be gone before the cluster
//! holds its nodes. So the command that asks for such a slot waits here: the plan keeps the slot, nothing is stored, and the
//! resource's executor reserves the nodes as it does for agreements ([`domain::resources::ResourceAgreements`]). When it holds them the command is
//! decided again, with this slot. Where the cluster refuses, it is decided anew after the next report of the nodes.

use std::collections::BTreeSet;

use domain::agreement::Agreement;
use scheduler::{Move, Reason, Time};
use uuid::Uuid;

use crate::context::Search;
use crate::decider::Decider;
use crate::error::{Refusal, Result, bare_refusal};
use crate::life::{admission, update};
use crate::limits::spending;
use crate::placement::{admit, choice, transaction};
use crate::request::Request;
use crate::requests::requests_of_agreement;
use crate::schedules::need::{Need, Placement};
use crate::waiting::{
    BEGINS_AFTER, ReservationState, ReservationTries, ReservedSlot, TRIES_MAX, Verdict, WAITING_MAX,
    WaitingCommand, refused_slots_in_words,
};

/// Notes for which commands a resource holds the nodes.
pub(crate) fn note_reserved(decider: &mut Decider<'_>, resource: &str) {
    let now = decider.present_second();
    let Some(resource_plan) = decider.state.schedules.named(resource) else {
        return;
    };
    let near = decider.state.waiting.near_until(resource, now);
    // A slot that has moved to a later time is reserved when that time comes. A slot that has moved again or is over
    // does not count.
    let missing: BTreeSet<u64> = decider
        .state
        .waiting
        .moves()
        .filter(|moved| near.is_some_and(|until| moved.to <= until))
        .filter(|moved| {
            decider
                .state
                .placement
                .slot_by_number(&decider.state.agreements, moved.id)
                .is_some_and(|(agreement, index)| {
                    let slot = agreement.slots.get(index);
                    slot.is_some_and(|slot| slot.placement.start == moved.to)
                        && agreement.resource == resource
                        && !resource_plan.holds_slot(agreement, index, now)
                })
        })
        .map(|moved| moved.id)
        .collect();
    decider.state.waiting.note_reserved(resource, |waiting| {
        let is_missing = |moved: &Move| missing.contains(&moved.id);
        resource_plan.holds(&waiting.agreement, near, now) && !waiting.moves.iter().any(is_missing)
    });
}

/// Finds the place of an offer, as [`admission::admit_proposal_or`] does; none where its cluster has to hold it first.
pub(crate) fn admit_reserved_or(
    decider: &mut Decider<'_>,
    proposal: &Request,
    refused: impl FnOnce(&mut Search<'_>, &Need<'_>, Reason) -> Refusal,
) -> Result<Option<(Agreement, Placement, u64)>, Refusal> {
    if let Some(reserved) = decider.state.waiting.take(proposal.id) {
        let number = decider.state.placement.next_number();
        let mut agreement = admit::make_agreement(
            &mut decider.search(),
            proposal,
            reserved.window,
            &reserved.admitted,
        );
        choice::settle_room(decider.view(), &mut agreement);
        put_reserved_slot(
            &mut decider.search(),
            &agreement,
            number,
            reserved.admitted.resource,
        );
        return Ok(Some((agreement, reserved.admitted, number)));
    }
    let tried = decider.state.waiting.tried(proposal.id, decider.now);
    let tried = tried.map_err(|why| bare_refusal(Reason::NoCapacityInWindow, why))?;
    let not_before = tried.and_then(|tried| tried.not_before);
    decider.state.waiting.begin_after_refused(not_before);
    let admitted = admission::admit_proposal_or(decider, proposal, refused);
    decider.state.waiting.begin_after_refused(None);
    let (agreement, admitted, number) = match (admitted, tried) {
        (Ok(admitted), _) => admitted,
        (Err(refusal), Some(tried)) if is_about_time(refusal.reason) => {
            return Err(bare_refusal(
                Reason::NoCapacityInWindow,
                refused_slots_in_words(tried.slots),
            ));
        }
        (Err(refusal), _) => return Err(refusal),
    };
    if !decider
        .state
        .waiting
        .is_needed(&agreement, decider.present_second())
    {
        return Ok(Some((agreement, admitted, number)));
    }
    if decider.state.waiting.is_full() {
        update::apply_admission_moves(decider, &admitted);
        for request in requests_of_agreement(&agreement, number) {
            decider
                .state
                .schedules
                .vacate(admitted.resource, decider.present_second(), request.id);
        }
        let many = format!("{WAITING_MAX} requests wait for their clusters; another try may succeed");
        return Err(bare_refusal(Reason::NoCapacityInWindow, many));
    }
    let priced = agreement.clone();
    keep_until_reserved(decider, agreement, admitted, number, tried);
    let (limits, waiting) = (&mut decider.state.limits, &decider.state.waiting);
    spending::note_waiting_price(limits, |id| waiting.has(id), proposal.spender, &priced);
    Ok(None)
}

/// Puts an agreement where its slots were kept until now.
pub(crate) fn put_reserved_slot(search: &mut Search<'_>, agreement: &Agreement, number: u64, at: usize) {
    let starts = agreement.loads().into_iter().map(|(slot, _)| slot.start);
    for (request, start) in requests_of_agreement(agreement, number).into_iter().zip(starts) {
        search
            .schedules
            .put_back(at, search.present_second(), &request, start);
    }
}

/// Keeps the slots of an agreement that were just found for it; they do not move.
fn keep_until_reserved(
    decider: &mut Decider<'_>,
    agreement: Agreement,
    mut admitted: Placement,
    number: u64,
    tried: Option<ReservationTries>,
) {
    let now = decider.present_second();
    let moved = update::apply_admission_moves(decider, &admitted);
    let moves = std::mem::take(&mut admitted.moved);
    admitted.transferred.clear();
    let at = admitted.resource;
    let mut numbers = Vec::new();
    for (request, (slot, nodes)) in requests_of_agreement(&agreement, number)
        .into_iter()
        .zip(agreement.loads())
    {
        decider.state.schedules.vacate(at, now, request.id);
        let fixed = scheduler::Request {
            id: decider.state.table.next_hold(),
            ready: slot.start,
            deadline: slot.end,
            nodes,
            ..request
        };
        decider.state.schedules.put_back(at, now, &fixed, slot.start);
        numbers.push(fixed.id);
    }
    let waiting = WaitingCommand::new(agreement, admitted, numbers, tried, decider.now);
    decider.state.waiting.wait_for(WaitingCommand {
        moved,
        moves,
        ..waiting
    });
}

/// Begins a command about an agreement. Where it has waited, its kept slots leave the plan, so that it can have them now.
pub(crate) fn begin_waiting_command(decider: &mut Decider<'_>, id: Uuid) {
    let now = decider.present_second();
    let Some(waiting) = decider.state.waiting.begin(id) else {
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
    let verdict = match waiting.outcome {
        // One that is reserved too late is tried again, later.
        ReservationState::Reserved if is_kept && !waiting.is_too_late(now) => {
            Verdict::Reserved(Box::new(ReservedSlot {
                window: waiting.agreement.window(),
                admitted: waiting.admitted,
                moved: waiting.moved,
            }))
        }
        ReservationState::Unknown if waiting.tried.slots == 0 => Verdict::NoAnswer,
        _ => Verdict::Refused(ReservationTries {
            since: waiting.tried.since,
            slots: waiting.tried.slots + 1,
            not_before: Some(
                waiting.agreement.slot().start.max(now)
                    + (BEGINS_AFTER << waiting.tried.slots.min(TRIES_MAX)),
            ),
        }),
    };
    if !matches!(verdict, Verdict::Reserved(_)) {
        move_agreements_back(decider, at, &waiting.moves);
    }
    decider.state.waiting.set_verdict(id, verdict);
}

/// Moves agreements back that have moved for a command, after the cluster has refused the command's slot: all of
/// them, or none where a place is taken or one of them may move no more.
fn move_agreements_back(decider: &mut Decider<'_>, at: usize, moves: &[Move]) {
    let now = decider.present_second();
    let back = transaction::run_trial(&mut decider.search(), |search| {
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
    update::apply_moves(decider, &moves, "back: the cluster has refused the new place");
}

/// Whether a later begin may be the reason for a refusal.
fn is_about_time(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NoCapacityInWindow | Reason::WindowContradictory | Reason::WindowInThePast
    )
}
