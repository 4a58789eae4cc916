//! The files of jobs on a lane: brought before a job is started, sent after it has completed, and what that means for its end.

use domain::agreement::{
    Agreement, AgreementState, BroughtFiles, Job, JobEnd, Limit, MovedFiles, Run, RunOutcome, Source,
    StagedFile, StagingEnd,
};
use domain::clock::{MICROS_PER_SECOND, Micros};
use tracing::warn;

use super::{Failure, JobSpec, Lane, StartFailure, is_report_of_lane_taken, slot_end_in_lane};
use crate::StagedInput;
use crate::job::staging_record::{Fate, StagingDirection, StagingRecord, Verdict};
use crate::lead::Report;
use crate::staging::{Order, OrderState, Stager};

/// A job that ends later than so long before the end of its slot has left no time to send its files.
const TIME_TO_SEND: Micros = 5 * MICROS_PER_SECOND;

/// The names in a job's folder and the addresses of files.
type StagedAddresses = Vec<(String, String)>;

/// The job of an agreement, as [`Lane::job_to_start`] has it, with the files of its party that are there by now.
pub(super) async fn find_job_with_staged_files(
    lane: &Lane,
    agreement: &Agreement,
) -> Result<Result<JobSpec, StartFailure>, Failure> {
    let job = lane.job_to_start(agreement);
    let names_files = agreement.job.as_ref().is_some_and(|job| {
        let application = lane.application_of(agreement);
        job.uploads().next().is_some()
            || application.is_some_and(|application| !application.files(&job.arguments).is_empty())
    });
    if job.is_err() || !names_files {
        return Ok(job);
    }
    lane.context.files.catch_up().await?;
    Ok(lane.job_to_start(agreement))
}

/// It moves the files of jobs on this resource.
fn staging_of_lane(lane: &Lane) -> Stager {
    let is_cluster = lane.shared.is_cluster();
    lane.context.staging.on_cluster(is_cluster)
}

/// Starts a job once its files have been brought, and has them brought until then. Where one cannot be, its work is over.
pub(super) async fn start_after_staging(
    lane: &Lane,
    agreement: &Agreement,
    job: JobSpec,
) -> Result<(), Failure> {
    let Some(wanted) = job_with_files_to_stage(agreement) else {
        return lane.start(agreement, job).await;
    };
    let mut since = None;
    if let Some(order) = staging_order_to_bring(agreement) {
        match staging_of_lane(lane).follow(order).await? {
            OrderState::Underway { since } => return report_staging(lane, agreement, since).await,
            OrderState::Over(verdict, began, _) if verdict.fate == Fate::Arrived => since = Some(began),
            OrderState::Over(verdict, began, _) => {
                return lane
                    .report_ended(agreement, end_of_unstaged_lane_job(verdict, Some(began)))
                    .await;
            }
        }
    }
    let record = staging_of_lane(lane).record(Run::from(agreement)).await?;
    match staged_inputs(lane, agreement, wanted, record).await? {
        Ok(staged) => lane.start(agreement, JobSpec { staged, ..job }).await,
        Err(why) => {
            let at = lane.context.clock.micros();
            let fate = Fate::Failed { why };
            let end = end_of_unstaged_lane_job(Verdict { at, fate }, since.or(Some(at)));
            lane.report_ended(agreement, end).await
        }
    }
}

/// The files that a job is given under names of their own; or why one is not there, in words for its party.
async fn staged_inputs(
    lane: &Lane,
    agreement: &Agreement,
    job: &Job,
    record: Option<StagingRecord>,
) -> Result<Result<Vec<StagedInput>, String>, Failure> {
    let (files, party) = (lane.context.files.clone(), agreement.party.clone());
    let brought = record.map_or_else(Vec::new, |record| record.brought.files);
    let wanted = job.staging.clone();
    let input = move |file: &StagedFile| {
        let (from, bytes) = match file.source.as_ref()? {
            Source::Upload(name) => match files.find(&party, name) {
                None => {
                    let why = format!("{}: the uploaded file {name} is not there any more", file.name);
                    return Some(Err(why));
                }
                Some(path) => {
                    let bytes = path.metadata().map_or(0, |meta| meta.len());
                    (Some(path), bytes)
                }
            },
            Source::Address(_) => {
                let found = brought.iter().find(|brought| brought.name == file.name);
                (None, found.map_or(0, |found| found.bytes))
            }
        };
        Some(Ok(StagedInput {
            name: file.name.clone(),
            from,
            bytes,
            returns: file.target.is_some(),
        }))
    };
    let find = move || wanted.iter().filter_map(input).collect();
    Ok(task::spawn_blocking(find).await?)
}

