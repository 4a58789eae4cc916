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

use crate::admission::share::{keep_within, refusal_within_share};
use crate::decider::Decider;
use crate::error::{Error, Refusal, Result};
use crate::lifecycle::reports::{clamp_job_end, job_end_in_words};
use crate::placement::admit::admission_in_words;
use crate::request::{AcceptedOffer, Request};
use crate::resources::need::{Need, Placement};
use crate::settings::Quotas;
use crate::words::{piece_in_words, time_difference_in_words};

impl Decider<'_> {
    /// Notes that an operator has made an agreement for another party, where the command says so.
    pub(super) fn note_booked(&mut self, AcceptedOffer { agreement, .. }: &AcceptedOffer) {
        if let Some(by) = &self.options.booked_by {
            let detail = format!("booked {} for {}", agreement.id, agreement.party);
            let note = Note::of_operator(self.now, by, agreement.id, detail);
            self.batch.push(Change::Note(note));
        }
    }

    /// Refuses an offer with an id that its initiator has given before, to another agreement than `but`: the one that it replaces,
    /// and the one that has been pending for it. Agreements that are over are looked for in the store, before the offer comes here.
    pub(super) fn check_new_id(&self, request: &Request, but: &[Option<Uuid>]) -> Result<()> {
        let Some(id) = &request.initiator_id else {
            return Ok(());
        };
        let has_it = |agreement: &Agreement| {
            agreement.party == request.party && agreement.initiator_id.as_ref() == Some(id)
        };
        let own = but
            .iter()
            .flatten()
            .filter(|but| self.plan.agreements.get(**but).is_some_and(has_it))
            .count();
        let mut waiting = self
            .plan
            .waiting
            .waiting
            .values()
            .map(|waiting| &waiting.agreement);
        if self.plan.agreements.with_initiator_id(&request.party, id) > own
            || waiting.any(|waiting| waiting.id != request.id && has_it(waiting))
        {
            return Err(Error::IdTaken(id.clone()));
        }
        Ok(())
    }

    /// Admits a proposal; `refused` says why it is not admitted.
    pub(super) fn admit_proposal_or(
        &mut self,
        request: &Request,
        refused: impl FnOnce(&mut Self, &Need<'_>, Reason) -> Refusal,
    ) -> Result<(Agreement, Placement, u64), Refusal> {
        let now = self.present_second();
        let mut limited = None;
        let mut is_capped = false;
        if self.settings.quotas_of(&request.party) != Quotas::default() || request.spender.is_some() {
            let limited = limited.insert(request.clone());
            self.limit_to_quotas(limited, None)?;
            is_capped = self.limit_to_cap(limited);
        }
        let proposal = limited.as_ref().unwrap_or(request);
        let window = self.window(proposal)?;
        // What its share leaves binds where it is placed, not what is agreed: a failure may send it elsewhere.
        let mut shared = Cow::Borrowed(proposal);
        self.limit_to_share(&mut shared, None)?;
        let room = self.window(&shared)?;
        self.fix_those_who_have_waited();
        let number = self.plan.placement.next_number();
        let mut need = Need::of(&shared, number, room, now);
        let cut = proposal.preemption.as_ref();
        self.plan.schedules.begin_search();
        need.window = self.window_after_reserving(&need);
        let mut admitted = self.admit_cut_or_whole(&need, cut);
        if admitted.is_err() && need.window != room && self.plan.waiting.not_before.is_none() {
            // Better a begin that is late than none.
            need.window = room;
            admitted = self.admit_cut_or_whole(&need, cut);
        }
        let admitted = admitted.map_err(|reason| {
            self.suggest_a_move(&need, reason);
            let why = refused(self, &need, reason);
            let why = refusal_within_share(why, room, window);
            self.refusal_under_cap(proposal.spender.filter(|_| is_capped), &need, why)
        })?;
        let is_split = admitted.slots.is_split();
        let agreed = if is_split { room } else { window };
        let mut agreement = self.make_agreement(proposal, agreed, &admitted);
        self.settle_room(&mut agreement);
        if room != agreed {
            keep_within(&mut agreement, room);
        }
        Ok((agreement, admitted, number))
    }

    /// The line of the timeline for an acceptance, which is counted against the cap of its key.
    pub(super) fn acceptance_event(
        &mut self,
        agreement: &Agreement,
        admitted: &Placement,
        spender: Option<Spender>,
    ) -> Event {
        let mut detail = admission_in_words(agreement, admitted);
        for choice in &agreement.choices {
            let members: Vec<_> = choice.members.iter().map(ToString::to_string).collect();
            detail += &format!("; chosen: {} of {}", members.join(", "), choice.path);
        }
        if let Some(price) = self.price_in_words(agreement) {
            detail += &format!("; {price}");
        }
        self.spend(spender, agreement);
        self.event(EventKind::Accepted, detail)
    }

    /// Takes over the moves that made room for an agreement. Returns the moved agreements as they are now.
    pub(super) fn apply_admission_moves(&mut self, admitted: &Placement) -> Vec<Agreement> {
        let why = "to let another agreement in";
        let mut moved = self.apply_moves(&admitted.moved, why);
        moved.extend(self.apply_transfers(&admitted.transferred, why));
        moved
    }

    /// Fixes the placements of the agreements that have waited for the agreed fraction of their wait, set by the
    /// provider or by the agreement itself (paper 000, section 4.2). This comes before all other decisions, and after each: one that
    /// begins at once has no wait, and is fixed in the batch that makes it.
    pub fn fix_those_who_have_waited(&mut self) {
        for mut agreement in self
            .plan
            .life
            .agreements_to_fix(&self.plan.agreements, self.present_second())
        {
            self.plan.placement.fix(&mut self.plan.schedules, &agreement);
            agreement.fixed = true;
            let event = self.event(EventKind::Fixed, "its slot moves no more");
            self.update(agreement, vec![event]);
        }
    }

    /// Takes over the moves of a schedule. Returns the agreements as they are now.
    pub(super) fn apply_moves(&mut self, moves: &[Move], why: &str) -> Vec<Agreement> {
        let mut moved = Vec::with_capacity(moves.len());
        for one_move in moves {
            let Some((mut agreement, index)) = self.plan.must_get_slot(one_move.id) else {
                continue;
            };
            let detail = format!(
                "{}{}, {why}",
                piece_in_words(&agreement, index),
                time_difference_in_words(one_move.to - one_move.from)
            );
            let (slot, nodes) = agreement.slots[index].stretch();
            agreement.place_slot(index, (Interval::of(one_move.to, slot.duration()), nodes));
            let event = self.event(EventKind::Moved, detail);
            moved.push(self.update(agreement, vec![event]));
        }
        moved
    }

    /// Begins one slot: binds its nodes. Returns the agreement if there is a job to start.
    pub(super) fn begin(&mut self, mut agreement: Agreement) -> Option<Agreement> {
        let now = self.present_second();
        // A job of an earlier time makes way for the one that starts now.
        self.plan.life.forget_lost_work(agreement.id);
        let nodes = self.plan.life.bind(&mut self.plan.schedules, &agreement, now);
        if nodes.len() < agreement.slot_nodes() as usize {
            // Otherwise the plan does not take the loss of these nodes into account yet.
            if !self
                .plan
                .life
                .begin_a_second_later(&mut self.plan.schedules, &agreement, now)
            {
                self.lose(agreement.id);
            }
            return None;
        }
        let slot = agreement.slot();
        let interval = Interval::new(slot.start.max(now), slot.end);
        if !self.plan.schedules.is_at_peer(&agreement) {
            agreement.note_late_job(self.lateness(&agreement));
        }
        agreement.service = if agreement.job.is_some() {
            ServiceState::Processing
        } else {
            ServiceState::Idle
        };
        if agreement.job.is_none() {
            agreement.note_started(self.handed_over_nodes(&agreement));
        }
        let assessed = self.assess(&mut agreement);
        let named = self.names_of(&agreement.resource, &nodes);
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
        let mut events = vec![self.event(EventKind::Begun, detail)];
        events.extend(assessed);
        let agreement = self.update(agreement, events);
        self.batch.push(bind);
        agreement.job.is_some().then_some(agreement)
    }

    /// Records the real start of a job, with the files that were brought for it.
    pub(super) fn record_start(&mut self, id: Uuid, at: Micros, brought: Option<BroughtFiles>) -> Result<()> {
        let mut agreement = self.processing_agreement(id)?;
        let mut events = self.note_brought_files(&mut agreement, brought);
        if agreement.slot_started().is_none() || !events.is_empty() {
            if agreement.slot_started().is_none() {
                agreement.note_started(Some(at));
            }
            events.push(self.event(EventKind::Running, "its process has started"));
            events.extend(self.assess(&mut agreement));
            self.update(agreement, events);
        }
        Ok(())
    }

    /// Notes, once, the files that were brought for a job. Its slot is used from when the first of them was asked for.
    pub(super) fn note_brought_files(
        &self,
        agreement: &mut Agreement,
        brought: Option<BroughtFiles>,
    ) -> Vec<Event> {
        let job = agreement.job.as_mut().filter(|job| job.brought.is_none());
        let Some((job, files)) = job.zip(brought) else {
            return Vec::new();
        };
        job.brought = brought;
        vec![self.event(EventKind::Staged, files.moved.words("brought"))]
    }

    /// Records the end of a job and everything that follows from it.
    pub(super) fn record_end(&mut self, id: Uuid, end: &JobEnd) -> Result<()> {
        if self.plan.life.forget_lost_work(id) {
            // It was lost before, and its end changes nothing.
            return Ok(());
        }
        let mut agreement = self.processing_agreement(id)?;
        // Nothing happens before it was agreed or after now: a clock elsewhere may be wrong, and a record forged. Work that
        // goes on under a later agreement began at its slot's begin at the earliest.
        let agreed = match agreement.origin {
            None => agreement.created,
            Some(_) => agreement.placement().start.seconds() * domain::clock::MICROS_PER_SECOND,
        };
        let agreed = agreed.min(agreement.started.unwrap_or(self.now));
        // The records of this machine's jobs are the supervisor's.
        let measured = self.is_local(&agreement.resource);
        // Where only its files were being brought, nothing of the work has begun.
        let began = agreement.slot_started();
        let began = began.filter(|_| end.outcome != RunOutcome::Lost || !agreement.is_being_brought());
        let end = clamp_job_end(end, began, agreed, self.now, measured);
        let started = end.started;
        let outcome = match end.outcome {
            RunOutcome::Checkpointed if agreement.state == AgreementState::ObservedAndTerminating => {
                RunOutcome::Terminated
            }
            RunOutcome::Checkpointed if agreement.has_more_slots() => {
                self.end_piece(agreement, &end);
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
        if self.retry_after_end(&agreement, end) {
            return Ok(());
        }
        agreement.note_started(started);
        let staging = end.staging.as_deref();
        let mut events = self.note_brought_files(&mut agreement, staging.and_then(|staging| staging.brought));
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
        events.extend(self.must_close(&mut agreement, last, end.ended)?);
        let agreement = self.update(agreement, events);
        self.record_execution(&agreement, end);
        Ok(())
    }

    /// Ends the service of an agreement, assesses its guarantees and closes it: all in one step, so that no reader sees
    /// a complete agreement with an open guarantee.
    pub(super) fn close(
        &mut self,
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
        let mut events = self.assess(agreement);
        if let Some(price) = self.charge_price(agreement) {
            events.push(price);
            events.extend(self.charge_overrun(agreement));
        }
        events.push(self.event(EventKind::Closed, agreement.state.word().to_owned()));
        Ok(events)
    }

    fn processing_agreement(&self, id: Uuid) -> Result<Agreement> {
        let agreement = self.live_agreement(id)?;
        if agreement.service == ServiceState::Processing {
            Ok(agreement)
        } else {
            Err(Error::NotFound)
        }
    }

    /// Puts a changed agreement into the plan and the batch. One that is over gives its nodes back, however it ended.
    pub(super) fn update(&mut self, mut agreement: Agreement, events: Vec<Event>) -> Agreement {
        self.plan.schedules.check_settled(agreement.id);
        agreement.version += 1;
        let gives_back = agreement.is_between_slots() || agreement.state.is_final();
        let release = gives_back && self.plan.life.nodes_of(agreement.id).is_some();
        // An offer in its place relies on the agreement still waiting, or still running.
        let waited = self
            .plan
            .agreements
            .get(agreement.id)
            .is_some_and(Agreement::is_waiting);
        self.propose_if_lost(&agreement);
        self.batch.push(Change::UpdateAgreement {
            agreement: Box::new(agreement.clone()),
            events,
        });
        if release {
            self.batch.push(Change::ReleaseNodes {
                agreement: agreement.id,
                end: agreement.released(),
            });
        }
        // A node with work that ended within a second is free from the next one on.
        self.plan.replace(agreement.clone(), second_after(self.now));
        if release {
            self.keep_freed_out_of_use(&agreement.resource);
        }
        let goes_on = if waited {
            agreement.is_waiting()
        } else {
            agreement.is_being_carried_out()
        };
        if !goes_on {
            self.release_holds_about(agreement.id);
        }
        agreement
    }
}
