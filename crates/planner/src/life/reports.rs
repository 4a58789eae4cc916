//! The reports about the jobs of agreements. A late report may be about a job that another job of the same agreement has
//! replaced. It says nothing about the new job: only reports about the agreement's present job count.

use domain::agreement::{
    Agreement, AgreementState, BroughtFiles, Event, EventKind, JobEnd, Run, RunOutcome, ServiceState,
};
use domain::clock::{MICROS_PER_SECOND, Micros, STEP_MIN};
use scheduler::counted;
use uuid::Uuid;

use crate::context::View;
use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::life::lost_work::NEVER_STARTED;
use crate::life::{billing, executions, lost_work, update};

/// The agreement that this is the present run of. An agreement that replaced another one has taken over that one's
/// runs.
pub(crate) fn id_of_reported_run(view: View<'_>, run: Run) -> Result<Uuid> {
    let one_agreement = run.agreement;
    let own = view
        .life
        .stopping_of(one_agreement)
        .or_else(|| view.agreements.get(one_agreement));
    let own = own.filter(|agreement| agreement.execution_id() == one_agreement);
    let mut stopping = view.life.stopping();
    let agreement = own
        .or_else(|| stopping.find(|agreement| agreement.origin == Some(one_agreement)))
        .or_else(|| view.agreements.going_on_with(one_agreement))
        .ok_or(Error::NotFound)?;
    let now = Run::from(agreement);
    if now == run {
        return Ok(agreement.id);
    }
    tracing::info!(%run, %now, "a report of another run of the agreement is ignored");
    Err(Error::NotFound)
}

/// An end between the `agreed` instant and now. Where its run time was `measured`, an end well after now came before the
/// clock was set back: its end is set to now, and its start to that instant less the job's run time.
fn clamp_reported_end(
    end: &JobEnd,
    reported: Option<Micros>,
    agreed: Micros,
    now: Micros,
    measured: bool,
) -> JobEnd {
    let least = agreed.min(now);
    let began = end.started.or(reported);
    let ran = began.map_or(0, |began| end.ended.saturating_sub(began).max(0));
    let set_back = measured && end.ended > now + STEP_MIN;
    let started = began.map(|began| {
        if set_back {
            now.saturating_sub(ran)
        } else {
            began.clamp(least, now)
        }
    });
    JobEnd {
        started,
        ended: end.ended.clamp(started.unwrap_or(least), now),
        ..end.clone()
    }
}

/// How a job ended, in words for its party.
fn reported_end_in_words(end: &JobEnd) -> String {
    let how = match end.outcome {
        RunOutcome::Completed => "exit status 0".to_owned(),
        RunOutcome::Failed { exit } => format!("exit status {exit}"),
        RunOutcome::Killed | RunOutcome::Checkpointed => "stopped at the end of its slot".to_owned(),
        RunOutcome::Terminated => "stopped because the agreement was terminated".to_owned(),
        RunOutcome::Exceeded { limit } if end.started.is_none() => format!(
            "not started because its party's jobs take more {} than they may",
            limit.word()
        ),
        RunOutcome::Exceeded { limit } => {
            format!("stopped because it took more {} than it may", limit.word())
        }
        RunOutcome::Unstaged => {
            let why = end
                .staging
                .as_ref()
                .and_then(|staging| staging.failure.as_deref());
            format!(
                "its files could not be moved: {}",
                why.unwrap_or("for a reason of their own")
            )
        }
        RunOutcome::Lost if end.started.is_none() => NEVER_STARTED.to_owned(),
        RunOutcome::Lost => "gone without a trace of its end".to_owned(),
    };
    if end.truncated {
        format!(
            "{how}; its output may not be whole: {} of it are kept",
            counted(end.output_bytes, "byte")
        )
    } else {
        how
    }
}

/// Records the real start of a job, with the files that were brought for it.
pub(crate) fn record_reported_start(
    decider: &mut Decider<'_>,
    id: Uuid,
    at: Micros,
    brought: Option<BroughtFiles>,
) -> Result<()> {
    let mut agreement = reported_agreement(decider.view(), id)?;
    let mut events = executions::note_files_of_execution(decider.view(), &mut agreement, brought);
    if agreement.slot_started().is_none() || !events.is_empty() {
        if agreement.slot_started().is_none() {
            agreement.note_started(Some(at));
        }
        events.push(decider.event(EventKind::Running, "its process has started"));
        events.extend(billing::assess_and_bill(decider, &mut agreement));
        update::update(decider, agreement, events);
    }
    Ok(())
}

