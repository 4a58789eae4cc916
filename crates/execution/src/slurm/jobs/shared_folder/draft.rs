//! A job's folder on the shared disk while it is made: under a name of its own, and whole before it gets the job's. A draft that a
//! crash has left is removed a day later ([`SharedDisk::clear`](crate::slurm::jobs::shared_disk::SharedDisk::clear)).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, lchown};
use std::path::Path;

use super::{SharedFolder, WORK};
use crate::slurm::helper::operation::{Part, SharedFolderRecord};
use crate::slurm::jobs::shared_disk::draft_name_on_shared_disk;
use crate::{ExecutionError, SaveWork};

impl SharedFolder {
    /// Makes it here, with copies of these files, for a slot that ends at that second.
    pub(crate) fn make_by_draft(
        &self,
        until: i64,
        save: Option<SaveWork>,
        inputs: Vec<(String, File)>,
    ) -> Result<bool, ExecutionError> {
        let failed = |error| ExecutionError::system("create", &self.path)(error);
        if self.exists(Part::Folder).map_err(failed)? {
            return Ok(false);
        }
        // A name that no other draft has: one that is made at the same time must not meet this one.
        let new = self.path.with_file_name(draft_name_on_shared_disk());
        let made = self
            .fill_draft(&new, until, save, inputs)
            .and_then(|()| fs::rename(&new, &self.path).map_err(failed));
        let Err(error) = made else {
            return Ok(true);
        };
        let _ = fs::remove_dir_all(&new);
        // Another one was faster.
        if self.exists(Part::Folder).map_err(failed)? {
            return Ok(false);
        }
        Err(error)
    }

    /// Makes a draft of the folder.
    fn fill_draft(
        &self,
        new: &Path,
        until: i64,
        save: Option<SaveWork>,
        inputs: Vec<(String, File)>,
    ) -> Result<(), ExecutionError> {
        let failed = |error| ExecutionError::system("create", &self.path)(error);
        let mut folder = DirBuilder::new();
        folder.mode(0o700);
        if let Some(above) = new.parent() {
            fs::create_dir_all(above).map_err(failed)?;
        }
        folder.create(new).map_err(failed)?;
        // From the beginning on: a disk of a network may keep it for a while that something was not there.
        let mut made = Vec::new();
        for record in [SharedFolderRecord::Until(until), SharedFolderRecord::Save(save)] {
            let (name, line) = record.text();
            let record = new.join(name);
            fs::write(&record, format!("{line}\n")).map_err(failed)?;
            made.push(record);
        }
        if self.path == self.common {
            let work = new.join(WORK);
            folder.create(&work).map_err(failed)?;
            for (name, mut input) in inputs {
                let copy = work.join(name);
                let mut copied = || -> io::Result<()> {
                    let mode = input.metadata()?.mode() & 0o777;
                    let mut options = OpenOptions::new();
                    let mut to = options.create_new(true).write(true).mode(mode).open(&copy)?;
                    io::copy(&mut input, &mut to).map(drop)
                };
                copied().map_err(ExecutionError::system("copy", &copy))?;
                made.push(copy);
            }
            made.push(work);
        }
        made.push(new.to_owned());
        for path in made {
            lchown(&path, Some(self.owner.user), Some(self.owner.group)).map_err(failed)?;
        }
        Ok(())
    }
}
