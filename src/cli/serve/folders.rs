//! The folders of a process: its data folder, which it locks, and what jobs have in it.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use domain::clock::Clock;
use execution::files::inputs::InputFiles;
use execution::files::job_folders::JobFolders;
use scheduler::Seconds;
use store::Store;
use task::Keeper;
use tracing::info;

use super::SELDOM;
use crate::cli::config::Config;
use crate::cli::{Failure, RESTORING};

/// The file of the data folder that its process has locked.
const LOCK_FILE: &str = "replica.lock";

/// How long to wait for a process before this one to give the data folder up, and between two tries.
pub(super) const FOLDER_WAIT: Duration = Duration::from_secs(10);
pub(super) const FOLDER_PAUSE: Duration = Duration::from_millis(50);

/// After how long the log says that it is waited for.
const FOLDER_TOLD_AFTER: Duration = Duration::from_secs(1);

/// The data folder, by its absolute path, with its content: other users cannot read it.
pub(super) fn make_data_folder(data_dir: &Path) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::DirBuilderExt;
    for folder in [data_dir.to_owned(), data_dir.join("files"), data_dir.join("jobs")] {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|why| {
                Failure::Usage(format!("--data-dir: cannot create {}: {why}", folder.display()))
            })?;
    }
    if data_dir.join(RESTORING).exists() {
        return Err(Failure::Refused(format!(
            "{} is not whole: a restore into it runs, or was interrupted (it has a file {RESTORING})",
            data_dir.display()
        )));
    }
    std::path::absolute(data_dir).map_err(|why| Failure::Usage(why.to_string()))
}

pub(super) async fn lock_data_folder(data_dir: &Path) -> Result<File, Failure> {
    let path = data_dir.join(LOCK_FILE);
    let failed = |why: std::io::Error| Failure::Unavailable(format!("cannot lock {}: {why}", path.display()));
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(&path).map_err(failed)?;
    let began = Instant::now();
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < FOLDER_WAIT => {
                if !told && began.elapsed() > FOLDER_TOLD_AFTER {
                    info!(folder = %data_dir.display(), "another process uses the data folder; waiting for it to end");
                    told = true;
                }
                tokio::time::sleep(FOLDER_PAUSE).await;
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Refused(format!(
                    "another process uses the data folder {}: each needs one of its own (--data-dir)",
                    data_dir.display()
                )));
            }
            Err(TryLockError::Error(why)) => return Err(failed(why)),
        }
    }
}

/// The folders of jobs, those on clusters too.
pub(super) fn open_job_folders(config: &Config, data_dir: &Path) -> Result<JobFolders, Failure> {
    let folders =
        JobFolders::new(data_dir, Some(config.execution.party_folders())).map_err(Failure::unavailable)?;
    let folders = folders.with_records(config.execution.records().map_err(Failure::Unavailable)?);
    for cluster in config.clusters() {
        folders.add_cluster(&cluster);
    }
    Ok(folders)
}

/// The input files of jobs, as they are by now.
pub(super) async fn open_input_folder(
    config: &Config,
    data_dir: &Path,
    store: &Store,
) -> Result<InputFiles, Failure> {
    let files = InputFiles::new(data_dir, config.limits.party_files_mib << 20);
    let files = files.map_err(Failure::unavailable)?.kept_in(store);
    files.catch_up().await.map_err(Failure::unavailable)?;
    Ok(files)
}

/// Starts to look after the folders of jobs.
pub(super) fn start_keeping_folders(
    folders: JobFolders,
    (store, clock): (&Store, &Clock),
    kept: Seconds,
    keeper: &Keeper,
) {
    let (store, clock) = (store.clone(), clock.clone());
    keeper.keep(("job-folders", SELDOM), move |stop| {
        folders
            .clone()
            .run_until_stopped(store.clone(), clock.clone(), kept, stop)
    });
}
