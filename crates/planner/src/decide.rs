//! The decisions: from the plan and a command to the changes that are stored and the answer that is given. Nothing
//! here waits or stores; the writer does.

use std::borrow::Cow;

use domain::agreement::{
    Agreement, AgreementState, BroughtFiles, Event, EventKind, JobEnd, Note, RunOutcome, ServiceState,
    Spender,
};
use domain::change::Change;
use domain::clock::{Micros, second_after};
use scheduler::{Interval, Move, Reason};
use uuid::Uuid;

use crate::context::Search;
use crate::context::View;
use crate::decider::Decider;
use crate::error::{Error, Refusal, Result};
use crate::invariant;
use crate::life::billing;
use crate::life::late_starts;
use crate::life::pieces;
use crate::life::reports;
use crate::life::reports::{clamp_job_end, job_end_in_words};
use crate::life::retry;
use crate::limits::pricing;
use crate::limits::quotas;
use crate::limits::refuse;
use crate::limits::share;
use crate::limits::share::{keep_within, refusal_within_share};
use crate::limits::spending;
use crate::placement::admit;
use crate::placement::admit::admission_in_words;
use crate::placement::split;
use crate::request::{AcceptedOffer, Request};
use crate::resources::node_status;
use crate::resources::repair;
use crate::schedules::need::{Need, Placement};
use crate::schedules::nodes_out_of_use;
use crate::settings::Quotas;
use crate::table::negotiate;
use crate::table::propose;
use crate::waiting::reserved_nodes;
use crate::waiting::reserved_starts;
use crate::words::{piece_in_words, time_difference_in_words};

/// Notes that an operator has made an agreement for another party, where the command says so.
pub(crate) fn note_booked(decider: &mut Decider<'_>, AcceptedOffer { agreement, .. }: &AcceptedOffer) {
    if let Some(by) = &decider.options.booked_by {
        let detail = format!("booked {} for {}", agreement.id, agreement.party);
        let note = Note::of_operator(decider.now, by, agreement.id, detail);
        decider.batch.push(Change::Note(note));
    }
}

/// Refuses an offer with an id that its initiator has given before, to another agreement than `but`: the one that it replaces,
/// and the one that has been pending for it. Agreements that are over are looked for in the store, before the offer comes here.
pub(crate) fn check_new_id(view: View<'_>, request: &Request, but: &[Option<Uuid>]) -> Result<()> {
    let Some(id) = &request.initiator_id else {
        return Ok(());
    };
    let has_it = |agreement: &Agreement| {
        agreement.party == request.party && agreement.initiator_id.as_ref() == Some(id)
    };
    let own = but
        .iter()
        .flatten()
        .filter(|but| view.agreements.get(**but).is_some_and(has_it))
        .count();
    let mut waiting = view.waiting.waiting.values().map(|waiting| &waiting.agreement);
    if view.agreements.with_initiator_id(&request.party, id) > own
        || waiting.any(|waiting| waiting.id != request.id && has_it(waiting))
    {
        return Err(Error::IdTaken(id.clone()));
    }
    Ok(())
}

/// Admits a proposal; `refused` says why it is not admitted.
pub(crate) fn admit_proposal_or(
    decider: &mut Decider<'_>,
    request: &Request,
    refused: impl FnOnce(&mut Search<'_>, &Need<'_>, Reason) -> Refusal,
) -> Result<(Agreement, Placement, u64), Refusal> {
    let now = decider.present_second();
    let mut limited = None;
    let mut is_capped = false;
    if decider.settings.quotas_of(&request.party) != Quotas::default() || request.spender.is_some() {
        let limited = limited.insert(request.clone());
        quotas::limit_to_quotas(decider.view(), limited, None)?;
        is_capped = spending::limit_to_cap(decider.view(), limited);
    }
    let proposal = limited.as_ref().unwrap_or(request);
    let window = refuse::window(decider.view(), proposal)?;
    // What its share leaves binds where it is placed, not what is agreed: a failure may send it elsewhere.
    let mut shared = Cow::Borrowed(proposal);
    share::limit_to_share(decider.view(), &mut shared, None)?;
    let room = refuse::window(decider.view(), &shared)?;
    fix_those_who_have_waited(decider);
    let number = decider.plan.placement.next_number();
    let mut need = Need::of(&shared, number, room, now);
    let cut = proposal.preemption.as_ref();
    decider.plan.schedules.begin_search();
    need.window = reserved_starts::window_after_reserving(decider.view(), &need);
    let mut admitted = split::admit_cut_or_whole(&mut decider.search(), &need, cut);
    if admitted.is_err() && need.window != room && decider.plan.waiting.not_before.is_none() {
        // Better a begin that is late than none.
        need.window = room;
        admitted = split::admit_cut_or_whole(&mut decider.search(), &need, cut);
    }
    let admitted = admitted.map_err(|reason| {
        if let Some(suggestion) = propose::suggest_a_move(&mut decider.search(), &need, reason) {
            decider.plan.table.note_suggestion(suggestion);
        }
        let why = refused(&mut decider.search(), &need, reason);
        let why = refusal_within_share(why, room, window);
        spending::refusal_under_cap(decider.view(), proposal.spender.filter(|_| is_capped), &need, why)
    })?;
    let is_split = admitted.slots.is_split();
    let agreed = if is_split { room } else { window };
    let mut agreement = admit::make_agreement(&mut decider.search(), proposal, agreed, &admitted);
    admit::settle_room(decider.view(), &mut agreement);
    if room != agreed {
        keep_within(&mut agreement, room);
    }
    Ok((agreement, admitted, number))
}

