//! The disk that a cluster's nodes share, with the folders of jobs that are over. The parts that were needed only while the jobs
//! ran are removed soon, the rest when their time is over. Where the service may not do that, the helper does.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::agreement::Run;
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use scheduler::Seconds;
use uuid::Uuid;

use crate::ExecutionError;
use crate::files::{if_file_is_there, tree};
use crate::job::folder::outputs::Stream;
use crate::slurm::helper::operation::Operation;
use crate::slurm::helper::socket::HelperSocket;
use crate::slurm::jobs::shared_folder::{CLAIM, DRAFTS, ENDED, RECORDS, STOPS_BY, WORK};
use crate::slurm::settings::SlurmSettings;

/// The time after the end of its slot when nothing of a job runs any more, if its script sees the end: it looks every two
/// seconds, and two seconds later kills processes that do not end when asked.
pub(crate) const OUT_OF_SIGHT: Micros = 15 * MICROS_PER_SECOND;
/// Seconds after which a draft of a folder has no writer any more: copying its inputs takes less on the slowest disk.
const DRAFTS_KEPT: Seconds = 86_400;

/// The disk of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct SharedDisk {
    work_dir: PathBuf,
    helper: Option<Arc<HelperSocket>>,
}

impl SharedDisk {
    /// The one that a cluster's settings name.
    pub(crate) fn of(settings: &SlurmSettings) -> Self {
        Self {
            work_dir: settings.work_dir.clone(),
            helper: HelperSocket::of(settings),
        }
    }

    /// Whether it is in the same place as another.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.work_dir == other.work_dir
    }

    /// The one that a job's folder is on, among these or of a cluster that is no longer configured.
    pub(crate) fn with(folder: &Path, disks: &[Self]) -> Self {
        let work_dir = folder.parent().unwrap_or(folder);
        let known = disks.iter().find(|disk| disk.work_dir == work_dir);
        known.cloned().unwrap_or_else(|| Self {
            work_dir: work_dir.to_owned(),
            helper: None,
        })
    }

    /// Removes a job's folder. It belongs to the job's user, and may contain anything: no link is followed.
    pub(crate) fn remove(&self, folder: &Path) -> Result<(), ExecutionError> {
        match &self.helper {
            Some(helper) => helper.tell(&Operation::Remove {
                id: run_of_folder_on_shared_disk(folder)?,
            }),
            None => tree::remove_tree(folder).map_err(ExecutionError::system("remove", folder)),
        }
    }

    /// Removes the parts of an ended job's folder that were needed only while it ran, or all of it where the job has left
    /// nothing. No job begins there afterwards.
    pub(crate) fn pack(&self, folder: &Path) -> Result<(), ExecutionError> {
        match &self.helper {
            Some(helper) => helper.tell(&Operation::Pack {
                id: run_of_folder_on_shared_disk(folder)?,
            }),
            None => pack_folder_on_shared_disk(folder).map_err(ExecutionError::system("pack", folder)),
        }
    }

    /// Removes the drafts of folders that crashes have left.
    pub(crate) fn clear(&self) -> Result<(), ExecutionError> {
        match &self.helper {
            Some(helper) => helper.tell(&Operation::Clear),
            None => clear_drafts_on_shared_disk(&self.work_dir),
        }
    }
}

fn run_of_folder_on_shared_disk(folder: &Path) -> Result<Run, ExecutionError> {
    let name = folder.file_name().and_then(OsStr::to_str);
    name.and_then(|name| name.parse().ok()).ok_or_else(|| {
        let why = io::Error::other("it is no folder of a job");
        ExecutionError::system("find", folder)(why)
    })
}