/// The end of a job that is not started, with this outcome where its files are not the reason; none while it is not known
/// whether they are.
pub(super) async fn end_unstarted_in_staging(
    lane: &Lane,
    agreement: &Agreement,
    outcome: RunOutcome,
) -> Result<Option<JobEnd>, Failure> {
    let end = agreement.end_without_output(outcome, lane.context.clock.micros());
    let Some(order) = staging_order_to_bring(agreement) else {
        return Ok(Some(end));
    };
    if outcome != RunOutcome::Lost || agreement.state.is_final() {
        staging_of_lane(lane)
            .give_up(order.run, StagingDirection::In)
            .await?;
        return Ok(Some(end));
    }
    // Its slot is over: what held its files up says whose loss that is.
    Ok(match staging_of_lane(lane).follow(order).await? {
        OrderState::Underway { .. } => None,
        // They had arrived, and nothing was started.
        OrderState::Over(verdict, ..) if verdict.fate == Fate::Arrived => {
            Some(JobEnd::new(RunOutcome::Lost, None, verdict.at))
        }
        OrderState::Over(verdict, since, _) => Some(end_of_unstaged_lane_job(verdict, Some(since))),
    })
}

/// The end of a job with what became of its files; none while they are being sent, which its end waits for.
pub(super) async fn end_after_staging(
    lane: &Lane,
    agreement: &Agreement,
    mut end: JobEnd,
) -> Result<Option<JobEnd>, Failure> {
    let job = agreement.job.as_ref().filter(|job| !job.staging.is_empty());
    let Some(job) = job.filter(|_| !lane.shared.executor.moves_files()) else {
        return Ok(Some(end));
    };
    let own = Run::from(agreement);
    let mut staging = StagingEnd::default();
    let process_started = end.started;
    if let Some(started) = process_started
        && let Some((since, brought)) = brought_by_staging(lane, own, started).await?
    {
        (end.started, staging.brought) = (Some(since), Some(brought));
    }
    let completed = end.outcome == RunOutcome::Completed;
    if let Some(order) = staging_order_to_send(agreement, job, end.ended).filter(|_| completed) {
        if agreement.state == AgreementState::Observed {
            let OrderState::Over(verdict, _, moved) = staging_of_lane(lane).follow(order).await? else {
                // It may have ended before it was seen to run.
                if let Some(at) = process_started.filter(|_| is_staged_start_unreported(agreement)) {
                    report_started_after_staging(lane, agreement, at).await?;
                }
                return Ok(None);
            };
            staging.after = (verdict.at - end.ended).max(0);
            end.ended += staging.after;
            note_staged_files_sent(&mut end, &mut staging, verdict.fate, moved);
        } else {
            // It is over, or is to be: its results stay where they are.
            staging_of_lane(lane).give_up(own, StagingDirection::Out).await?;
            end.outcome = RunOutcome::Terminated;
        }
    }
    if !matches!(end.outcome, RunOutcome::Checkpointed | RunOutcome::Lost) {
        let removed = job.staging.iter().filter(|file| file.removed);
        let names = removed.map(|file| file.name.clone()).collect();
        if let Err(error) = staging_of_lane(lane).remove_files(own, names).await {
            warn!(agreement = %agreement.id, %error, "files that were to be removed stay");
        }
    }
    end.staging = Some(Box::new(staging));
    Ok(Some(end))
}

/// The files that were brought for the process of a first slot, which started then, and since when they were asked for.
async fn brought_by_staging(
    lane: &Lane,
    own: Run,
    started: Micros,
) -> Result<Option<(Micros, BroughtFiles)>, Failure> {
    if own.slot > 1 {
        return Ok(None);
    }
    match staging_of_lane(lane).seen(own, StagingDirection::In).await? {
        Some(OrderState::Over(verdict, since, moved)) if verdict.fate == Fate::Arrived => {
            let before = (started - since).max(0);
            Ok(Some((since, BroughtFiles { moved, before })))
        }
        _ => Ok(None),
    }
}

/// Tells the planner that a job's files are being brought, where it has not been told.
async fn report_staging(lane: &Lane, agreement: &Agreement, since: Micros) -> Result<(), Failure> {
    let told = agreement.slot_started().is_some();
    if told {
        return Ok(());
    }
    let report = Report::Staging(since);
    if is_report_of_lane_taken(lane.context.lead.report(agreement.into(), report).await)? {
        lane.note_delay(agreement, since);
    }
    Ok(())
}