/// The line of the timeline for an acceptance, which is counted against the cap of its key.
pub(crate) fn acceptance_event(
    decider: &mut Decider<'_>,
    agreement: &Agreement,
    admitted: &Placement,
    spender: Option<Spender>,
) -> Event {
    let mut detail = admission_in_words(agreement, admitted);
    for choice in &agreement.choices {
        let members: Vec<_> = choice.members.iter().map(ToString::to_string).collect();
        detail += &format!("; chosen: {} of {}", members.join(", "), choice.path);
    }
    if let Some(price) = pricing::price_in_words(decider.view(), agreement) {
        detail += &format!("; {price}");
    }
    spending::spend(decider, spender, agreement);
    decider.event(EventKind::Accepted, detail)
}

/// Takes over the moves that made room for an agreement. Returns the moved agreements as they are now.
pub(crate) fn apply_admission_moves(decider: &mut Decider<'_>, admitted: &Placement) -> Vec<Agreement> {
    let why = "to let another agreement in";
    let mut moved = apply_moves(decider, &admitted.moved, why);
    moved.extend(admit::apply_transfers(decider, &admitted.transferred, why));
    moved
}

/// Fixes the placements of the agreements that have waited for the agreed fraction of their wait, set by the
/// provider or by the agreement itself (paper 000, section 4.2). This comes before all other decisions, and after each: one that
/// begins at once has no wait, and is fixed in the batch that makes it.
pub(crate) fn fix_those_who_have_waited(decider: &mut Decider<'_>) {
    for mut agreement in decider
        .plan
        .life
        .agreements_to_fix(&decider.plan.agreements, decider.present_second())
    {
        decider
            .plan
            .placement
            .fix(&mut decider.plan.schedules, &agreement);
        agreement.fixed = true;
        let event = decider.event(EventKind::Fixed, "its slot moves no more");
        update(decider, agreement, vec![event]);
    }
}

/// Takes over the moves of a schedule. Returns the agreements as they are now.
pub(crate) fn apply_moves(decider: &mut Decider<'_>, moves: &[Move], why: &str) -> Vec<Agreement> {
    let mut moved = Vec::with_capacity(moves.len());
    for one_move in moves {
        let Some((mut agreement, index)) = decider.plan.must_get_slot(one_move.id) else {
            continue;
        };
        let detail = format!(
            "{}{}, {why}",
            piece_in_words(&agreement, index),
            time_difference_in_words(one_move.to - one_move.from)
        );
        let (slot, nodes) = agreement.slots[index].stretch();
        agreement.place_slot(index, (Interval::of(one_move.to, slot.duration()), nodes));
        let event = decider.event(EventKind::Moved, detail);
        moved.push(update(decider, agreement, vec![event]));
    }
    moved
}

