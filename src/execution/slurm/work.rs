//! A job's folder on the disk that the service shares with the nodes. It belongs to the job's user, so that nothing in
//! it is trusted: it is read without following links, and only what that user wrote.
//!
//! | name | made by | says |
//! |---|---|---|
//! | `work/` | the service | the working folder, with copies of the input files |
//! | `stdout`, `stderr` | the job | its outputs |
//! | `claim/` | the job, once | it has begun, and none begins after it |
//! | `until` | the service | when its slot ends, in seconds |
//! | `save` | the service | the signal by which it is told to save its work, or `-`, and how many milliseconds before that |
//! | `started` | the job | when its program began, in microseconds |
//! | `ended` | the job, once | exit status of its program, when that was, and whether it was told to save its work before |
//! | `.group`, `.told`, `.over` | the job | its program's group of processes; that it was told to save its work; that its slot was over |
//!
//! With work in pieces, and work that is run again, each job has such a folder ([`SlotId`]). Those of later pieces have no
//! working folder and no outputs: these are the first piece's. They lie beside its folder and not inside, where its user could
//! make a claim for a piece that has not been submitted.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use scheduler::Time;
use uuid::Uuid;

use super::super::folder::Stream;
use super::super::{ExecutionError, JobSpec, SaveWork};
use super::id::SlotId;
use crate::clock::{Micros, second_of};

/// The word in the record of its end for a job that was told to save its work.
const TOLD: &str = "told";
const UNTIL: &str = "until";
const SAVE: &str = "save";
/// Bytes of a record at most.
const RECORD_MAX: u64 = 100;
const MICROS_PER_MILLI: Micros = 1_000;
/// Files of a working folder that are fetched at most, and bytes in all: as many as are listed for anybody, and few enough
/// that one job fills no disk.
const FILES_MAX: usize = 1_000;
const FILES_BYTES_MAX: u64 = 4 << 30;

/// Whom a job's folder belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) user: u32,
    pub(super) group: u32,
}

/// A job's shared folder.
#[derive(Debug, Clone)]
pub(super) struct Work {
    /// Where its records are.
    path: PathBuf,
    /// Where the working folder and the outputs are.
    common: PathBuf,
    owner: Owner,
}

/// The signal by which a program is told to save its work, and how many milliseconds before the end of its slot; `-` for none.
pub(super) fn signal_and_grace(save: Option<SaveWork>) -> (&'static str, i64) {
    save.map_or(("-", 0), |save| {
        (save.signal.word(), save.grace / MICROS_PER_MILLI)
    })
}

/// How a job's program ended, as the job itself recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) status: i32,
    pub(super) at: Micros,
    /// Whether it had been told to save its work.
    pub(super) told: bool,
}

impl Ended {
    /// What a record says; `None` where that is not what a job writes.
    fn read(record: &str) -> Option<Self> {
        let mut words = record.split(' ');
        Some(Self {
            status: words.next()?.parse().ok()?,
            at: words.next()?.parse().ok()?,
            told: words.next() == Some(TOLD),
        })
    }
}

