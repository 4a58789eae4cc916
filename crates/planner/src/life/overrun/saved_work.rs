//! Work that is not over at the end of a slot that cannot be longer. It is told to save its state, and the rest goes on
//! in another place, as a piece that is added to its agreement (`docs/design/planning.md`).

use domain::agreement::{Agreement, AgreementState, EventKind, RunOutcome, ServiceState};
use scheduler::{Interval, Move, Request, Seconds, Time, counted};

use crate::context::Search;
use crate::decider::Decider;
use crate::life::{executions, update};
use crate::overruns::{LastLook, most_cost_of_overruns_in_words};
use crate::schedules::need::request_of_stretch;

/// Has the work of an agreement save itself in the last `grace` seconds of its slot, and gives the rest another place;
/// whether there is one.
pub(crate) fn try_save_work(decider: &mut Decider<'_>, agreement: &Agreement, grace: Seconds) -> bool {
    let Some(at) = decider.state.schedules.required_place_of(&agreement.resource) else {
        return false;
    };
    let number = decider.state.placement.next_number();
    let Some((slot, moves)) = place_rest_of_saved(&mut decider.search(), at, agreement, number, grace) else {
        return false;
    };
    let mut saved = agreement.clone();
    saved.add_slot(slot);
    decider.state.placement.add_slot(agreement.id, number);

    let (gap, length) = (slot.start - agreement.slot().end, slot.duration());
    let mut detail = format!(
        "its work is not over, and its nodes are promised to others: it saves itself in the last {} of its \
         slot, and the rest goes on {} after that as piece {}, for {}",
        counted(grace, "second"),
        counted(gap, "second"),
        saved.slots.len(),
        counted(length, "second")
    );
    detail += &most_cost_of_overruns_in_words(agreement, length);
    if saved.deadline > agreement.deadline {
        detail += "; its deadline moves along";
    }
    let event = decider.event(EventKind::Overrun, detail);
    update::update(decider, saved, vec![event]);
    update::update_after_moves(decider, &moves, "to let one in whose work is not over");
    true
}

/// Puts the rest of an agreement's work into the first place for it after its slot: for as long as it may have, or else
/// for less; inside its window, where others may move for it, or else beyond.
fn place_rest_of_saved(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    number: u64,
    grace: Seconds,
) -> Option<(Interval, Vec<Move>)> {
    let now = search.present_second();
    let (end, nodes) = (agreement.slot().end, agreement.slot_nodes());
    let longest = search.settings.overruns.left(agreement);
    let step = search.settings.overruns.step(agreement);
    let shortest = step.max(grace + 1).min(longest);
    let lengths = || {
        let shorter = move |length: &Seconds| (*length > shortest).then(|| (length / 2).max(shortest));
        std::iter::successors(Some(longest), shorter)
    };
    let inside = Interval::new(end, agreement.deadline);
    for length in lengths().filter(|length| *length <= inside.duration()) {
        let free = put_rest_of_saved(search, at, agreement, number, (length, inside));
        if let Some(slot) = free {
            return Some((slot, Vec::new()));
        }
        let request = Request {
            duration: length,
            ..request_of_stretch(agreement, number, (inside, nodes))
        };
        if let Some((placement, moves)) = search.schedules.submit(at, now, &request) {
            // Unlike a piece that was planned it stays where it lies.
            search.schedules.fix(at, number);
            return Some((placement.slot, moves));
        }
    }
    let latest = agreement.latest_end(now + search.settings.horizon);
    let beyond = Interval::new(end, latest.max(end));
    let slot =
        lengths().find_map(|length| put_rest_of_saved(search, at, agreement, number, (length, beyond)));
    Some((slot?, Vec::new()))
}

/// Puts the rest of an agreement's work into the first place that is free for this number of seconds; none where no
/// place is free.
fn put_rest_of_saved(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    number: u64,
    (length, window): (Seconds, Interval),
) -> Option<Interval> {
    let tree = search.schedules.get(at)?.schedule.tree();
    let nodes = agreement.slot_nodes();
    if window.duration() < length {
        return None;
    }
    let slot = Interval::of(tree.earliest_fit(nodes, length, window)?, length);
    let request = request_of_stretch(agreement, number, (slot, nodes));
    let put = search
        .schedules
        .put(at, search.present_second(), &request, slot.start);
    put.then_some(slot)
}

/// Takes the rest of an agreement's work, planned after the running piece, out of the plan where there is one. Returns the
/// agreement without it, which is still to be stored.
pub(crate) fn give_back_rest_of_saved(
    decider: &mut Decider<'_>,
    agreement: &Agreement,
    now: Time,
) -> Agreement {
    let without = agreement.without_rest();
    let (count, before) = (without.slots.len(), agreement.slots.len());
    for index in count..before {
        decider
            .state
            .placement
            .take_slot_out(&mut decider.state.schedules, agreement, index, now);
    }
    decider.state.placement.keep_first(agreement.id, count);
    without
}

/// Ends an agreement with the saved work, or lets its running work end with its slot: there is no place any more for the
/// rest.
pub(crate) fn give_up_rest_of_saved(decider: &mut Decider<'_>, agreement: &Agreement, why: &str) {
    let now = decider.present_second();
    let detail = format!("{why}, and there is no other place for the rest of its work, which is not over");
    let mut events = vec![decider.event(EventKind::Overrun, detail)];
    if agreement.service == ServiceState::Processing {
        let without = give_back_rest_of_saved(decider, agreement, now);
        // Work that was told to save does so, and is not kept running.
        let told = decider.settings.overruns.grace(&without);
        if told.is_some_and(|grace| without.slot().end - grace <= now) {
            decider.state.life.look_again_for_overrun(
                &decider.state.schedules,
                &decider.state.agreements,
                agreement.id,
                Some(LastLook::Never),
            );
        }
        update::update(decider, without, events);
        return;
    }
    let mut over = agreement.clone();
    over.outcome = Some(RunOutcome::Killed);
    // Between two pieces it may always be closed.
    if let Ok(closing) =
        update::must_update_to_closed(decider, &mut over, AgreementState::Complete, decider.now)
    {
        events.extend(closing);
        let over = update::update(decider, over, events);
        // It ran until its last slot was over: an execution that was lost since then has a record of its own.
        let ran_until = over.slots.iter().filter_map(|slot| slot.ended).next_back();
        let end = over.end_without_output(RunOutcome::Killed, ran_until.unwrap_or(decider.now));
        executions::record_execution(decider, &over, &end);
    }
}

#[cfg(test)]
mod tests;