/// Begins one slot: binds its nodes. Returns the agreement if there is a job to start.
pub(crate) fn begin(decider: &mut Decider<'_>, mut agreement: Agreement) -> Option<Agreement> {
    let now = decider.present_second();
    // A job of an earlier time makes way for the one that starts now.
    decider.plan.life.forget_lost_work(agreement.id);
    let nodes = decider
        .plan
        .life
        .bind(&mut decider.plan.schedules, &agreement, now);
    if nodes.len() < agreement.slot_nodes() as usize {
        // Otherwise the plan does not take the loss of these nodes into account yet.
        if !decider
            .plan
            .life
            .begin_a_second_later(&mut decider.plan.schedules, &agreement, now)
        {
            repair::lose(decider, agreement.id);
        }
        return None;
    }
    let slot = agreement.slot();
    let interval = Interval::new(slot.start.max(now), slot.end);
    if !decider.plan.schedules.is_at_peer(&agreement) {
        agreement.note_late_job(late_starts::lateness(decider.view(), &agreement));
    }
    agreement.service = if agreement.job.is_some() {
        ServiceState::Processing
    } else {
        ServiceState::Idle
    };
    if agreement.job.is_none() {
        agreement.note_started(reserved_nodes::handed_over_nodes(decider.view(), &agreement));
    }
    let assessed = billing::assess(decider, &mut agreement);
    let named = node_status::names_of(decider.view(), &agreement.resource, &nodes);
    let mut detail = format!("on nodes {named} of {}", agreement.resource);
    if agreement.slots.is_split() {
        let (number, slots) = (agreement.slot_number(), agreement.slots.len());
        detail = format!("piece {number} of {slots}, {detail}");
    }
    if agreement.never_had_nodes() {
        detail += ", which has not told yet that it holds them for it";
    }
    if let Some(delay) = agreement.delay_in_words() {
        detail += &format!(", {delay}");
    }
    let bind = Change::BindNodes {
        agreement: agreement.id,
        resource: agreement.resource.clone(),
        nodes,
        interval,
    };
    let mut events = vec![decider.event(EventKind::Begun, detail)];
    events.extend(assessed);
    let agreement = update(decider, agreement, events);
    decider.batch.push(bind);
    agreement.job.is_some().then_some(agreement)
}

/// Records the real start of a job, with the files that were brought for it.
pub(crate) fn record_start(
    decider: &mut Decider<'_>,
    id: Uuid,
    at: Micros,
    brought: Option<BroughtFiles>,
) -> Result<()> {
    let mut agreement = processing_agreement(decider.view(), id)?;
    let mut events = note_brought_files(decider.view(), &mut agreement, brought);
    if agreement.slot_started().is_none() || !events.is_empty() {
        if agreement.slot_started().is_none() {
            agreement.note_started(Some(at));
        }
        events.push(decider.event(EventKind::Running, "its process has started"));
        events.extend(billing::assess(decider, &mut agreement));
        update(decider, agreement, events);
    }
    Ok(())
}

/// Notes, once, the files that were brought for a job. Its slot is used from when the first of them was asked for.
pub(crate) fn note_brought_files(
    view: View<'_>,
    agreement: &mut Agreement,
    brought: Option<BroughtFiles>,
) -> Vec<Event> {
    let job = agreement.job.as_mut().filter(|job| job.brought.is_none());
    let Some((job, files)) = job.zip(brought) else {
        return Vec::new();
    };
    job.brought = brought;
    vec![view.event(EventKind::Staged, files.moved.words("brought"))]
}

