//! Jobs that are cancelled in Slurm.

use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::Error;
use crate::slurm::helper::carry_out::carry_out_operation;
use crate::slurm::helper::operation::Operation;
use crate::slurm::job_row::JobRow;

/// Cancels jobs by their numbers.
pub(crate) fn cancel_jobs(cluster: &SlurmCluster, jobs: &[&JobRow]) -> Result<(), Error> {
    if jobs.is_empty() {
        return Ok(());
    }
    let cancelled = carry_out_operation(
        cluster,
        Operation::Cancel {
            jobs: jobs.iter().map(|job| job.id.clone()).collect(),
        },
    );
    cluster.forget_list();
    let has_ended = ["already completing", "Invalid job id"];
    match cancelled {
        // It ended in between.
        Err(Error::Refused(_, said)) if has_ended.iter().any(|words| said.contains(words)) => Ok(()),
        cancelled => cancelled.map(drop),
    }
}
