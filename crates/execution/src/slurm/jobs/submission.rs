//! Jobs submitted to Slurm with the rights of this process, for good or only for Slurm's verdict, and the options of both.

use std::ffi::OsString;

use domain::clock::{Clock, second_of};
use scheduler::Seconds;
use task::lock::lock;

use crate::ExecutionError;
use crate::job::folder::outputs::Stream;
use crate::job::spec::environment_of_job_spec;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::commands::command_option;
use crate::slurm::error::Error;
use crate::slurm::helper::operation::{ChangeOperation, DryRun, SubmitOperation};
use crate::slurm::jobs::ownership::owner_of_jobs;
use crate::slurm::jobs::shared_folder::{Owner, SharedFolder, signal_and_grace_in_shared_folder};

pub(crate) const SECONDS_PER_MINUTE: i64 = 60;

/// The conditions of a job on whole nodes.
const WHOLE_NODES: [&str; 2] = ["--exclusive", "--mem=0"];

/// The common arguments for the jobs of a party that run an application, on `nodes` nodes for `minutes` minutes.
///
/// # Errors
/// When this machine does not know the party's user.
pub(crate) fn submission_arguments(
    cluster: &SlurmCluster,
    (party, application): (&str, &str),
    nodes: u32,
    minutes: i64,
) -> Result<Vec<OsString>, Error> {
    let mut arguments: Vec<OsString> = vec![
        format!("--partition={}", cluster.settings.partition).into(),
        format!("--nodes={nodes}").into(),
        format!("--time={}", minutes.max(1)).into(),
        "--no-requeue".into(),
    ];
    if let Some(account) = &cluster.settings.account_of(party).account {
        arguments.push(format!("--account={account}").into());
    }
    if rustix::process::geteuid().is_root() {
        let Owner { user, group } = owner_of_jobs(cluster, party)?;
        arguments.push(format!("--uid={user}").into());
        arguments.push(format!("--gid={group}").into());
    }
    arguments.extend(cluster.settings.policies.of(party, application).arguments());
    Ok(arguments)
}

/// The minutes of a job's limit for `seconds`: Slurm counts in minutes, and no job may have more than the partition's
/// longest.
pub(crate) fn minutes_of_submission(cluster: &SlurmCluster, seconds: Seconds) -> Result<i64, Error> {
    let partitions = cluster.partitions()?;
    let ours = partitions
        .iter()
        .find(|row| row.name == cluster.settings.partition);
    let limit = ours.and_then(|row| row.longest_job).unwrap_or(i64::MAX);
    let whole = seconds.saturating_add(SECONDS_PER_MINUTE - 1);
    Ok((whole.min(limit) / SECONDS_PER_MINUTE).max(1))
}

/// Submits a job that has its folder, into its reservation.
pub(crate) fn submit_with_own_rights(
    cluster: &SlurmCluster,
    job: &SubmitOperation,
    work: &SharedFolder,
) -> Result<(), ExecutionError> {
    let (run, party) = (job.place.id, &job.place.party);
    let name = cluster.name_of_run(run);
    let end = second_of(job.slot_end).seconds();
    // Slurm counts in minutes; the script ends the job at the second.
    let minutes = minutes_of_submission(cluster, end - Clock::system().now().seconds())?;
    let mut arguments = submission_arguments(cluster, (party, &job.application), job.nodes, minutes)?;
    // Whole nodes were promised.
    arguments.extend(WHOLE_NODES.map(Into::into));
    let own = [
        "--parsable".to_owned(),
        format!("--job-name={name}"),
        format!("--comment={name}"),
        format!("--reservation={name}"),
        // A job that is turned away must not delete the output of the other.
        "--open-mode=append".to_owned(),
        "--export=ALL".to_owned(),
    ];
    arguments.extend(own.map(Into::into));
    arguments.push(command_option("--chdir", &work.work()));
    arguments.push(command_option("--output", &work.output(Stream::Out)));
    arguments.push(command_option("--error", &work.output(Stream::Err)));
    let (signal, grace) = signal_and_grace_in_shared_folder(job.save);
    arguments.extend([
        cluster.script.clone().into(),
        work.path().into(),
        end.to_string().into(),
        signal.into(),
        grace.to_string().into(),
        job.program.clone().into(),
    ]);
    arguments.extend(job.arguments.iter().map(Into::into));
    let mut environment = environment_of_job_spec(run, job.nodes, job.slot_end, job.pieces);
    environment.push(("HOME", work.work().to_string_lossy().into_owned()));
    cluster.check_lead()?;
    let overlap = ChangeOperation::overlap(run);
    cluster
        .slurm
        .call("scontrol", overlap.arguments(&cluster.settings))?;
    let submitted = cluster.slurm.call_with("sbatch", arguments, environment);
    cluster.forget_list();
    if submitted.is_err() {
        // Its limit may have become shorter.
        *lock(&cluster.seen.partitions) = None;
    }
    submitted?;
    Ok(())
}

/// Has Slurm judge a job with the rights of this process. Returns the answer.
pub(crate) fn test_submission(cluster: &SlurmCluster, dry: &DryRun) -> Result<String, Error> {
    let arguments = submission_arguments(cluster, (&dry.party, &dry.application), dry.nodes, dry.minutes)?;
    let last = ["--test-only".into(), cluster.script.clone().into()];
    let whole = WHOLE_NODES.map(OsString::from);
    cluster
        .slurm
        .call("sbatch", arguments.into_iter().chain(whole).chain(last))
}
