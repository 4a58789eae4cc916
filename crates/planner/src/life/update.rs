//! How agreements change: with all that follows in the plan, in what is stored, and in what is held for offers about them.

use domain::agreement::{Agreement, AgreementState, Event, EventKind, RecordedMove, ServiceState};
use domain::change::Change;
use domain::clock::{Micros, second_after, time_difference_in_words};
use scheduler::{Interval, Move, Seconds, counted};
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::life::{billing, settle_moves};
use crate::placement::places::{ChangesOfOthers, NewShape, Placement, Transfer};
use crate::schedules::nodes_out_of_use;
use crate::table::{holds, propose};

/// Takes over the moves that made room for the agreement of this id. Returns the moved agreements as they are now.
pub(crate) fn update_moved_and_transferred(
    decider: &mut Decider<'_>,
    admitted: &Placement,
    newcomer: Uuid,
) -> Vec<Agreement> {
    let why = "to let another agreement in";
    let now = decider.present_second();
    decider.state.placement.note_moves_up(&admitted.moved, now);
    let recorded = settle_moves::moves_to_record(decider, &admitted.moved);
    let mut moved = take_over_moves(decider, &admitted.moved, &recorded, (why, Some(newcomer)));
    moved.extend(update_after_transfers(decider, &admitted.transferred, why));
    let shapes = admitted.new_shapes.iter();
    moved.extend(shapes.filter_map(|shape| update_to_new_shape(decider, shape, why)));
    moved
}

/// Takes over another size or other pieces of a waiting agreement on its resource. Returns the agreement as it is now.
pub(crate) fn update_to_new_shape(
    decider: &mut Decider<'_>,
    shape: &NewShape,
    why: &str,
) -> Option<Agreement> {
    let id = shape.placed.id;
    let had = decider.state.placement.numbers_of(id).len();
    decider.state.placement.keep_first(id, shape.numbers.len());
    for number in shape.numbers.iter().skip(had) {
        decider.state.placement.add_slot(id, *number);
    }
    update_to_found_place(decider, shape.placed.clone(), why)
}

/// Takes over the moves of a schedule, many as one record. Returns the agreements as they are now.
pub(crate) fn update_after_moves(decider: &mut Decider<'_>, moves: &[Move], why: &str) -> Vec<Agreement> {
    let recorded = settle_moves::moves_to_record(decider, moves);
    take_over_moves(decider, moves, &recorded, (why, None))
}

/// Takes over the changes of others that have let an agreement in that had lost its place.
pub(crate) fn update_others(decider: &mut Decider<'_>, others: &ChangesOfOthers, why: &str) {
    update_after_moves(decider, &others.moved, why);
    for shape in &others.new_shapes {
        update_to_new_shape(decider, shape, why);
    }
}

/// Takes over the moves of a schedule, each by itself.
pub(crate) fn update_after_each_move(decider: &mut Decider<'_>, moves: &[Move], why: &str) {
    take_over_moves(decider, moves, &[], (why, None));
}

/// Takes over moves: those of the slots in `recorded`, whose numbers are sorted, as one record.
fn take_over_moves(
    decider: &mut Decider<'_>,
    moves: &[Move],
    recorded: &[u64],
    (why, cause): (&str, Option<Uuid>),
) -> Vec<Agreement> {
    let mut moved = Vec::with_capacity(moves.len());
    let (mut record, mut before) = (Vec::with_capacity(recorded.len()), Vec::new());
    for one_move in moves {
        let Some((mut agreement, index)) = decider.state.must_get_slot(one_move.id) else {
            continue;
        };
        let (slot, nodes) = agreement.slots[index].stretch();
        let to = (Interval::of(one_move.to, slot.duration()), nodes);
        if recorded.binary_search(&one_move.id).is_ok() {
            before.push((agreement.id, agreement.version, slot.start));
            agreement.place_slot(index, to);
            agreement.version += 1;
            record.push(RecordedMove::of(&agreement));
            decider
                .state
                .replace(agreement.clone(), second_after(decider.now));
            moved.push(agreement);
            continue;
        }
        let detail = format!(
            "{}{}, {why}",
            agreement.piece_of_slots_in_words(index),
            time_difference_in_words(one_move.to - one_move.from)
        );
        agreement.place_slot(index, to);
        let event = decider.event(EventKind::Moved, detail);
        moved.push(update(decider, agreement, vec![event]));
    }
    settle_moves::record_moves(decider, record, before, (why, cause));
    moved
}

/// Ends the service of an agreement, assesses its guarantees and closes it: all in one step, so that no reader sees
/// a complete agreement with an open guarantee.
pub(crate) fn update_to_closed(
    decider: &mut Decider<'_>,
    agreement: &mut Agreement,
    last: AgreementState,
    ended: Micros,
) -> Result<Vec<Event>> {
    // Work that another agreement goes on with is not over.
    if agreement.outcome.is_some() {
        agreement.end_slot(ended);
        agreement.give_up_slot();
    }
    agreement.ended = Some(ended);
    agreement.service = ServiceState::Completed;
    agreement.state = agreement
        .state
        .to(last)
        .ok_or(Error::Conflict(agreement.state.word()))?;
    let mut events = billing::assess_and_bill(decider, agreement);
    if let Some(price) = billing::bill_price(decider, agreement) {
        events.push(price);
        events.extend(billing::bill_overrun(decider, agreement));
    }
    events.push(decider.event(EventKind::Closed, agreement.state.word().to_owned()));
    Ok(events)
}

