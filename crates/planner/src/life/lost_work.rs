//! Work that is lost while it may still run, or was never started: its agreement is over and its job is to be stopped, or it waits again
//! after its slot. Lost work waits again where its template allows a restart; work that was never started always does.
//!
//! Its agreement waits for a place in the rest of its window, as it did before its slot began. It gives up nothing but its
//! nodes. Work that was lost is run from its start, or, in pieces, from the saved work of the piece before. The job of the
//! run before is stopped, where anything of it still runs, before the next one starts (`docs/design/execution.md`). A piece that
//! has lost its nodes before it began goes elsewhere between its neighbours (`docs/design/planning.md`).

use std::collections::BTreeSet;

use domain::agreement::{Agreement, AgreementState, EventKind, Job, JobEnd, RunOutcome, ServiceState};
use domain::change::Change;
use domain::clock::time_difference_in_words;
use domain::resources::CLUSTER;
use scheduler::{Interval, Seconds, Time, counted};
use uuid::Uuid;

use crate::context::{Search, View};
use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::life::overrun::saved_work;
use crate::life::{billing, executions, keep_offers, update};
use crate::placement::find::{FoundPlace, RESTART};
use crate::placement::{choice, find, peer_places, refuse, trial};
use crate::schedules::need::Need;
use crate::schedules::nodes_out_of_use;
use crate::table::{give_way, holds};

/// How often lost work is run again at most: more losses than this are not chance.
const RESTARTS_MAX: u32 = 10;
/// In how many slots of an agreement its executor may fail to start its job: the window bounds that, too, since each of them
/// takes some of it, but a short job with a long window would fill its timeline.
pub(crate) const MISSES_MAX: u32 = 100;
/// Why an agreement has another slot, in words for its party.
pub(crate) const NEVER_STARTED: &str = "it was never started in its slot";
const TOO_LATE: &str = "too little of its slot was left to start it in";
/// Seconds that it may take until nothing is left on a cluster of a job that ran there: longer than its executor waits for that.
const CLEARED_AFTER: Seconds = 20;

/// Ends an agreement at once because the provider takes its time back. Its work is lost, and nothing is charged. Its
/// guarantees are judged as they are; where the provider has excused itself in general, they pay nothing.
///
/// # Errors
/// [`Error::Unavailable`] where it cannot be closed.
pub(crate) fn end_taken_back(decider: &mut Decider<'_>, mut agreement: Agreement) -> Result<Agreement> {
    if agreement.state.terminating().is_none() {
        // Its party has ended it already.
        return Ok(agreement);
    }
    if !decider.settings.failures.taken_back_pays {
        for guarantee in &mut agreement.guarantees {
            guarantee.values.penalties.clear();
        }
    }
    let detail = format!("the operator of {} has taken its time back", agreement.resource);
    let lost = lose_agreement_because(decider, agreement, EventKind::Broken, detail);
    let lost = lost.ok_or(Error::Unavailable)?;
    holds::release_holds_about(&mut decider.bargaining(), lost.id);
    Ok(lost)
}

/// Ends the work that ran on nodes that are gone.
pub(crate) fn lose_work_on_nodes(decider: &mut Decider<'_>, id: Uuid) -> Option<Agreement> {
    let agreement = decider.state.agreements.get(id).cloned()?;
    let detail = format!("its nodes of {} are gone", agreement.resource);
    let had_job = agreement.service == ServiceState::Processing;
    let end = executions::end_of_lost_work(decider.view(), &agreement);
    let lost = lose_agreement_because(decider, agreement, EventKind::Ended, detail)?;
    if had_job {
        executions::record_execution(decider, &lost, &end);
    }
    Some(lost)
}

/// Ends an agreement with a slot that has no place any more, unless peers can be asked to carry it out. It lies on the resource of a peer until
/// their word has come, with no agreement of the peer's behind it, and is returned. So it is known after a restart, too.
pub(crate) fn end_lost_or_ask_peers(
    decider: &mut Decider<'_>,
    agreement: Agreement,
    index: usize,
    why: &str,
) -> Option<Agreement> {
    let Some(placed) = peer_places::find_peer_place_to_ask(&mut decider.search(), &agreement, index) else {
        break_lost_without_place(decider, agreement, index, why);
        return None;
    };
    let detail = format!("{why}, and there is no other place in its window here: other domains are asked");
    let event = decider.event(EventKind::Forwarded, detail);
    Some(update::update(decider, placed, vec![event]))
}

