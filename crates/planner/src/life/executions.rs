//! The records of the executions of agreements, for predictions.

use domain::agreement::{Agreement, BroughtFiles, Event, EventKind, Execution, JobEnd, RunOutcome};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;

use crate::context::View;
use crate::decider::Decider;

/// Records an execution for prediction, unless no process ever ran. The time in which its files were moved belongs neither to
/// its wait nor to its run.
pub(crate) fn record_execution(decider: &mut Decider<'_>, agreement: &Agreement, end: &JobEnd) {
    let (Some(job), Some(started)) = (agreement.job.as_ref(), agreement.started) else {
        return;
    };
    let fetches = job.fetched().next().is_some();
    if fetches && job.brought.is_none() {
        return;
    }
    let slot = agreement.placement().start.seconds() * MICROS_PER_SECOND;
    let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let staging = end.staging.as_deref();
    let after = staging.map_or(0, |staging| staging.after);
    let sent = staging.and_then(|staging| staging.sent).unwrap_or_default();
    let (before, brought) = job
        .brought
        .map(|files| (files.before, files.moved))
        .unwrap_or_default();
    let waited = started - slot + before - brought.took - end.transfer_in;
    decider.batch.push(Change::RecordExecution(Box::new(Execution {
        agreement: agreement.id,
        application: job.application.clone(),
        version: job.version.clone(),
        arguments: job.arguments.clone(),
        input_bytes: bytes(end.input_bytes),
        output_bytes: bytes(end.output_bytes),
        resource: agreement.resource.clone(),
        nodes: agreement.mean_nodes(),
        planned: agreement.placement(),
        estimate: agreement.constraints.estimate.unwrap_or(0),
        queue_time: waited.max(0),
        run_time: (agreement.run_time().unwrap_or(0) - before - after).max(0),
        transfer_in: end.transfer_in + brought.took,
        transfer_out: end.transfer_out + sent.took,
        // On a cluster they are moved twice: from their addresses, and to its disk.
        moved_in: bytes(end.moved_in.max(brought.bytes)),
        moved_out: bytes(end.moved_out.max(sent.bytes)),
        outcome: end.outcome,
        ended: end.ended,
    })));
}

/// The end of work that was lost with its nodes.
pub(crate) fn end_of_lost_work(view: View<'_>, agreement: &Agreement) -> JobEnd {
    agreement.end_without_output(RunOutcome::Lost, view.now)
}

/// Notes, once, the files that were brought for a job. Its slot is used from when the first of them was asked for.
pub(crate) fn note_files_of_execution(
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