/// Records the end of a job and everything that follows from it.
pub(crate) fn record_reported_end(decider: &mut Decider<'_>, id: Uuid, end: &JobEnd) -> Result<()> {
    if decider.state.life.forget_lost_work(id) {
        // It was lost before, and its end changes nothing.
        return Ok(());
    }
    let mut agreement = reported_agreement(decider.view(), id)?;
    // Nothing happens before it was agreed or after now: a clock elsewhere may be wrong, and a record forged. Work that
    // goes on under a later agreement began at its slot's begin at the earliest.
    let agreed = match agreement.origin {
        None => agreement.created,
        Some(_) => agreement.placement().start.seconds() * domain::clock::MICROS_PER_SECOND,
    };
    let agreed = agreed.min(agreement.started.unwrap_or(decider.now));
    // The records of this machine's jobs are the supervisor's.
    let measured = decider.state.schedules.is_local(&agreement.resource);
    // Where only its files were being brought, nothing of the work has begun.
    let began = agreement.slot_started();
    let began = began.filter(|_| end.outcome != RunOutcome::Lost || !agreement.is_being_brought());
    let end = clamp_reported_end(end, began, agreed, decider.now, measured);
    let started = end.started;
    let outcome = match end.outcome {
        RunOutcome::Checkpointed if agreement.state == AgreementState::ObservedAndTerminating => {
            RunOutcome::Terminated
        }
        RunOutcome::Checkpointed if agreement.has_more_slots() => {
            lost_work::end_piece(decider, agreement, &end);
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
    if lost_work::retry_lost_work(decider, &agreement, end) {
        return Ok(());
    }
    agreement.note_started(started);
    let staging = end.staging.as_deref();
    let mut events = executions::note_files_of_execution(
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
    events.push(at(EventKind::Ended, reported_end_in_words(end)));
    events.extend(update::must_update_to_closed(
        decider,
        &mut agreement,
        last,
        end.ended,
    )?);
    let agreement = update::update(decider, agreement, events);
    executions::record_execution(decider, &agreement, end);
    Ok(())
}

fn reported_agreement(view: View<'_>, id: Uuid) -> Result<Agreement> {
    let agreement = view.agreements.get(id).cloned().ok_or(Error::NotFound)?;
    if agreement.service == ServiceState::Processing {
        Ok(agreement)
    } else {
        Err(Error::NotFound)
    }
}

/// Ends a reservation that runs nothing: at the end of its slot, or once it is known whether its peer has handed over its nodes,
/// where that was waited for. One that its party has ended is terminated, and not lost.
pub(crate) fn finish_reservation(decider: &mut Decider<'_>, mut agreement: Agreement) -> Result<()> {
    let (outcome, last) = if agreement.state == AgreementState::ObservedAndTerminating {
        (RunOutcome::Terminated, AgreementState::Terminated)
    } else if agreement.never_had_nodes() {
        (RunOutcome::Lost, AgreementState::Complete)
    } else {
        (RunOutcome::Completed, AgreementState::Complete)
    };
    agreement.outcome = Some(outcome);
    let end = agreement.slot().end.seconds() * MICROS_PER_SECOND;
    let end = end.min(decider.now);
    let mut events = Vec::new();
    if agreement.never_had_nodes() {
        let detail = format!("{} has never held its nodes for it", agreement.resource);
        events.push(decider.event(EventKind::Ended, detail));
    }
    let shortfall = agreement.undelivered_in_words();
    events.extend(shortfall.map(|shortfall| decider.event(EventKind::Ended, shortfall)));
    events.extend(update::must_update_to_closed(decider, &mut agreement, last, end)?);
    update::update(decider, agreement, events);
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::agreement::{AgreementState, Job, RunOutcome};
    use domain::agreement::{CannotStart, ServiceState};
    use domain::clock::MICROS_PER_SECOND;
    use domain::resources::Resource;
    use scheduler::preemptive::{Preemption, Rounding};

    use super::*;
    use crate::Request;
    use crate::commands::{BeginDue, ReportEnded, ReportStarted, ReportUnable};
    use crate::tests::harness::{Domain, proposal};

    fn end(outcome: RunOutcome, at: i64) -> JobEnd {
        JobEnd::new(
            outcome,
            Some((at - 1) * MICROS_PER_SECOND),
            at * MICROS_PER_SECOND,
        )
    }

    impl Domain {
        /// Thirty seconds of work on all nodes around twenty that are taken, run again where it is lost.
        fn cut_in_two() -> (Self, Uuid) {
            let mut domain = Self::new(vec![Resource::new("local", "local", 4)]);
            domain.settings.restarting = ["t".to_owned()].into();
            domain.place(proposal(4, 20, (10, 30))).unwrap();
            let preemption = Preemption::new(3, 100_000, false).unwrap();
            let work = Request {
                preemption: Some(preemption.rounded(Rounding::Cuts)),
                job: Some(Job {
                    application: "count".into(),
                    arguments: Vec::new(),
                    ..Job::default()
                }),
                ..proposal(4, 30, (0, 400))
            };
            let id = domain.place(work).unwrap().agreement.id;
            assert_eq!(domain.of(id).slots.pieces().len(), 2);
            (domain, id)
        }

        /// Makes the next slot of an agreement begin. Returns its job in that slot.
        fn begin_next(&mut self, id: Uuid) -> Run {
            self.now = self.of(id).slot().start.seconds();
            self.decide(|decider| decider.decide(BeginDue).map(drop)).unwrap();
            assert_eq!(self.of(id).service, ServiceState::Processing);
            Run::from(self.of(id))
        }

        fn report(&mut self, run: Run, outcome: RunOutcome) -> Result<()> {
            self.now += 2;
            let end = end(outcome, self.now);
            self.decide(|decider| {
                decider.decide(ReportEnded {
                    run,
                    end: end.clone(),
                })
            })
        }
    }

    #[test]
    fn a_report_that_comes_late_says_nothing_of_the_next_piece() {
        let (mut domain, id) = Domain::cut_in_two();
        let first = domain.begin_next(id);
        domain.report(first, RunOutcome::Checkpointed).unwrap();
        let second = domain.begin_next(id);
        let before = domain.of(id).clone();
        assert_eq!((first.slot, second.slot), (1, 2));
        for outcome in [RunOutcome::Checkpointed, RunOutcome::Completed, RunOutcome::Lost] {
            assert_eq!(domain.report(first, outcome), Err(Error::NotFound));
        }
        let started = domain.decide(|decider| decider.decide(ReportStarted { run: first, at: 1 }));
        assert_eq!(started, Err(Error::NotFound));
        assert_eq!(domain.of(id), &before);
        domain.report(second, RunOutcome::Completed).unwrap();
        assert!(!domain.known.contains_key(&id), "it is over");
    }

    #[test]
    fn a_report_that_comes_late_says_nothing_of_the_next_time() {
        let (mut domain, id) = Domain::cut_in_two();
        let first = domain.begin_next(id);
        domain.report(first, RunOutcome::Lost).unwrap();
        assert_eq!(domain.report(first, RunOutcome::Completed), Err(Error::NotFound));
        assert_eq!(
            domain.state.life.running(&domain.state.agreements).len(),
            1,
            "what is left of it is still looked after"
        );
        let second = domain.begin_next(id);
        let before = domain.of(id).clone();
        assert_eq!((first.attempt, second.attempt), (0, 1));
        assert_eq!(domain.report(first, RunOutcome::Terminated), Err(Error::NotFound));
        assert_eq!(domain.of(id), &before);
        domain.report(second, RunOutcome::Checkpointed).unwrap();
        assert_eq!(domain.of(id).slots_over(), 1);
    }

    #[test]
    fn a_piece_that_runs_again_is_late_anew_and_the_one_before_stays_as_late_as_it_was() {
        let (mut domain, id) = Domain::cut_in_two();
        let begin_late = |domain: &mut Domain, late: i64| {
            domain.now = domain.of(id).slot().start.seconds() + late;
            domain
                .decide(|decider| decider.decide(BeginDue).map(drop))
                .unwrap();
            Run::from(domain.of(id))
        };
        let withheld = |domain: &Domain| domain.of(id).duration - domain.of(id).delivered();
        let first = begin_late(&mut domain, 6);
        assert_eq!(withheld(&domain), 6);
        domain.report(first, RunOutcome::Checkpointed).unwrap();
        let second = begin_late(&mut domain, 7);
        assert_eq!(withheld(&domain), 13);
        domain.report(second, RunOutcome::Lost).unwrap();
        assert_eq!(withheld(&domain), 6);
    }

    #[test]
    fn work_that_its_party_ends_before_its_job_is_there_is_terminated_and_not_lost() {
        let (mut domain, id) = Domain::cut_in_two();
        let run = domain.begin_next(id);
        let ended = domain.decide(|decider| decider.decide(crate::Terminate::of(id, None)));
        assert_eq!(ended.unwrap().state, AgreementState::ObservedAndTerminating);
        // That was said of it before it was known that it is to end.
        let never = JobEnd {
            started: None,
            ..end(RunOutcome::Lost, domain.now)
        };
        domain
            .decide(|decider| {
                decider.decide(ReportEnded {
                    run,
                    end: never.clone(),
                })
            })
            .unwrap();
        let over = &domain.over[&id];
        assert_eq!(
            (over.state, over.outcome),
            (AgreementState::Terminated, Some(RunOutcome::Terminated))
        );
    }

    #[test]
    fn work_that_can_never_be_started_ends_at_once_and_says_why() {
        let (mut domain, id) = Domain::cut_in_two();
        let run = domain.begin_next(id);
        let unable = |run, why| move |decider: &mut Decider<'_>| decider.decide(ReportUnable { run, why });
        let late = Run { attempt: 7, ..run };
        let told = domain.decide(unable(late, CannotStart::NoApplication));
        assert_eq!(told, Err(Error::NotFound));
        domain.decide(unable(run, CannotStart::NoApplication)).unwrap();
        assert!(!domain.known.contains_key(&id), "it is not run again");
        let why = "its work cannot go on: its application is no longer offered";
        assert!(
            domain.told.iter().any(|(_, told)| told == why),
            "{:?}",
            domain.told
        );
    }
}
