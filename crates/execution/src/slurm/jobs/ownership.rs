//! The users that jobs on a cluster belong to, and the jobs there that are ours.

use std::collections::HashSet;

use domain::agreement::Run;
use rustix::process::geteuid;
use task::lock::lock;

use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::{Error, error_of_answer_not_understood};
use crate::slurm::job_row::{JobKey, JobRow};
use crate::slurm::jobs::shared_folder::Owner;

/// Whether a job is one of ours, or runs or ran in our reservations.
pub(crate) fn is_job_ours(
    cluster: &SlurmCluster,
    job: &JobRow,
    handed: &HashSet<JobKey>,
    is_ours: impl Fn(Run) -> bool,
) -> bool {
    let reservation = job.reservation.as_deref();
    let id = reservation.and_then(|name| cluster.run_of_name(name));
    let was_handed = || job.key().is_some_and(|key| handed.contains(&key));
    id.is_some_and(is_ours) || was_handed() || is_job_owned_as_submitted(cluster, job)
}

/// Whether this service has submitted a job: any user may give a job such a name.
fn is_job_owned_as_submitted(cluster: &SlurmCluster, job: &JobRow) -> bool {
    let submitted = || {
        let id = cluster.run_of_name(&job.name)?;
        let spec = cluster.job_folder(id).spec().ok()??;
        owner_of_jobs(cluster, &spec.party).ok()
    };
    submitted().is_some_and(|owner| owner.user == job.user)
}

/// The user of a party's jobs, by numbers.
///
/// # Errors
/// When this machine does not know the user, or may not act for it.
pub(crate) fn owner_of_jobs(cluster: &SlurmCluster, party: &str) -> Result<Owner, Error> {
    let name = &cluster.settings.account_of(party).user;
    if let Some(owner) = lock(&cluster.seen.owners).get(name) {
        return Ok(*owner);
    }
    let refused = |said: String| Error::Refused("getent".into(), said);
    let entry = cluster
        .slurm
        .call("getent", ["passwd", name])
        .map_err(|_| refused(format!("this machine has no user {name}")))?;
    let mut ids = entry.split(':').skip(2).map(|id| id.trim().parse().ok());
    let (Some(Some(user)), Some(Some(group))) = (ids.next(), ids.next()) else {
        return Err(error_of_answer_not_understood("getent", &entry));
    };
    if cluster.helper.is_none() && !geteuid().is_root() && geteuid().as_raw() != user {
        return Err(refused(format!(
            "only root can run jobs as {name}: let the service use a helper, or run it as root or as {name}"
        )));
    }
    let owner = Owner { user, group };
    lock(&cluster.seen.owners).insert(name.clone(), owner);
    Ok(owner)
}