impl Work {
    /// The folder of a job, there or not; of a later piece of work, beside that of the first one.
    pub(super) fn of(work_dir: &Path, id: SlotId, first: Option<PathBuf>, owner: Owner) -> Self {
        let path = work_dir.join(id.to_string());
        Self {
            common: first.unwrap_or_else(|| path.clone()),
            path,
            owner,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The job's working folder.
    pub(super) fn work(&self) -> PathBuf {
        self.common.join("work")
    }

    /// Where one of its outputs goes.
    pub(super) fn output(&self, stream: Stream) -> PathBuf {
        self.common.join(stream.name())
    }

    /// Makes the folder with copies of the job's inputs, which the service keeps in its own folder of the job, unless it is
    /// there; answers whether it was made. It is put together where its user cannot reach it. A later piece of work finds the
    /// inputs where the first one has them.
    pub(super) fn create(
        &self,
        job: &JobSpec,
        save: Option<SaveWork>,
        kept: &Path,
    ) -> Result<bool, ExecutionError> {
        let failed = |error| ExecutionError::system("create", &self.path)(error);
        if self.path.exists() {
            return Ok(false);
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        let new = self.path.with_file_name(name);
        match fs::remove_dir_all(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut folder = DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&new).map_err(failed)?;
        // From the beginning on: a disk of a network may keep it for a while that something was not there.
        let until = second_of(job.slot_end).to_string();
        let (signal, grace) = signal_and_grace(save);
        let mut made = Vec::new();
        for (name, line) in [(UNTIL, until), (SAVE, format!("{signal} {grace}"))] {
            let record = new.join(name);
            fs::write(&record, format!("{line}\n")).map_err(failed)?;
            made.push(record);
        }
        if self.path == self.common {
            let work = new.join("work");
            folder.create(&work).map_err(failed)?;
            for input in &job.inputs {
                let name = input.file_name().unwrap_or_default();
                let (from, copy) = (kept.join(name), work.join(name));
                fs::copy(&from, &copy).map_err(ExecutionError::system("copy", from))?;
                made.push(copy);
            }
            made.push(work);
        }
        made.push(new.clone());
        for path in made {
            chown(&path, Some(self.owner.user), Some(self.owner.group)).map_err(failed)?;
        }
        fs::rename(&new, &self.path).map_err(failed)?;
        Ok(true)
    }

    /// Whether a job has begun here.
    pub(super) fn is_claimed(&self) -> Result<bool, ExecutionError> {
        let claim = self.path.join("claim");
        match fs::symlink_metadata(&claim) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(ExecutionError::system("look for", claim)(error)),
        }
    }

    /// Tells its job that its slot ends at another instant; nothing where there is no folder yet.
    pub(super) fn put_until(&self, end: Time) -> Result<(), ExecutionError> {
        self.put(UNTIL, &end.to_string())
    }

    /// Tells its job how it is to have its program save its work; nothing where there is no folder yet.
    pub(super) fn put_save(&self, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        let (signal, grace) = signal_and_grace(save);
        self.put(SAVE, &format!("{signal} {grace}"))
    }

    /// Puts a line in place of what a record says, where there is a folder.
    ///
    /// What the job's user may have put there is replaced, and not followed.
    fn put(&self, name: &str, line: &str) -> Result<(), ExecutionError> {
        let path = self.path.join(name);
        let draft = self.path.join(format!(".{name}.{}", Uuid::now_v7()));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let opened = options.create_new(true).write(true).mode(0o644).open(&draft);
            let mut file = match opened {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                file => file?,
            };
            writeln!(file, "{line}")?;
            fs::rename(&draft, &path)
        };
        write().map_err(ExecutionError::system("write", path))
    }

    /// When its program began; `None` while it has not, or where that cannot be read.
    pub(super) fn started(&self) -> Option<Micros> {
        self.record("started").ok()??.parse().ok()
    }

    /// How its program ended; `None` while it has not.
    ///
    /// The job's user may write anything there: what cannot be read is no record, and then Slurm says how it ended.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.record("ended").ok()?.as_deref().and_then(Ended::read)
    }

    /// How its program ended, where this record alone decides; `None` while it has not.
    ///
    /// # Errors
    /// When the record cannot be read, or the folder is not there: its disk may be away.
    pub(super) fn ended_for_sure(&self) -> io::Result<Option<Ended>> {
        fs::symlink_metadata(&self.path)?;
        Ok(self.record("ended")?.as_deref().and_then(Ended::read))
    }

    fn record(&self, name: &str) -> io::Result<Option<String>> {
        let Some(file) = self.open(self.path.join(name))? else {
            return Ok(None);
        };
        let mut text = String::new();
        file.take(RECORD_MAX).read_to_string(&mut text)?;
        Ok(Some(text.trim().to_owned()))
    }

