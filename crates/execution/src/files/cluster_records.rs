//! The folder with the records of clusters, where several processes of the service have it in common: the folders of jobs, and the marks of
//! reservations. Only the process that leads uses it.
//!
//! | name | says |
//! |---|---|
//! | `jobs/` | the folders of jobs on clusters, as in a data folder |
//! | `reservations/` | the marks of reservations, as in a data folder |
//! | `leader` | the epoch of the last process that has used it |
//!
//! A process that stood still and wakes up does not know at once that another one leads. Its plan is old, and it would give back the
//! reservations that the other one has made since. So it reads the epoch before each change of the cluster.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use rustix::process::geteuid;
use uuid::Uuid;

use crate::ExecutionError;
use crate::files::if_file_is_there;

/// The file with the epoch of the last process that has used the folder.
const LEADER: &str = "leader";
/// The permissions of a folder that other users have.
const OF_OTHERS: u32 = 0o077;

/// The folder, as this process uses it.
#[derive(Debug)]
pub struct ClusterRecords {
    path: PathBuf,
    jobs: PathBuf,
    /// The epoch under which this process leads; 0 before.
    epoch: AtomicI64,
    /// Whether the file of the leader was there.
    seen: AtomicBool,
}

impl ClusterRecords {
    /// The folder at a path. It has to be there: in place of a disk that is away, there is another folder or none.
    ///
    /// # Errors
    /// Where it is none that belongs to the user of this process alone.
    pub fn open(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        let (owner, own) = (meta.uid(), geteuid().as_raw());
        if !meta.is_dir() || owner != own || meta.mode() & OF_OTHERS != 0 {
            return Err(io::Error::other(format!(
                "expected a folder that belongs to the user {own} alone (mode 700), found one of the user {owner} with mode {:o}",
                meta.mode() & 0o7777
            )));
        }
        let jobs = path.join("jobs");
        make_folder_of_cluster_records(&jobs)?;
        Ok(Self {
            path: path.to_owned(),
            jobs,
            epoch: AtomicI64::new(0),
            seen: AtomicBool::new(false),
        })
    }

    /// Where the folders of jobs are.
    pub(super) fn jobs(&self) -> &Path {
        &self.jobs
    }

    /// Has this process use it under an epoch from now on.
    pub(super) fn lead_under(&self, epoch: i64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Makes sure that no other process has led after this one.
    ///
    /// # Errors
    /// Where one has, or the folder cannot be used or is not there any more.
    pub(crate) fn check_lead(&self) -> Result<(), ExecutionError> {
        let file = self.path.join(LEADER);
        let check = || -> io::Result<()> {
            let own = self.epoch.load(Ordering::Relaxed);
            let text = if_file_is_there(fs::read_to_string(&file))?;
            if text.is_none() && self.seen.load(Ordering::Relaxed) {
                // Its disk is away.
                return Err(ErrorKind::NotFound.into());
            }
            let last: i64 = text.unwrap_or_default().trim().parse().unwrap_or(0);
            if own < last {
                return Err(io::Error::other(format!(
                    "it is used by a process that leads under epoch {last}, and this one leads under epoch {own}: where no other \
                     process leads because the database was made anew, remove this file"
                )));
            }
            if own > last {
                // Where an older process writes at the same time, the next check puts it right.
                let draft = self.path.join(format!(".{LEADER}.{}", Uuid::now_v7()));
                fs::write(&draft, format!("{own}\n"))?;
                fs::rename(&draft, &file)?;
            }
            self.seen.store(own > 0, Ordering::Relaxed);
            Ok(())
        };
        check().map_err(ExecutionError::system("use", &file))
    }

    /// The folder with the marks of a resource's reservations, with those that a process has had in its own folder before.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn take_marks(&self, resource: &str, before: &Path) -> Result<PathBuf, ExecutionError> {
        let marks = self.path.join("reservations").join(resource);
        let take = || -> io::Result<()> {
            make_folder_of_cluster_records(&marks)?;
            for entry in if_file_is_there(fs::read_dir(before))?.into_iter().flatten() {
                let entry = entry?;
                fs::copy(entry.path(), marks.join(entry.file_name()))?;
                fs::remove_file(entry.path())?;
            }
            Ok(())
        };
        take().map_err(ExecutionError::system("take marks into", &marks))?;
        Ok(marks)
    }
}

fn make_folder_of_cluster_records(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        folder
    }

    #[test]
    fn a_folder_that_others_may_enter_and_one_that_is_not_there_are_refused() {
        let folder = folder();
        ClusterRecords::open(folder.path()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
        let why = ClusterRecords::open(folder.path()).unwrap_err().to_string();
        assert!(why.contains("with mode 750"), "{why}");
        ClusterRecords::open(&folder.path().join("away")).unwrap_err();
    }

    #[test]
    fn a_process_that_has_led_before_another_changes_nothing_more() {
        let folder = folder();
        let [first, second] = [4, 5].map(|epoch| {
            let records = ClusterRecords::open(folder.path()).unwrap();
            records.lead_under(epoch);
            records
        });
        first.check_lead().unwrap();
        first.check_lead().unwrap();
        second.check_lead().unwrap();
        first.check_lead().unwrap_err();
        // The first one has been in the middle of writing its own.
        fs::write(folder.path().join(LEADER), "4\n").unwrap();
        second.check_lead().unwrap();
        first.check_lead().unwrap_err();
        fs::remove_file(folder.path().join(LEADER)).unwrap();
        second.check_lead().unwrap_err();
    }

    #[test]
    fn marks_of_a_data_folder_are_taken_along_once() {
        let (folder, before) = (folder(), folder());
        for name in ["one", "two"] {
            fs::write(before.path().join(name), "").unwrap();
        }
        let records = ClusterRecords::open(folder.path()).unwrap();
        for _ in 0..2 {
            let marks = records.take_marks("cluster", before.path()).unwrap();
            assert!(marks.join("one").exists() && marks.join("two").exists());
            assert_eq!(fs::read_dir(before.path()).unwrap().count(), 0);
        }
    }
}