/// Ends an agreement with a slot that has no place any more, and tells its party the reason and the alternatives.
/// Leaves the agreement at its contract where that slot would have added to it.
pub(crate) fn break_lost_without_place(
    decider: &mut Decider<'_>,
    agreement: Agreement,
    index: usize,
    why: &str,
) {
    if agreement.adds_to_contract(index) {
        saved_work::give_up_rest_of_saved(decider, &agreement, why);
        return;
    }
    let mut lost = format!("{why}, and there is no other place in its window");
    let piece = agreement.piece_of_slots_in_words(index);
    if !piece.is_empty() {
        lost += &format!(" for {}", piece.trim_end());
    }
    if agreement.slots_begun() == 0 {
        lost = loss_in_words(&mut decider.search(), &agreement, &lost);
    }
    lose_agreement_because(decider, agreement, EventKind::Broken, lost);
}

/// Why an agreement is `lost` and which slots outside its window there are, in words for its party.
fn loss_in_words(search: &mut Search<'_>, agreement: &Agreement, lost: &str) -> String {
    let now = search.present_second();
    let window = Interval::new(agreement.ready.max(now), agreement.deadline);
    let need = Need {
        submitted: now,
        is_new: true,
        ..Need::of_agreement(agreement, window)
    };
    let requests = choice::requests(search.view(), &need);
    let slots: Vec<String> = refuse::alternatives_to_refused(search, &need, &requests)
        .iter()
        .map(|alternative| time_difference_in_words(alternative.slot.start - agreement.placement().start))
        .collect();
    if slots.is_empty() {
        lost.to_owned()
    } else {
        format!("{lost}; there is room {}", slots.join(", "))
    }
}

/// Whether the work of an agreement would be run again if it were lost now.
pub(crate) fn may_run_lost_work_again(view: View<'_>, agreement: &Agreement) -> bool {
    let lost = |job: &Job| job.restarts.saturating_sub(job.missed);
    view.settings.restarting.contains(&agreement.template)
        && may_retry_lost_slot(view, agreement, |job| lost(job) < RESTARTS_MAX)
}

/// Whether an agreement that is being carried out may wait for another slot, where that is so of its job.
pub(crate) fn may_retry_lost_slot(
    view: View<'_>,
    agreement: &Agreement,
    may: impl FnOnce(&Job) -> bool,
) -> bool {
    agreement.state == AgreementState::Observed
        && agreement.service == ServiceState::Processing
        && agreement.job.as_ref().is_some_and(may)
        && view.schedules.place_of(&agreement.resource).is_some()
}

/// Makes an agreement wait for another slot after this end of its work, where it may and where there is a slot. Returns
/// whether it waits. Work that was never started always waits again, with any rule of its template about losses.
pub(crate) fn retry_lost_work(decider: &mut Decider<'_>, agreement: &Agreement, end: &JobEnd) -> bool {
    let never_started = end.started.is_none();
    let may = if never_started {
        may_retry_lost_slot(decider.view(), agreement, |job| job.missed < MISSES_MAX)
    } else {
        may_run_lost_work_again(decider.view(), agreement)
    };
    if end.outcome != RunOutcome::Lost || !may {
        return false;
    }
    vacate_lost_work(decider, agreement);
    nodes_out_of_use::keep_freed_nodes_out_of_use(&mut decider.search(), &agreement.resource);
    let why = if never_started {
        RetryReason::NeverStarted
    } else {
        RetryReason::Lost("its work is gone without a trace of its end")
    };
    run_lost_work_again(decider, agreement, end, why)
}

/// The next second, in which work that is lost now may begin again: two losses never fall into one instant.
pub(crate) fn second_after_loss(view: View<'_>) -> Time {
    view.present_second() + 1
}

/// Takes the slot of work that is lost, and its nodes, out of the plan, so that they can be planned anew.
pub(crate) fn vacate_lost_work(decider: &mut Decider<'_>, agreement: &Agreement) {
    // The offers in its place rely on its going on.
    holds::release_holds_about(&mut decider.bargaining(), agreement.id);
    let next = second_after_loss(decider.view());
    decider.state.placement.take_slot_out(
        &mut decider.state.schedules,
        agreement,
        agreement.slots_over(),
        next,
    );
    decider
        .state
        .life
        .unbind_held_nodes(&mut decider.state.schedules, agreement, next);
}

