//! The probe of a cluster's shared folder: a file that is written here, and a job that reads it on a node.

use std::fs;
use std::io::Read;
use std::os::unix::fs::chown;
use std::path::PathBuf;

use domain::agreement::Run;
use rustix::fs::{Mode, OFlags};
use uuid::Uuid;

use crate::ExecutionError;
use crate::files::if_file_is_there;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::commands::command_option;
use crate::slurm::jobs::ownership::owner_of_jobs;
use crate::slurm::jobs::shared_folder::open_file_in_shared_folder;
use crate::slurm::jobs::submission::submission_arguments;

/// The most bytes that are read of the job's output.
const SEEN_MAX: u64 = 200;

/// Writes into the shared folder, and removes that.
pub(crate) fn probe_shared_folder(cluster: &SlurmCluster) -> Result<(), ExecutionError> {
    let probe = folder_of_probe(cluster, Uuid::now_v7());
    let written = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
    written.map_err(ExecutionError::system("write", probe))
}

/// Makes a folder with a file for a job to read, and submits the job; answers its number.
pub(crate) fn submit_probe(cluster: &SlurmCluster, token: Uuid) -> Result<String, ExecutionError> {
    let folder = folder_of_probe(cluster, token);
    let owner = owner_of_jobs(cluster, "")?;
    let prepared = fs::create_dir(&folder)
        .and_then(|()| fs::write(folder.join("token"), token.to_string()))
        .and_then(|()| chown(folder.join("token"), Some(owner.user), Some(owner.group)))
        .and_then(|()| chown(&folder, Some(owner.user), Some(owner.group)));
    prepared.map_err(ExecutionError::system("prepare", &folder))?;
    let mut arguments = submission_arguments(cluster, ("", ""), 1, 1)?;
    arguments.extend([
        "--parsable".into(),
        format!("--job-name={}", cluster.name_of_run(Run::first(token))).into(),
        command_option("--chdir", &folder),
        "--output=/dev/null".into(),
        "--error=/dev/null".into(),
        "--wrap=echo $(cat token) $(date +%s) >draft && mv draft seen".into(),
    ]);
    let submitted = cluster.slurm.call("sbatch", arguments)?;
    Ok(submitted.trim().split(';').next().unwrap_or_default().to_owned())
}

/// The output of that job; nothing before it has written it.
pub(crate) fn output_of_probe(cluster: &SlurmCluster, token: Uuid) -> Result<String, ExecutionError> {
    let (folder, owner) = (folder_of_probe(cluster, token), owner_of_jobs(cluster, "")?);
    let work_dir = &cluster.settings.work_dir;
    let read = || -> std::io::Result<String> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&folder, flags, Mode::empty())?;
        let file = open_file_in_shared_folder(&opened, "seen", owner)?;
        std::io::read_to_string(file.take(SEEN_MAX))
    };
    let seen =
        if_file_is_there(read()).map_err(ExecutionError::system("read the output of a job in", work_dir))?;
    Ok(seen.unwrap_or_default())
}

/// The folder of the job by which a cluster is checked.
pub(crate) fn folder_of_probe(cluster: &SlurmCluster, token: Uuid) -> PathBuf {
    let name = format!(".check-{}", token.simple());
    cluster.settings.work_dir.join(name)
}