/// Tells the planner that a job's process has started, with the files that were brought for it.
pub(super) async fn report_started_after_staging(
    lane: &Lane,
    agreement: &Agreement,
    at: Micros,
) -> Result<(), Failure> {
    let own = Run::from(agreement);
    let brought = match staging_order_to_bring(agreement) {
        Some(_) => brought_by_staging(lane, own, at).await?,
        None => None,
    };
    let (began, report) = match brought {
        Some((since, brought)) => (since, Report::Brought(since, brought)),
        None => (at, Report::Started(at)),
    };
    let is_first = agreement.slot_started().is_none();
    if is_report_of_lane_taken(lane.context.lead.report(own, report).await)? && is_first {
        lane.note_delay(agreement, began);
    }
    Ok(())
}

/// Reports the end of a job that it has recorded itself; false while its files are being sent.
pub(super) async fn report_recorded_after_staging(
    lane: &Lane,
    agreement: &Agreement,
    end: JobEnd,
) -> Result<bool, Failure> {
    match end_after_staging(lane, agreement, end).await? {
        Some(end) => lane.report_ended(agreement, end).await.map(|()| true),
        None => Ok(false),
    }
}

/// Whether the start of a process in an agreement's slot has not been reported.
pub(super) fn is_staged_start_unreported(agreement: &Agreement) -> bool {
    !agreement.state.is_final() && (agreement.slot_started().is_none() || agreement.is_being_brought())
}

/// The job of an agreement's slot where that is given files under names of their own before it starts: a later slot finds them.
fn job_with_files_to_stage(agreement: &Agreement) -> Option<&Job> {
    let job = agreement.job.as_ref().filter(|_| agreement.slots_over() == 0)?;
    let is_given = job.staging.iter().any(|file| file.source.is_some());
    is_given.then_some(job)
}

/// The order to bring the files of a job that come from addresses; none where none do.
fn staging_order_to_bring(agreement: &Agreement) -> Option<Order> {
    let files = staged_files_of_lane(job_with_files_to_stage(agreement)?.fetched())?;
    Some(staging_order_of_lane(
        agreement,
        StagingDirection::In,
        files,
        true,
    ))
}

/// The order to send the files of a job that ended then; none where none are sent.
fn staging_order_to_send(agreement: &Agreement, job: &Job, ended: Micros) -> Option<Order> {
    let had_time = slot_end_in_lane(agreement) - ended > TIME_TO_SEND;
    Some(staging_order_of_lane(
        agreement,
        StagingDirection::Out,
        staged_files_of_lane(job.sent())?,
        had_time,
    ))
}

fn staged_files_of_lane<'a>(
    files: impl Iterator<Item = (&'a StagedFile, &'a str)>,
) -> Option<StagedAddresses> {
    let files: StagedAddresses = files
        .map(|(file, address)| (file.name.clone(), address.to_owned()))
        .collect();
    (!files.is_empty()).then_some(files)
}

fn staging_order_of_lane(
    agreement: &Agreement,
    way: StagingDirection,
    files: StagedAddresses,
    had_time: bool,
) -> Order {
    Order {
        run: agreement.into(),
        party: agreement.party.clone(),
        way,
        files,
        until: slot_end_in_lane(agreement),
        had_time,
    }
}

/// The end of a job that could not have its files, which were asked for since then.
fn end_of_unstaged_lane_job(Verdict { at, fate }: Verdict, since: Option<Micros>) -> JobEnd {
    let (outcome, failure) = match fate {
        Fate::Failed { why } => (RunOutcome::Unstaged, Some(why)),
        Fate::NoRoom => (RunOutcome::Exceeded { limit: Limit::Files }, None),
        Fate::Arrived | Fate::Late => (RunOutcome::Lost, None),
    };
    // Nothing of lost work has begun: it waits for another slot.
    let started = since.filter(|_| outcome != RunOutcome::Lost);
    JobEnd {
        staging: Some(Box::new(StagingEnd {
            failure,
            ..StagingEnd::default()
        })),
        ..JobEnd::new(outcome, started, at)
    }
}

/// Notes what became of the files that a job has left.
fn note_staged_files_sent(end: &mut JobEnd, staging: &mut StagingEnd, fate: Fate, moved: MovedFiles) {
    match fate {
        Fate::Arrived => staging.sent = Some(moved),
        Fate::Failed { why } => {
            end.outcome = RunOutcome::Unstaged;
            staging.failure = Some(why);
        }
        Fate::NoRoom | Fate::Late => end.outcome = RunOutcome::Lost,
    }
}