/// Makes work without its slot wait for another place in its window. Returns `false` where there is none, and nothing
/// has changed then.
pub(crate) fn run_lost_work_again(
    decider: &mut Decider<'_>,
    agreement: &Agreement,
    end: &JobEnd,
    why: RetryReason<'_>,
) -> bool {
    let next = second_after_loss(decider.view());
    // An addition planned for this run is not planned for the next.
    let agreement = &saved_work::give_back_rest_of_saved(decider, agreement, next);
    let resource = decider.state.schedules.named(&agreement.resource);
    let on_cluster = resource.is_some_and(|each| each.resource.kind == CLUSTER);
    // On this machine its job has ended, or ends within a moment. A job that never started leaves nothing.
    let leaves = on_cluster && end.started.is_some();
    let cleared = next + if leaves { CLEARED_AFTER } else { 0 };
    // Where no piece of it is over nothing is saved that would keep it on its resource.
    let service = match agreement.slots_over() {
        0 => ServiceState::NotReady,
        _ => ServiceState::Idle,
    };
    let mut waits = Agreement {
        ready: agreement.ready.max(cleared),
        service,
        ..agreement.clone()
    };
    if let Some(job) = &mut waits.job {
        job.restarts += 1;
        job.missed += u32::from(why == RetryReason::NeverStarted);
        job.late_in_slot = 0;
        if agreement.slots_over() == 0 {
            job.brought = None;
        }
    }
    let mut given_way = BTreeSet::new();
    let index = waits.slots_over();
    // Nor does it keep the time that was added to its slot.
    if !waits.adds_to_contract(index) {
        waits.end_last_slot(waits.placement().end - waits.overrun());
    }
    let found = match why {
        RetryReason::Lost(_) => find::find_place(&mut decider.search(), &waits, index, RESTART, next),
        RetryReason::NeverStarted => give_way::find_before_offers(
            &mut decider.bargaining(),
            &waits,
            index,
            RESTART,
            next,
            &mut given_way,
        ),
    };
    let Some(FoundPlace { mut placed, others }) = found else {
        keep_offers::keep_all_offers_again(decider, given_way);
        return false;
    };
    placed.ready = agreement.ready;
    placed.note_started(end.started);
    if end.started.is_none() {
        placed.keep_promised_start(agreement, next);
    }
    let mut events = billing::assess_and_bill(decider, &mut placed);
    let start = match agreement.slots_over() {
        0 => "its start".to_owned(),
        over => format!("what piece {over} has saved"),
    };
    let moved = slot_after_loss_in_words(agreement, &placed);
    let detail = match why {
        RetryReason::Lost(why) => format!("{why}: it is run again from {start}{moved}"),
        RetryReason::NeverStarted => format!("{NEVER_STARTED}: it waits for another{moved}"),
    };
    events.push(decider.event(EventKind::Restarted, detail));

    decider
        .state
        .life
        .forget_given_nodes(&decider.state.schedules, &decider.state.agreements, agreement.id);
    // Its earlier nodes are in its timeline; the nodes bound to it belong to its present slot.
    decider.batch.push(Change::ReleaseNodes {
        agreement: agreement.id,
        end: agreement.slot().start,
    });
    placed.note_started(None);
    let waiting = update::update(decider, placed, events);
    update::update_others(decider, &others, RESTART.others);
    decider.state.life.stop_lost_work_later(waiting);
    let mut lost = agreement.clone();
    lost.note_started(end.started);
    lost.end_slot(end.ended);
    lost.ended = Some(end.ended);
    executions::record_execution(decider, &lost, end);
    keep_offers::keep_all_offers_again(decider, given_way);
    true
}

/// Gives an agreement another place when its slot, or the slot of its next piece, is over before any work began: the
/// service was down, or the clock was stepped. Ends it where there is no place, or leaves it at its contract where
/// that piece would have added to it. One that would begin late in its slot has another place where there is one
/// without offers giving way, and keeps the rest of its slot otherwise.
pub(crate) fn place_missed_slot_as_lost(decider: &mut Decider<'_>, agreement: &Agreement) {
    let now = decider.present_second();
    let is_over = agreement.slot().end <= now;
    // The nodes kept for its changes rely on its place.
    let mut given_way: BTreeSet<Uuid> = decider
        .state
        .table
        .held_choice_about(agreement.id)
        .into_iter()
        .collect();
    let index = agreement.slots_over();
    let adds = agreement.adds_to_contract(index);
    let why = if is_over { NEVER_STARTED } else { TOO_LATE };
    let found = if is_over {
        decider
            .state
            .placement
            .take_slot_out(&mut decider.state.schedules, agreement, index, now);
        if adds {
            find::find_place(&mut decider.search(), agreement, index, RESTART, now)
        } else {
            give_way::find_before_offers(
                &mut decider.bargaining(),
                agreement,
                index,
                RESTART,
                now,
                &mut given_way,
            )
        }
    } else {
        trial::run_trial(&mut decider.search(), |search| {
            search
                .placement
                .take_slot_out(search.schedules, agreement, index, now);
            find::find_place(search, agreement, index, RESTART, now)
        })
    };
    if let Some(found) = found {
        take_other_slot_for_lost(decider, agreement, found, why);
    } else if is_over {
        end_lost_or_ask_peers(decider, agreement.clone(), index, why);
    } else {
        return;
    }
    keep_offers::keep_all_offers_again(decider, given_way);
}

