//! The decisions: from the plan and a command to the changes that are stored and the answer that is given. Nothing
//! here waits or stores; the writer does.

use std::borrow::Cow;

use domain::agreement::{
    Agreement, AgreementState, BroughtFiles, Event, EventKind, JobEnd, Money, Note, PostingKind, RunOutcome,
    ServiceState, Spender,
};
use domain::change::Change;
use domain::clock::{Micros, second_after};
use domain::resources::Unused;
use scheduler::{Interval, Move, Reason};
use uuid::Uuid;

use crate::admission::share::{keep_within, refusal_within_share};
use crate::decider::Decider;
use crate::decider::DecisionStep;
use crate::error::{Error, Refusal, Result};
use crate::lifecycle::reports::{clamp_job_end, job_end_in_words};
use crate::placement::admit::admission_in_words;
use crate::plan::is_undecided;
use crate::request::{AcceptedOffer, Request, Termination};
use crate::requests::request_of_agreement;
use crate::resources::need::{Need, Placement};
use crate::settings::Quotas;
use crate::words::{piece_in_words, time_difference_in_words};

impl Decider<'_> {
    /// Decides about an offer: it is placed inside its window, and accepted agreements that may move make room for it.
    pub fn place(&mut self, request: Request) -> Result<DecisionStep<AcceptedOffer, Request>> {
        self.check_key_is_new(request.idempotency.as_ref())?;
        self.check_new_id(&request, &[])?;
        self.check_agreements_quota(&request.party, Some(request.id))?;
        let mut moved = self.moved_before_reserving(request.id);
        let Some((agreement, admitted, number)) = self.admit_proposal(&request)? else {
            return Ok(DecisionStep::Wait(request));
        };
        self.plan.insert(agreement.clone(), number);
        let event = self.acceptance_event(&agreement, &admitted, request.spender);
        self.batch.push(Change::CreateAgreement {
            agreement: Box::new(agreement.clone()),
            document: request.document,
            events: vec![event],
        });
        moved.extend(self.apply_admission_moves(&admitted));
        moved.retain(|other| other.party == agreement.party);
        let accepted = AcceptedOffer { agreement, moved };
        self.remember(request.idempotency, &accepted);
        Ok(DecisionStep::Done(accepted))
    }

    /// Notes that an operator has made an agreement for another party.
    pub fn note_booked(&mut self, by: Option<&str>, decided: &Result<AcceptedOffer>) {
        if let (Some(by), Ok(AcceptedOffer { agreement, .. })) = (by, decided) {
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
            .filter(|but| self.plan.get(**but).is_some_and(has_it))
            .count();
        let mut waiting = self
            .plan
            .reserving
            .waiting
            .values()
            .map(|waiting| &waiting.agreement);
        if self.plan.live.with_initiator_id(&request.party, id) > own
            || waiting.any(|waiting| waiting.id != request.id && has_it(waiting))
        {
            return Err(Error::IdTaken(id.clone()));
        }
        Ok(())
    }

    /// Finds the place of an offer, and the number that its agreement is known by; none where its cluster has to hold it first.
    fn admit_proposal(&mut self, request: &Request) -> Result<Option<(Agreement, Placement, u64)>, Refusal> {
        self.admit_reserved_or(request, |this, need, reason| {
            // A refusal reveals something about the agreements of others, as a quote does.
            match this.count_quota_question(need.payer.party) {
                Ok(()) => this.make_refusal(need, reason),
                Err(exceeded) => exceeded,
            }
        })
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
        let number = self.plan.next_number();
        let mut need = Need::of(&shared, number, room, now);
        let cut = proposal.preemption.as_ref();
        self.plan.resources.cut_short = false;
        need.window = self.window_after_reserving(&need);
        let mut admitted = self.admit_cut_or_whole(&need, cut);
        if admitted.is_err() && need.window != room && self.plan.reserving.not_before.is_none() {
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
        for mut agreement in self.plan.agreements_to_fix(self.present_second()) {
            self.plan.fix(&agreement);
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

    /// Ends an agreement before its time.
    pub fn terminate(&mut self, order: Termination) -> Result<Agreement> {
        self.check_key_is_new(order.idempotency.as_ref())?;
        let agreement = self.live_agreement(order.id)?;
        if order.party.is_some_and(|party| party != agreement.party) {
            return Err(Error::NotFound);
        }
        if order
            .versions
            .is_some_and(|may| !may.contains(&agreement.version))
        {
            return Err(Error::Changed);
        }
        if is_undecided(&agreement) && self.is_at_peer(&agreement) && !order.by_provider {
            return Err(Error::Conflict(
                "being agreed with another domain; try again in a moment",
            ));
        }
        let ending = if order.by_provider && !is_undecided(&agreement) {
            self.end_taken_back(agreement)?
        } else {
            self.end_or_stop_job(agreement, order.by_provider, order.charge_of_peer)?
        };
        self.remember(order.idempotency, &ending);
        Ok(ending)
    }

    /// Ends an agreement at once, or has its job stopped first.
    fn end_or_stop_job(
        &mut self,
        mut agreement: Agreement,
        by_provider: bool,
        charge_of_peer: Option<Money>,
    ) -> Result<Agreement> {
        // Asked before: its job is being stopped.
        let Some(terminating) = agreement.state.terminating() else {
            return Ok(agreement);
        };
        agreement.state = terminating;
        let by = if by_provider { "the operator" } else { "its party" };
        let mut events = vec![self.event(EventKind::Terminating, format!("asked for by {by}"))];
        match agreement.service {
            ServiceState::NotReady => return self.cancel(agreement, events, charge_of_peer),
            // Its nodes may be its party's. What it owes is known when its peer tells.
            ServiceState::Idle if self.awaits_word_of_peer(&agreement) => {}
            ServiceState::Idle => {
                agreement.outcome = Some(RunOutcome::Terminated);
                events.extend(self.close(&mut agreement, AgreementState::Terminated, self.now)?);
            }
            ServiceState::Processing | ServiceState::Completed => {}
        }
        Ok(self.update(agreement, events))
    }

    /// Ends an agreement before its slot begins, for its fee. The present price of the same request is known only after
    /// the agreement has left the plan.
    fn cancel(
        &mut self,
        mut agreement: Agreement,
        mut events: Vec<Event>,
        charge_of_peer: Option<Money>,
    ) -> Result<Agreement> {
        let mut closed = self.close(&mut agreement, AgreementState::Terminated, self.now)?;
        agreement.version += 1;
        self.plan.replace(agreement.clone(), second_after(self.now));
        let last = closed.pop();
        events.extend(closed);
        let fee = self.cancellation_fee(&agreement, charge_of_peer);
        events.extend(fee.and_then(|fee| {
            let why = fee.why.map_or_else(String::new, |why| format!(": {why}"));
            let what = format!("fee for ending it before its slot{why}");
            self.charge(&agreement, PostingKind::Cancellation, fee.amount, &what)
        }));
        events.extend(last);
        self.batch.push(Change::UpdateAgreement {
            agreement: Box::new(agreement.clone()),
            events,
        });
        self.release_holds_about(agreement.id);
        Ok(agreement)
    }

    /// Begins every slot that is due and closes the reservations that are over.
    pub fn begin_due(&mut self) -> Result<Vec<Agreement>> {
        let now = self.present_second();
        self.announce_starts();
        self.plan.give_up_stopping_lost_work(now);
        let (mut starting, mut missed, mut late) = (Vec::new(), Vec::new(), Vec::new());
        for id in self.plan.due.due_by(now) {
            let Some(agreement) = self.plan.must_get(id) else {
                continue;
            };
            if agreement.service == ServiceState::Processing {
                self.handle_overrun(&agreement);
            } else if self.awaits_word_of_cluster(&agreement) {
                // Its nodes may be its party's already.
            } else if agreement.has_nodes() {
                self.finish_reservation(agreement)?;
            } else if self.is_at_peer(&agreement) {
                starting.extend(self.begin_at_peer(agreement));
            } else if agreement.slot().end <= now || agreement.is_too_late_by(self.lateness(&agreement)) {
                missed.push(agreement);
            } else if agreement.job.is_none() && self.lateness(&agreement) > 0 {
                late.push(agreement.id);
            } else if let Some(begun) = self.begin(agreement) {
                starting.push(begun);
            }
        }
        // The agreements with the least room come first. A slot that begins now is out of their way.
        missed.sort_by_key(|agreement| (request_of_agreement(agreement, 0).slack(now), agreement.id));
        for agreement in missed {
            let agreement = self.live_agreement(agreement.id)?;
            self.place_missed_slot(&agreement);
            let placed = self.plan.get(agreement.id).cloned();
            // A second later it might be late again.
            if let Some(placed) =
                placed.filter(|agreement| agreement.is_waiting() && agreement.slot().start <= now)
            {
                starting.extend(self.begin(placed));
            }
        }
        // What has lost its whole slot comes before what has lost a little of it.
        for id in late {
            if let Some(agreement) = self.plan.get(id).filter(|plan| plan.is_waiting()).cloned() {
                let agreement = self.prolong_late_slot(agreement);
                starting.extend(self.begin(agreement));
            }
        }
        self.assess_due();
        Ok(starting)
    }

    /// Announces the starts whose time has come. One that has come itself is not announced any more.
    fn announce_starts(&mut self) {
        let now = self.present_second();
        for id in self.plan.starts.due_by(now) {
            let Some(agreement) = self.plan.must_get(id) else {
                continue;
            };
            let start = agreement.slot().start;
            self.plan.starts.note_announced(&agreement, start);
            if start > now {
                self.batch.push(Change::AnnounceStart {
                    agreement: Box::new(agreement),
                    at: self.now,
                });
            }
        }
    }

    /// Begins one slot: binds its nodes. Returns the agreement if there is a job to start.
    pub(super) fn begin(&mut self, mut agreement: Agreement) -> Option<Agreement> {
        let now = self.present_second();
        // A job of an earlier time makes way for the one that starts now.
        self.plan.forget_lost_work(agreement.id);
        let nodes = self.plan.bind(&agreement, now);
        if nodes.len() < agreement.slot_nodes() as usize {
            // Otherwise the plan does not take the loss of these nodes into account yet.
            if !self.plan.begins_a_second_later(&agreement, now) {
                self.lose(agreement.id);
            }
            return None;
        }
        let slot = agreement.slot();
        let interval = Interval::new(slot.start.max(now), slot.end);
        if !self.is_at_peer(&agreement) {
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

    /// Warns a party that does not use its nodes, or takes them back.
    pub fn treat_unused_slot(&mut self, id: Uuid, unused: Unused) -> Result<()> {
        let mut agreement = self.live_agreement(id)?;
        if agreement.service != ServiceState::Idle || agreement.never_had_nodes() {
            return Err(Error::NotFound);
        }
        let events = match unused {
            Unused::Warn => vec![self.event(EventKind::Unused, "nobody uses its nodes")],
            Unused::Reclaim => {
                let taken = "nobody has used its nodes: they are given to others".to_owned();
                let mut events = vec![self.event(EventKind::Unused, taken)];
                agreement.outcome = Some(RunOutcome::Completed);
                events.extend(self.close(&mut agreement, AgreementState::Complete, self.now)?);
                events
            }
        };
        self.update(agreement, events);
        Ok(())
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
        if self.plan.forget_lost_work(id) {
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
        self.plan.resources.check_settled(agreement.id);
        agreement.version += 1;
        let gives_back = agreement.is_between_slots() || agreement.state.is_final();
        let release = gives_back && self.plan.bound.contains_key(&agreement.id);
        // An offer in its place relies on the agreement still waiting, or still running.
        let waited = self.plan.get(agreement.id).is_some_and(Agreement::is_waiting);
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