/// As [`SharedDisk::pack`], with the rights of this process.
fn pack_folder_on_shared_disk(folder: &Path) -> io::Result<()> {
    let (above, name) = tree::open_parent_of_tree(folder)?;
    let folder = match tree::open_tree_folder(&above, name) {
        Err(Errno::NOENT) => return Ok(()),
        folder => folder?,
    };
    // A job that Slurm has lost sight of may yet come, and would find no word of the end of its slot.
    let was_claimed = match rustix::fs::mkdirat(&folder, CLAIM, Mode::RWXU) {
        Err(Errno::EXIST) => true,
        claimed => {
            claimed?;
            false
        }
    };
    // All are read before any of them is removed.
    let mut names = tree::names_in_tree_folder(&folder)?.collect::<Result<Vec<OsString>, Errno>>()?;
    // The record of the end goes last: without it others are kept.
    names.sort_by_key(|name| name == ENDED);
    // One that began and has not written its end may still run on a node that stands still: its script ends it by these.
    let may_run = was_claimed && !names.iter().any(|name| name == ENDED);
    let mut has_left = false;
    for name in names.iter().filter(|name| *name != CLAIM) {
        let is_needed = may_run && STOPS_BY.iter().any(|needed| name == needed);
        let removed = if name == WORK {
            rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR)
        } else if !is_needed && is_job_record_on_shared_disk(name)
            || is_empty_output_on_shared_disk(&folder, name)?
        {
            rustix::fs::unlinkat(&folder, name, AtFlags::empty())
        } else {
            Err(Errno::EXIST)
        };
        match removed {
            Err(Errno::NOENT) => {}
            // A file that the job has written, or that its user has put in place of another.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => has_left = true,
            removed => removed?,
        }
    }
    if !has_left {
        remove_empty_folder_from_shared_disk(&above, name, &folder)?;
    }
    Ok(())
}

/// Removes a folder that has nothing but the claim. It gets another name first: a job with a folder and without a claim begins.
/// Files that came into it meanwhile stay.
fn remove_empty_folder_from_shared_disk(
    above: &OwnedFd,
    name: &OsStr,
    folder: &OwnedFd,
) -> Result<(), Errno> {
    let doomed = draft_name_on_shared_disk();
    rustix::fs::renameat(above, name, above, &doomed)?;
    let removed = rustix::fs::unlinkat(folder, CLAIM, AtFlags::REMOVEDIR)
        .and_then(|()| rustix::fs::unlinkat(above, &doomed, AtFlags::REMOVEDIR));
    match removed {
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {
            match rustix::fs::mkdirat(folder, CLAIM, Mode::RWXU) {
                Err(Errno::EXIST) => {}
                claimed => claimed?,
            }
            rustix::fs::renameat(above, &doomed, above, name)
        }
        removed => removed,
    }
}

fn is_job_record_on_shared_disk(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let is_draft = DRAFTS.iter().any(|begin| bytes.starts_with(begin.as_bytes()));
    is_draft || RECORDS.iter().any(|record| name == *record)
}

fn is_empty_output_on_shared_disk(folder: &OwnedFd, name: &OsStr) -> Result<bool, Errno> {
    if name.to_str().and_then(Stream::from_word).is_none() {
        return Ok(false);
    }
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_size == 0)
}

/// The name of a folder that is being made or removed: one that no other has.
pub(crate) fn draft_name_on_shared_disk() -> String {
    format!(".{}", Uuid::now_v7())
}

/// As [`SharedDisk::clear`], with the rights of this process.
fn clear_drafts_on_shared_disk(work_dir: &Path) -> Result<(), ExecutionError> {
    let failed = |error| ExecutionError::system("list", work_dir)(error);
    let entries = if_file_is_there(fs::read_dir(work_dir)).map_err(failed)?;
    let before = Clock::system().now().seconds() - DRAFTS_KEPT;
    for entry in entries.into_iter().flatten() {
        let path = entry.map_err(failed)?.path();
        if draft_on_shared_disk_made_at(&path).is_some_and(|made| made < before) {
            tree::remove_tree(&path).map_err(ExecutionError::system("remove", path))?;
        }
    }
    Ok(())
}

/// When a draft was made, in seconds, by its name; none for other files.
fn draft_on_shared_disk_made_at(path: &Path) -> Option<Seconds> {
    let name = path.file_name()?.to_str()?;
    let id: Uuid = name.strip_prefix('.')?.parse().ok()?;
    let (made, _) = id.get_timestamp()?.to_unix();
    i64::try_from(made).ok().filter(|_| name == format!(".{id}"))
}

#[cfg(test)]
mod tests;