/// Gives an agreement another place, or ends the agreement where there is none. Its slot of this index is lost, and has left the plan.
pub(crate) fn place_lost_slot(decider: &mut Decider<'_>, agreement: &Agreement, index: usize, why: &str) {
    let now = decider.present_second();
    let mut given_way: BTreeSet<Uuid> = decider
        .state
        .table
        .held_choice_about(agreement.id)
        .into_iter()
        .collect();
    match give_way::find_before_offers(
        &mut decider.bargaining(),
        agreement,
        index,
        RESTART,
        now,
        &mut given_way,
    ) {
        Some(found) => take_other_slot_for_lost(decider, agreement, found, why),
        None => {
            end_lost_or_ask_peers(decider, agreement.clone(), index, why);
        }
    }
    keep_offers::keep_all_offers_again(decider, given_way);
}

fn take_other_slot_for_lost(decider: &mut Decider<'_>, agreement: &Agreement, found: FoundPlace, why: &str) {
    let FoundPlace { mut placed, others } = found;
    let detail = format!(
        "{why}: it waits for another{}",
        slot_after_loss_in_words(agreement, &placed)
    );
    let mut events = vec![decider.event(EventKind::Moved, detail)];
    placed.keep_promised_start(agreement, decider.present_second());
    events.extend(billing::assess_and_bill(decider, &mut placed));
    update::update(decider, placed, events);
    update::update_others(decider, &others, RESTART.others);
}

/// Why work waits for another slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryReason<'a> {
    /// It was lost, for this reason in words for its party.
    Lost(&'a str),
    /// It was never started in its slot.
    NeverStarted,
}

/// Where an agreement goes that has another slot, in words for its party.
fn slot_after_loss_in_words(before: &Agreement, after: &Agreement) -> String {
    let mut moved = String::new();
    if after.resource != before.resource {
        moved += &format!(" on {}", after.resource);
    }
    moved += &format!(
        ", {}",
        time_difference_in_words(after.slot().start - before.slot().start)
    );
    if after.slot_nodes() != before.slot_nodes() {
        moved += &format!(
            ", with {} for {}",
            counted(after.slot_nodes(), "node"),
            counted(after.slot().duration(), "second")
        );
    }
    moved
}

/// Ends an agreement that cannot be carried out any more, and stops its running work.
pub(crate) fn lose_agreement_because(
    decider: &mut Decider<'_>,
    mut agreement: Agreement,
    kind: EventKind,
    why: String,
) -> Option<Agreement> {
    let had_job = agreement.service == ServiceState::Processing;
    agreement.outcome = Some(agreement.lose());
    let mut events = vec![decider.event(kind, why)];
    events.extend(
        update::must_update_to_closed(decider, &mut agreement, AgreementState::Complete, decider.now).ok()?,
    );
    let lost = update::update(decider, agreement, events);
    if had_job {
        decider.state.life.stop_lost_work_later(lost.clone());
    }
    Some(lost)
}

/// Records that a piece has ended and its work is saved: it gives its nodes back, and the next one is waited for.
pub(crate) fn end_piece(decider: &mut Decider<'_>, mut agreement: Agreement, end: &JobEnd) {
    let (number, slots) = (agreement.slot_number(), agreement.slots.len());
    agreement.note_started(end.started);
    agreement.end_slot(end.ended);
    agreement.service = ServiceState::Idle;
    let brought = end.staging.as_ref().and_then(|staging| staging.brought);
    let mut events = executions::note_files_of_execution(decider.view(), &mut agreement, brought);
    let detail = format!("piece {number} of {slots} is over, its work saved");
    events.push(decider.event(EventKind::Checkpointed, detail));
    events.extend(billing::assess_and_bill(decider, &mut agreement));
    update::update(decider, agreement, events);
}

#[cfg(test)]
mod tests;
