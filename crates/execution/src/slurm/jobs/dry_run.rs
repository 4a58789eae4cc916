//! Whether Slurm would refuse a job: a dry run of its submission, long before its slot. An obstacle of the moment (busy nodes,
//! a full queue) is no refusal.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::time::Instant;

use domain::agreement::Run;
use scheduler::Seconds;
use tracing::warn;

use crate::lock::lock;
use crate::slurm::error::Error;
use crate::slurm::executor::SlurmExecutor;
use crate::slurm::helper::operation::{DryRun, Operation};
use crate::slurm::jobs::shared_folder::Owner;
use crate::slurm::jobs::verdict::{Verdict, verdict_of_refusal};
use crate::{PlannedSlot, ProspectiveJob};

/// Verdicts that are remembered: one for each user, account, policy, number of nodes and of minutes.
const REMEMBERED_MAX: usize = 1_024;
/// Planned jobs that are judged at a time: reservations wait meanwhile.
const PLANNED_AT_ONCE: usize = 2;

pub(crate) const SECONDS_PER_MINUTE: i64 = 60;

/// The conditions of a job on whole nodes.
pub(crate) const WHOLE_NODES: [&str; 2] = ["--exclusive", "--mem=0"];

impl SlurmExecutor {
    /// The common arguments for the jobs of a party that run an application, on `nodes` nodes for `minutes` minutes.
    ///
    /// # Errors
    /// When this machine does not know the party's user.
    pub(crate) fn job_arguments(
        &self,
        (party, application): (&str, &str),
        nodes: u32,
        minutes: i64,
    ) -> Result<Vec<OsString>, Error> {
        let mut arguments: Vec<OsString> = vec![
            format!("--partition={}", self.settings.partition).into(),
            format!("--nodes={nodes}").into(),
            format!("--time={}", minutes.max(1)).into(),
            "--no-requeue".into(),
        ];
        if let Some(account) = &self.settings.account_of(party).account {
            arguments.push(format!("--account={account}").into());
        }
        if rustix::process::geteuid().is_root() {
            let Owner { user, group } = self.owner_of(party)?;
            arguments.push(format!("--uid={user}").into());
            arguments.push(format!("--gid={group}").into());
        }
        arguments.extend(self.settings.policies.of(party, application).arguments());
        Ok(arguments)
    }

    /// The minutes of a job's limit for `seconds`: Slurm counts in minutes, and no job may have more than the partition's
    /// longest.
    pub(crate) fn minutes(&self, seconds: Seconds) -> Result<i64, Error> {
        let partitions = self.partitions()?;
        let ours = partitions.iter().find(|row| row.name == self.settings.partition);
        let limit = ours.and_then(|row| row.longest_job).unwrap_or(i64::MAX);
        let whole = seconds.saturating_add(SECONDS_PER_MINUTE - 1);
        Ok((whole.min(limit) / SECONDS_PER_MINUTE).max(1))
    }

    /// Slurm's verdict on a job that may be promised, at most a minute old.
    pub(crate) fn judge(&self, job: &ProspectiveJob) -> Verdict {
        if self.seen.blind.load(Ordering::Relaxed) {
            // Each request would wait for it.
            return Verdict::Unknown("Slurm could not be asked just now".to_owned());
        }
        let judged = self.minutes(job.seconds).and_then(|minutes| {
            self.judged(&DryRun {
                party: job.party.clone(),
                application: job.application.clone(),
                nodes: job.nodes,
                minutes,
            })
        });
        judged.unwrap_or_else(|why| Verdict::Unknown(why.to_string()))
    }

    /// The key of a verdict: the options of a job's submission, and its user, which the arguments do not name where the helper
    /// submits it.
    pub(crate) fn kind_of(&self, dry: &DryRun) -> Result<Vec<OsString>, Error> {
        let mut kind = self.job_arguments((&dry.party, &dry.application), dry.nodes, dry.minutes)?;
        kind.push(self.settings.account_of(&dry.party).user.clone().into());
        Ok(kind)
    }

    fn judged(&self, dry: &DryRun) -> Result<Verdict, Error> {
        let key = self.kind_of(dry)?;
        let known = lock(&self.seen.verdicts).get(&key).cloned();
        if let Some((_, verdict)) = known.filter(|(given, verdict)| verdict.is_good(*given)) {
            return Ok(verdict);
        }
        let verdict = self.try_out(dry);
        let mut verdicts = lock(&self.seen.verdicts);
        verdicts.retain(|_, (given, verdict)| verdict.is_good(*given));
        if verdicts.len() >= REMEMBERED_MAX {
            verdicts.clear();
        }
        verdicts.insert(key, (Instant::now(), verdict.clone()));
        Ok(verdict)
    }

    /// Has Slurm judge a job on whole nodes without submitting it. The job has no reservation, so that Slurm finds it a place among
    /// all that waits; when that would be does not matter.
    pub(crate) fn try_out(&self, dry: &DryRun) -> Verdict {
        match self.perform_operation(Operation::Judge(dry.clone())) {
            Ok(_) => Verdict::Takes,
            Err(Error::Refused(_, said)) => verdict_of_refusal(&said),
            Err(why) => Verdict::Unknown(why.to_string()),
        }
    }

    /// Has Slurm judge a job with the rights of this process. Returns the answer.
    pub(crate) fn run_dry(&self, dry: &DryRun) -> Result<String, Error> {
        let arguments = self.job_arguments((&dry.party, &dry.application), dry.nodes, dry.minutes)?;
        let last = ["--test-only".into(), self.script.clone().into()];
        let whole = WHOLE_NODES.map(OsString::from);
        self.slurm
            .call("sbatch", arguments.into_iter().chain(whole).chain(last))
    }

    /// Has the jobs of new slots in the plan judged, some at a time: slots that have moved here, and slots that an earlier run of
    /// the service has promised. Their offers are accepted, so that a refusal is told to the operator, in the log.
    pub(crate) fn judge_planned(&self, slots: &[PlannedSlot]) {
        let mut judged = lock(&self.seen.judged);
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
            if let Verdict::Refuses(said) = self.judge(&job) {
                let resource = &self.settings.resource;
                warn!(agreement = %slot.run, resource, said, "Slurm would refuse its job");
            }
        }
    }
}