    /// Copies an output to a file, as much as is kept of it; answers how much that was, and whether there was more.
    pub(super) fn copy_output(&self, stream: Stream, to: &mut File, limit: u64) -> io::Result<(u64, bool)> {
        let Some(file) = self.open(self.output(stream))? else {
            return Ok((0, false));
        };
        let more = file.metadata()?.len() > limit;
        Ok((io::copy(&mut file.take(limit), to)?, more))
    }

    /// Copies the files that the job has left in its working folder, but not its inputs, to another folder: the first
    /// [`FILES_MAX`] that fit into [`FILES_BYTES_MAX`]. One that cannot be had keeps no other from being copied.
    ///
    /// # Errors
    /// Of the files that could not be copied, what was wrong with the last.
    pub(super) fn fetch_files(&self, inputs: &[PathBuf], to: &Path) -> io::Result<()> {
        let is_input = |name: &std::ffi::OsStr| inputs.iter().any(|input| input.file_name() == Some(name));
        let entries = match fs::read_dir(self.work()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let (mut left, mut fetched) = (FILES_BYTES_MAX, Ok(()));
        for entry in entries.take(FILES_MAX) {
            let entry = entry?;
            let name = entry.file_name();
            if is_input(&name) || !entry.file_type()?.is_file() {
                continue;
            }
            match self.fetch(&name, to, left) {
                Ok(bytes) => left -= bytes,
                Err(error) => fetched = Err(error),
            }
        }
        fetched
    }

    /// Copies a file of the working folder that has no more bytes than that; how many it has, 0 where it is not copied.
    ///
    /// What is there of this name is replaced and not written to: others may have it, too.
    fn fetch(&self, name: &std::ffi::OsStr, to: &Path, most: u64) -> io::Result<u64> {
        let Some(file) = self.open(self.work().join(name))? else {
            return Ok(0);
        };
        let bytes = file.metadata()?.len();
        if bytes > most {
            return Ok(0);
        }
        let draft = to.join(format!(".{}", Uuid::now_v7()));
        let mut options = OpenOptions::new();
        let mut copy = options.create_new(true).write(true).mode(0o600).open(&draft)?;
        let copied = io::copy(&mut file.take(bytes), &mut copy);
        let copied = copied.and_then(|bytes| fs::rename(&draft, to.join(name)).map(|()| bytes));
        if copied.is_err() {
            fs::remove_file(&draft)?;
        }
        copied
    }

    /// Opens a file that the job has written; `None` where there is none.
    fn open(&self, path: impl AsRef<Path>) -> io::Result<Option<File>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.cast_signed())
            .open(path);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let meta = file.metadata()?;
        if !meta.is_file() || meta.uid() != self.owner.user {
            return Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "it is no file of the job's user",
            ));
        }
        Ok(Some(file))
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{getegid, geteuid};

    use super::*;

    #[test]
    fn files_are_fetched_in_place_of_others_of_their_name_and_inputs_are_not() {
        let disk = tempfile::tempdir().unwrap();
        let owner = Owner {
            user: geteuid().as_raw(),
            group: getegid().as_raw(),
        };
        let work = Work::of(disk.path(), Uuid::nil().into(), None, owner);
        let kept = disk.path().join("kept");
        for folder in [work.work(), kept.join("taken")] {
            fs::create_dir_all(folder).unwrap();
        }
        for name in ["input", "result", "taken", "more"] {
            fs::write(work.work().join(name), name).unwrap();
        }
        let upload = disk.path().join("upload");
        fs::write(&upload, "a party's").unwrap();
        for name in ["input", "result"] {
            fs::hard_link(&upload, kept.join(name)).unwrap();
        }
        let fetched = work.fetch_files(&[disk.path().join("input")], &kept);
        assert!(fetched.is_err(), "a folder is in the way of one");
        let read = |name: &str| fs::read_to_string(kept.join(name)).unwrap();
        assert_eq!(
            [read("input"), read("result"), read("more")],
            ["a party's", "result", "more"]
        );
        assert_eq!(fs::read_to_string(upload).unwrap(), "a party's");
        assert_eq!(fs::read_dir(kept).unwrap().count(), 4, "no draft is left");
    }
}