/// Records the end of a job and everything that follows from it.
pub(crate) fn record_end(decider: &mut Decider<'_>, id: Uuid, end: &JobEnd) -> Result<()> {
    if decider.plan.life.forget_lost_work(id) {
        // It was lost before, and its end changes nothing.
        return Ok(());
    }
    let mut agreement = processing_agreement(decider.view(), id)?;
    // Nothing happens before it was agreed or after now: a clock elsewhere may be wrong, and a record forged. Work that
    // goes on under a later agreement began at its slot's begin at the earliest.
    let agreed = match agreement.origin {
        None => agreement.created,
        Some(_) => agreement.placement().start.seconds() * domain::clock::MICROS_PER_SECOND,
    };
    let agreed = agreed.min(agreement.started.unwrap_or(decider.now));
    // The records of search machine's jobs are the supervisor's.
    let measured = retry::is_local(decider.view(), &agreement.resource);
    // Where only its files were being brought, nothing of the work has begun.
    let began = agreement.slot_started();
    let began = began.filter(|_| end.outcome != RunOutcome::Lost || !agreement.is_being_brought());
    let end = clamp_job_end(end, began, agreed, decider.now, measured);
    let started = end.started;
    let outcome = match end.outcome {
        RunOutcome::Checkpointed if agreement.state == AgreementState::ObservedAndTerminating => {
            RunOutcome::Terminated
        }
        RunOutcome::Checkpointed if agreement.has_more_slots() => {
            pieces::end_piece(decider, agreement, &end);
            return Ok(());
        }
        // There is nothing that it could go on in.
        RunOutcome::Checkpointed => RunOutcome::Killed,
        // Its party has ended it before its job was there: nothing of it is lost.
        RunOutcome::Lost
            if agreement.state == AgreementState::ObservedAndTerminating && started.is_none() =>
        {
            RunOutcome::Terminated
        }
        outcome => outcome,
    };
    let end = &JobEnd { outcome, ..end };
    agreement.note_late_end(end);
    if retry::retry_after_end(decider, &agreement, end) {
        return Ok(());
    }
    agreement.note_started(started);
    let staging = end.staging.as_deref();
    let mut events = note_brought_files(
        decider.view(),
        &mut agreement,
        staging.and_then(|staging| staging.brought),
    );
    agreement.outcome = Some(match end.outcome {
        RunOutcome::Lost => agreement.lose(),
        outcome => outcome,
    });
    let last = match (agreement.state, end.outcome) {
        (AgreementState::ObservedAndTerminating, RunOutcome::Terminated) => AgreementState::Terminated,
        _ => AgreementState::Complete,
    };
    let at = |kind, detail| Event {
        at: end.ended,
        kind,
        detail,
    };
    let sent = staging.and_then(|staging| staging.sent);
    events.extend(sent.map(|sent| at(EventKind::Staged, sent.words("sent"))));
    events.push(at(EventKind::Ended, job_end_in_words(end)));
    events.extend(invariant::must_close(decider, &mut agreement, last, end.ended)?);
    let agreement = update(decider, agreement, events);
    reports::record_execution(decider, &agreement, end);
    Ok(())
}

/// Ends the service of an agreement, assesses its guarantees and closes it: all in one step, so that no reader sees
/// a complete agreement with an open guarantee.
pub(crate) fn close(
    decider: &mut Decider<'_>,
    agreement: &mut Agreement,
    last: AgreementState,
    ended: Micros,
) -> Result<Vec<Event>> {
    // Work that another agreement goes on with is not over.
    if agreement.outcome.is_some() {
        agreement.end_slot(ended);
    }
    agreement.ended = Some(ended);
    agreement.service = ServiceState::Completed;
    agreement.state = agreement
        .state
        .to(last)
        .ok_or(Error::Conflict(agreement.state.word()))?;
    let mut events = billing::assess(decider, agreement);
    if let Some(price) = billing::charge_price(decider, agreement) {
        events.push(price);
        events.extend(billing::charge_overrun(decider, agreement));
    }
    events.push(decider.event(EventKind::Closed, agreement.state.word().to_owned()));
    Ok(events)
}

fn processing_agreement(view: View<'_>, id: Uuid) -> Result<Agreement> {
    let agreement = view.agreements.get(id).cloned().ok_or(Error::NotFound)?;
    if agreement.service == ServiceState::Processing {
        Ok(agreement)
    } else {
        Err(Error::NotFound)
    }
}

/// Puts a changed agreement into the plan and the batch. One that is over gives its nodes back, however it ended.
pub(crate) fn update(decider: &mut Decider<'_>, mut agreement: Agreement, events: Vec<Event>) -> Agreement {
    agreement.version += 1;
    let gives_back = agreement.is_between_slots() || agreement.state.is_final();
    let release = gives_back && decider.plan.life.nodes_of(agreement.id).is_some();
    // An offer in its place relies on the agreement still waiting, or still running.
    let waited = decider
        .plan
        .agreements
        .get(agreement.id)
        .is_some_and(Agreement::is_waiting);
    propose::propose_if_lost(decider, &agreement);
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
    decider.plan.replace(agreement.clone(), second_after(decider.now));
    if release {
        nodes_out_of_use::keep_freed_out_of_use(&mut decider.search(), &agreement.resource);
    }
    let goes_on = if waited {
        agreement.is_waiting()
    } else {
        agreement.is_being_carried_out()
    };
    if !goes_on {
        negotiate::release_holds_about(decider, agreement.id);
    }
    agreement
}
