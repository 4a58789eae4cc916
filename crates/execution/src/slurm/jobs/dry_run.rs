//! Whether Slurm would refuse a job: a dry run of its submission, long before its slot. An obstacle of the moment (busy nodes,
//! a full queue) is no refusal.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::time::Instant;

use domain::agreement::Run;
use task::lock::lock;
use tracing::warn;

use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::Error;
use crate::slurm::helper::carry_out::carry_out_operation;
use crate::slurm::helper::operation::{DryRun, Operation};
use crate::slurm::jobs::submission::{minutes_of_submission, submission_arguments};
use crate::slurm::jobs::verdict::{Verdict, verdict_of_refusal};
use crate::{PlannedSlot, ProspectiveJob};

/// Verdicts that are remembered: one for each user, account, policy, number of nodes and of minutes.
const REMEMBERED_MAX: usize = 1_024;
/// Planned jobs that are judged at a time: reservations wait meanwhile.
const PLANNED_AT_ONCE: usize = 2;

/// Slurm's verdict on a job that may be promised, at most a minute old.
pub(crate) fn judge_by_dry_run(cluster: &SlurmCluster, job: &ProspectiveJob) -> Verdict {
    if cluster.seen.blind.load(Ordering::Relaxed) {
        // Each request would wait for it.
        return Verdict::Unknown("Slurm could not be asked just now".to_owned());
    }
    let judged = minutes_of_submission(cluster, job.seconds).and_then(|minutes| {
        remembered_dry_run(
            cluster,
            &DryRun {
                party: job.party.clone(),
                application: job.application.clone(),
                nodes: job.nodes,
                minutes,
            },
        )
    });
    judged.unwrap_or_else(|why| Verdict::Unknown(why.to_string()))
}

/// The key of a verdict: the options of a job's submission, and its user, which the arguments do not name where the helper
/// submits it.
pub(crate) fn kind_of_dry_run(cluster: &SlurmCluster, dry: &DryRun) -> Result<Vec<OsString>, Error> {
    let mut kind = submission_arguments(cluster, (&dry.party, &dry.application), dry.nodes, dry.minutes)?;
    kind.push(cluster.settings.account_of(&dry.party).user.clone().into());
    Ok(kind)
}

fn remembered_dry_run(cluster: &SlurmCluster, dry: &DryRun) -> Result<Verdict, Error> {
    let key = kind_of_dry_run(cluster, dry)?;
    let known = lock(&cluster.seen.verdicts).get(&key).cloned();
    if let Some((_, verdict)) = known.filter(|(given, verdict)| verdict.is_good(*given)) {
        return Ok(verdict);
    }
    let verdict = try_dry_run(cluster, dry);
    let mut verdicts = lock(&cluster.seen.verdicts);
    verdicts.retain(|_, (given, verdict)| verdict.is_good(*given));
    if verdicts.len() >= REMEMBERED_MAX {
        verdicts.clear();
    }
    verdicts.insert(key, (Instant::now(), verdict.clone()));
    Ok(verdict)
}

/// Has Slurm judge a job on whole nodes without submitting it. The job has no reservation, so that Slurm finds it a place among
/// all that waits; when that would be does not matter.
pub(crate) fn try_dry_run(cluster: &SlurmCluster, dry: &DryRun) -> Verdict {
    match carry_out_operation(cluster, Operation::Judge(dry.clone())) {
        Ok(_) => Verdict::Takes,
        Err(Error::Refused(_, said)) => verdict_of_refusal(&said),
        Err(why) => Verdict::Unknown(why.to_string()),
    }
}

/// Has the jobs of new slots in the plan judged, some at a time: slots that have moved here, and slots that an earlier run of
/// the service has promised. Their offers are accepted, so that a refusal is told to the operator, in the log.
pub(crate) fn dry_run_planned_jobs(cluster: &SlurmCluster, slots: &[PlannedSlot]) {
    let mut judged = lock(&cluster.seen.judged);
    let present: HashSet<Run> = slots.iter().map(|slot| slot.run).collect();
    judged.retain(|id| present.contains(id));
    let is_new = |slot: &&PlannedSlot| {
        slot.has_job && !slot.begun && slot.replaces.is_none() && !judged.contains(&slot.run)
    };
    let new: Vec<&PlannedSlot> = slots.iter().filter(is_new).take(PLANNED_AT_ONCE).collect();
    judged.extend(new.iter().map(|slot| slot.run));
    drop(judged);
    for slot in new {
        let job = ProspectiveJob {
            party: slot.party.clone(),
            application: slot.application.clone(),
            nodes: slot.nodes,
            seconds: slot.interval.duration(),
            // The cluster isolates its jobs by itself.
            is_isolated: false,
        };
        if let Verdict::Refuses(said) = judge_by_dry_run(cluster, &job) {
            let resource = &cluster.settings.resource;
            warn!(agreement = %slot.run, resource, said, "Slurm would refuse its job");
        }
    }
}