/// Puts a changed agreement into the plan and the batch. One that is over gives its nodes back, however it ended.
pub(crate) fn update(decider: &mut Decider<'_>, mut agreement: Agreement, events: Vec<Event>) -> Agreement {
    settle_moves::settle_moves(decider, agreement.id);
    agreement.version += 1;
    let gives_back = agreement.is_between_slots() || agreement.state.is_final();
    let release = gives_back && decider.state.life.nodes_of(agreement.id).is_some();
    // An offer in its place relies on the agreement still waiting, or still running.
    let waited = decider
        .state
        .agreements
        .get(agreement.id)
        .is_some_and(Agreement::is_waiting);
    propose::propose_if_lost(&mut decider.bargaining(), &agreement);
    decider.batch.push(Change::UpdateAgreement {
        agreement: Box::new(agreement.clone()),
        events,
    });
    if release {
        decider.batch.push(Change::ReleaseNodes {
            agreement: agreement.id,
            end: agreement.released(),
        });
    }
    // A node with work that ended within a second is free from the next one on.
    decider
        .state
        .replace(agreement.clone(), second_after(decider.now));
    if release {
        nodes_out_of_use::keep_freed_nodes_out_of_use(&mut decider.search(), &agreement.resource);
    }
    let goes_on = if waited {
        agreement.is_waiting()
    } else {
        agreement.is_being_carried_out()
    };
    if !goes_on {
        holds::release_holds_about(&mut decider.bargaining(), agreement.id);
    }
    agreement
}

/// Takes over the agreements that went to other resources. Returns them as they are now.
fn update_after_transfers(decider: &mut Decider<'_>, transfers: &[Transfer], why: &str) -> Vec<Agreement> {
    let gone = transfers.iter();
    gone.filter_map(|gone| update_to_found_place(decider, gone.placed.clone(), why))
        .collect()
}

/// Takes over other places of the slots of an agreement, which may be on another resource. Returns the agreement as it is
/// now.
pub(crate) fn update_to_found_place(
    decider: &mut Decider<'_>,
    mut placed: Agreement,
    why: &str,
) -> Option<Agreement> {
    let before = decider.state.must_get(placed.id)?;
    placed.keep_promised_start(&before, decider.present_second());
    let stays = placed.resource == before.resource;
    if placed.slots.len() != before.slots.len() {
        let shape = pieces_after_change_in_words(&before, &placed);
        let event = decider.event(EventKind::Moved, format!("{shape}, {why}"));
        return Some(update(decider, placed, vec![event]));
    }
    let slots = before.slots.iter().zip(placed.slots.iter()).enumerate();
    let changed = slots.filter(|(index, (old, new))| {
        if stays {
            old.stretch() != new.stretch()
        } else {
            *index == placed.slots_over()
        }
    });
    let events = changed.map(|(index, (old, new))| {
        let to = if stays {
            placed.piece_of_slots_in_words(index)
        } else {
            format!("to {}, ", placed.resource)
        };
        let has_other = new.nodes != old.nodes || new.placement.duration() != old.placement.duration();
        let shape = has_other.then(|| {
            let nodes = counted(new.nodes, "node");
            format!("with {nodes} for {}", counted(new.placement.duration(), "second"))
        });
        let detail = to + &change_of_place_in_words(new.placement.start - old.placement.start, shape);
        decider.event(EventKind::Moved, format!("{detail}, {why}"))
    });
    let events = events.collect();
    if placed.fixed {
        decider.state.placement.fix(&mut decider.state.schedules, &placed);
    }
    Some(update(decider, placed, events))
}

/// The pieces of an agreement that has another number of them than before, in words for its party.
fn pieces_after_change_in_words(before: &Agreement, placed: &Agreement) -> String {
    let moved = placed.placement().start - before.placement().start;
    let seconds = counted(placed.planned_seconds(), "second");
    let nodes = counted(placed.nodes(), "node");
    let shape = match placed.slots.pieces().len() {
        0 => format!("in one piece, with {nodes} for {seconds}"),
        pieces => {
            let up_to = if placed.slots.differ() { "up to " } else { "" };
            format!("in {pieces} pieces, with {up_to}{nodes} for {seconds} in all")
        }
    };
    change_of_place_in_words(moved, Some(shape))
}

/// By how much a start moves, and the shape from then on where it is another, in words.
fn change_of_place_in_words(moved: Seconds, shape: Option<String>) -> String {
    match shape {
        Some(shape) if moved == 0 => shape,
        Some(shape) => format!("{}, {shape}", time_difference_in_words(moved)),
        None => time_difference_in_words(moved),
    }
}

/// Closes an agreement that may always be closed, as [`update_to_closed`] does.
///
/// # Errors
/// [`Error::Unavailable`] where it may not.
pub(crate) fn must_update_to_closed(
    decider: &mut Decider<'_>,
    agreement: &mut Agreement,
    last: AgreementState,
    ended: Micros,
) -> Result<Vec<Event>> {
    let closed = update_to_closed(decider, agreement, last, ended);
    closed.map_err(|why| {
        let id = agreement.id;
        decider
            .state
            .note_impossible(|| format!("agreement {id} cannot become {last}: {why}"));
        Error::Unavailable
    })
}
