//! A job's folder on the disk that the service shares with the nodes. It belongs to the job's user, so that nothing in
//! it is trusted: it is read without following links, and only files of that user are read.
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
//! Each run has such a folder, by its name ([`Run`]). The folders of later slots have no working folder and no outputs: these
//! are in the first one. They lie beside it and not inside. Inside, its user could make a claim for a slot before its job is
//! submitted.
//!
//! When the agreement is over, and the slot, only the claim and the files that the job has left stay ([`SharedDisk::pack`]). Where
//! there are no such files, the whole folder is removed.
//!
//! [`SharedDisk::pack`]: super::shared_disk::SharedDisk::pack

mod draft;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::agreement::Run;
use domain::clock::{Micros, second_of};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use uuid::Uuid;

use crate::files::{if_file_is_there, tree};
use crate::job::folder::outputs::Stream;
use crate::slurm::helper::operation::{JobPlace, Operation, Part, SharedFolderItem, SharedFolderRecord, YES};
use crate::slurm::helper::socket::HelperSocket;
use crate::{ExecutionError, JobSpec, SaveWork};

/// The word in the record of its end for a job that was told to save its work.
const TOLD: &str = "told";
pub(crate) const UNTIL: &str = "until";
const SAVE: &str = "save";
pub(crate) const WORK: &str = "work";
pub(crate) const CLAIM: &str = "claim";
/// The parts that are needed only while the job runs.
pub(crate) const RECORDS: [&str; 9] = [
    UNTIL, SAVE, ".started", "started", ".ended", ENDED, GROUP, ".told", ".over",
];
/// The records by which a script ends its program.
pub(crate) const STOPS_BY: [&str; 2] = [UNTIL, GROUP];
/// The record of the program's end.
pub(crate) const ENDED: &str = "ended";
/// The process group of the program.
const GROUP: &str = ".group";
/// The prefix of the names of the drafts of records.
pub(crate) const DRAFTS: [&str; 2] = [".until.", ".save."];
/// Bytes of a record at most.
const RECORD_MAX: u64 = 100;
const MICROS_PER_MILLI: Micros = 1_000;
/// Files of a working folder that are fetched at most, and bytes in all: as many as a listing shows, and few enough
/// that one job fills no disk.
const FILES_MAX: usize = 1_000;
const FILES_BYTES_MAX: u64 = 4 << 30;

/// The owner of a job's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// A job's shared folder.
#[derive(Debug, Clone)]
pub(crate) struct SharedFolder {
    /// Where its records are.
    pub(crate) path: PathBuf,
    /// Where the working folder and the outputs are.
    pub(crate) common: PathBuf,
    pub(crate) owner: Owner,
    /// Its name as the helper is told of it.
    pub(crate) place: JobPlace,
    /// The helper that reaches into it; none where the service does so itself.
    helper: Option<Arc<HelperSocket>>,
}

impl SharedFolderRecord {
    /// Its name and its content.
    pub(crate) fn text(self) -> (&'static str, String) {
        match self {
            Self::Until(end) => (UNTIL, end.to_string()),
            Self::Save(save) => {
                let (signal, grace) = signal_and_grace_in_shared_folder(save);
                (SAVE, format!("{signal} {grace}"))
            }
        }
    }
}

impl From<Stream> for SharedFolderItem {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Out => Self::Stdout,
            Stream::Err => Self::Stderr,
        }
    }
}

/// How a folder is opened on the way to its entries.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The signal by which a program is told to save its work, and how many milliseconds before the end of its slot; `-` for none.
pub(crate) fn signal_and_grace_in_shared_folder(save: Option<SaveWork>) -> (&'static str, i64) {
    save.map_or(("-", 0), |save| {
        (save.signal.word(), save.grace / MICROS_PER_MILLI)
    })
}

/// How a job's program ended, as the job itself recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndInSharedFolder {
    pub(crate) status: i32,
    pub(crate) at: Micros,
    /// Whether it had been told to save its work.
    pub(crate) told: bool,
}

impl EndInSharedFolder {
    /// The content of a record; `None` where a job would not write this.
    fn read(record: &str) -> Option<Self> {
        let mut words = record.split(' ');
        Some(Self {
            status: words.next()?.parse().ok()?,
            at: words.next()?.parse().ok()?,
            told: words.next() == Some(TOLD),
        })
    }
}

impl SharedFolder {
    /// The folder of a job, there or not; of a later slot, beside that of the first one.
    pub(crate) fn of(work_dir: &Path, id: Run, first: Option<PathBuf>, owner: Owner) -> Self {
        let path = work_dir.join(id.to_string());
        let common = first.unwrap_or_else(|| path.clone());
        let name = common.file_name().and_then(OsStr::to_str);
        Self {
            place: JobPlace {
                id,
                common: name.and_then(|name| name.parse().ok()).unwrap_or(id),
                party: String::new(),
            },
            common,
            path,
            owner,
            helper: None,
        }
    }

    /// The folder of a job of this party, reached into by the helper, where there is one.
    pub(crate) fn with_helper(mut self, helper: Option<&Arc<HelperSocket>>, party: &str) -> Self {
        self.helper = helper.cloned();
        party.clone_into(&mut self.place.party);
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The job's working folder.
    pub(crate) fn work(&self) -> PathBuf {
        self.common.join(WORK)
    }

    /// Where one of its outputs goes.
    pub(crate) fn output(&self, stream: Stream) -> PathBuf {
        self.common.join(stream.word())
    }

    /// Makes the folder with copies of the job's inputs, which the service keeps in its own folder of the job, unless it is
    /// there; answers whether it was made. It is put together where its user cannot reach it. A later slot of work finds the
    /// inputs where the first one has them.
    pub(crate) fn create(
        &self,
        job: &JobSpec,
        save: Option<SaveWork>,
        kept: &Path,
    ) -> Result<bool, ExecutionError> {
        let mut inputs = Vec::new();
        if self.path == self.common && !self.exists(Part::Folder).map_err(self.failed("look for"))? {
            for name in job.given() {
                let from = kept.join(name);
                let file = File::open(&from).map_err(ExecutionError::system("copy", from))?;
                inputs.push((name.to_string_lossy().into_owned(), file));
            }
        }
        let until = second_of(job.slot_end).seconds();
        let Some(helper) = &self.helper else {
            return self.make_by_draft(until, save, inputs);
        };
        let (names, files): (Vec<String>, Vec<File>) = inputs.into_iter().unzip();
        let operation = Operation::Create {
            place: self.place.clone(),
            until,
            save,
            inputs: names,
        };
        Ok(helper.ask(&operation, &files)?.said == YES)
    }

    pub(crate) fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> ExecutionError + use<> {
        ExecutionError::system(doing, self.path.clone())
    }

    /// Whether a job has begun here.
    pub(crate) fn is_claimed(&self) -> Result<bool, ExecutionError> {
        self.exists(Part::Claim)
            .map_err(self.failed("look for a claim in"))
    }

    /// Whether a part of it is there. A file in place of a folder, or another user's folder, is an error.
    pub(crate) fn exists(&self, part: Part) -> io::Result<bool> {
        if let Some(helper) = &self.helper {
            let place = self.place.clone();
            return Ok(helper.look(&Operation::Exists { place, part })?.said == YES);
        }
        let looked = match part {
            Part::Folder => self.folder(&self.path).map(drop),
            Part::Claim => self.folder(&self.path).and_then(|folder| {
                Ok(rustix::fs::statat(&folder, CLAIM, AtFlags::SYMLINK_NOFOLLOW).map(drop)?)
            }),
            Part::Work => self.work_folder().map(drop),
        };
        Ok(if_file_is_there(looked)?.is_some())
    }

    /// Opens the job's folder at a path, which is no link.
    fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let opened = rustix::fs::openat(CWD, path, FOLDER.union(OFlags::NOFOLLOW), Mode::empty())?;
        if rustix::fs::fstat(&opened)?.st_uid != self.owner.user {
            return Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "it is no folder of the job's user",
            ));
        }
        Ok(opened)
    }

    /// Replaces the content of a record by a line, where there is a folder.
    ///
    /// A file or link that the job's user may have put there is replaced, and not followed.
    pub(crate) fn put(&self, record: SharedFolderRecord) -> Result<(), ExecutionError> {
        if let Some(helper) = &self.helper {
            let place = self.place.clone();
            return helper.ask(&Operation::Put { place, record }, &[]).map(drop);
        }
        let (name, line) = record.text();
        let draft = format!(".{name}.{}", Uuid::now_v7());
        let write = || -> io::Result<()> {
            let Some(folder) = if_file_is_there(self.folder(&self.path))? else {
                return Ok(());
            };
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(&folder, &draft, flags, Mode::from_raw_mode(0o644));
            writeln!(File::from(opened?), "{line}")?;
            Ok(rustix::fs::renameat(&folder, &draft, &folder, name)?)
        };
        write().map_err(ExecutionError::system("write", self.path.join(name)))
    }

    /// When its program began; `None` while it has not, or where that cannot be read.
    pub(crate) fn started(&self) -> Option<Micros> {
        self.record(&SharedFolderItem::Started).ok()??.parse().ok()
    }

    /// How its program ended; `None` while it has not.
    ///
    /// The job's user may write anything there: an unreadable file is no record, and then Slurm says how the job ended.
    pub(crate) fn ended(&self) -> Option<EndInSharedFolder> {
        self.record(&SharedFolderItem::Ended)
            .ok()?
            .as_deref()
            .and_then(EndInSharedFolder::read)
    }

    /// How its program ended, where this record alone decides; `None` while it has not.
    ///
    /// # Errors
    /// When the record cannot be read, or the folder is not there: its disk may be away.
    pub(crate) fn ended_for_sure(&self) -> io::Result<Option<EndInSharedFolder>> {
        if !self.exists(Part::Folder)? {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(self
            .record(&SharedFolderItem::Ended)?
            .as_deref()
            .and_then(EndInSharedFolder::read))
    }

    fn record(&self, item: &SharedFolderItem) -> io::Result<Option<String>> {
        let Some(file) = self.open(item)? else {
            return Ok(None);
        };
        let mut text = String::new();
        file.take(RECORD_MAX).read_to_string(&mut text)?;
        Ok(Some(text.trim().to_owned()))
    }

    /// Copies an output to a file, as much as is kept of it. Returns the copied size, and whether there was more.
    pub(crate) fn copy_output(&self, stream: Stream, to: &mut File, limit: u64) -> io::Result<(u64, bool)> {
        let Some(file) = self.open(&stream.into())? else {
            return Ok((0, false));
        };
        let more = file.metadata()?.len() > limit;
        Ok((io::copy(&mut file.take(limit), to)?, more))
    }

    /// Copies the files that the job has left in its working folder, but not those that it was given, to another folder: the first
    /// [`FILES_MAX`] that fit into [`FILES_BYTES_MAX`]. One that cannot be had keeps no other from being copied. Returns the copied
    /// bytes, and the error of the last of the files that could not be copied.
    pub(crate) fn fetch_files(&self, given: &[OsString], to: &Path) -> (u64, io::Result<()>) {
        let (mut left, mut fetched) = (FILES_BYTES_MAX, Ok(()));
        let names = self.names().unwrap_or_else(|error| {
            fetched = Err(error);
            Vec::new()
        });
        for name in names {
            if given.contains(&name) {
                continue;
            }
            match self.fetch(&name, to, left) {
                Ok(bytes) => left -= bytes,
                Err(error) => fetched = Err(error),
            }
        }
        (FILES_BYTES_MAX - left, fetched)
    }

    /// The files among the first [`FILES_MAX`] entries of the working folder; none where that is not there. Through the
    /// helper only files with names that are text.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        if let Some(helper) = &self.helper {
            let place = self.place.clone();
            let names: Vec<String> = serde_json::from_str(&helper.look(&Operation::List { place })?.said)?;
            return Ok(names.into_iter().map(OsString::from).collect());
        }
        let Some(folder) = if_file_is_there(self.work_folder())? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        let listing = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(&folder, ".", listing, Mode::empty())?;
        for name in tree::names_in_tree_folder(&listed)?.take(FILES_MAX) {
            let name = name?;
            let found = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW);
            let is_file =
                |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            // Others may have been removed since they were listed.
            if found.is_ok_and(is_file) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Copies a file of the working folder that has no more bytes than that; how many it has, 0 where it is not copied.
    ///
    /// A file of this name is replaced and not written to: it may be linked elsewhere.
    fn fetch(&self, name: &OsStr, to: &Path, most: u64) -> io::Result<u64> {
        let Some(item) = name.to_str().map(|name| SharedFolderItem::File(name.to_owned())) else {
            return Ok(0);
        };
        let Some(file) = self.open(&item)? else {
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
    pub(crate) fn open(&self, item: &SharedFolderItem) -> io::Result<Option<File>> {
        if let Some(helper) = &self.helper {
            let (place, item) = (self.place.clone(), item.clone());
            return Ok(helper.look(&Operation::Open { place, item })?.file);
        }
        let (folder, name) = match item {
            SharedFolderItem::Started => (self.folder(&self.path), "started"),
            SharedFolderItem::Ended => (self.folder(&self.path), ENDED),
            SharedFolderItem::Stdout => (self.folder(&self.common), Stream::Out.word()),
            SharedFolderItem::Stderr => (self.folder(&self.common), Stream::Err.word()),
            SharedFolderItem::File(name) => (self.work_folder(), name.as_str()),
        };
        if_file_is_there(folder.and_then(|folder| open_file_in_shared_folder(folder, name, self.owner)))
    }

    /// Opens the working folder.
    fn work_folder(&self) -> io::Result<OwnedFd> {
        self.folder(&self.common)
            .and_then(|folder| open_folder_in_shared_folder(&folder, WORK))
    }
}

/// A folder in another one, which is no link.
pub(crate) fn open_folder_in_shared_folder(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = FOLDER.union(OFlags::NOFOLLOW);
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}

/// Opens a file in a folder for reading, where it is one of that user.
pub(crate) fn open_file_in_shared_folder(folder: impl AsFd, name: &str, owner: Owner) -> io::Result<File> {
    // A pipe would be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() || meta.uid() != owner.user {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "it is no file of the job's user",
        ));
    }
    Ok(file)
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
        let work = SharedFolder::of(disk.path(), Run::first(Uuid::nil()), None, owner);
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
        let (bytes, fetched) = work.fetch_files(&["input".into()], &kept);
        assert!(fetched.is_err(), "a folder is in the way of one");
        assert_eq!(bytes, 10, "of the two others");
        let read = |name: &str| fs::read_to_string(kept.join(name)).unwrap();
        assert_eq!(
            [read("input"), read("result"), read("more")],
            ["a party's", "result", "more"]
        );
        assert_eq!(fs::read_to_string(upload).unwrap(), "a party's");
        assert_eq!(fs::read_dir(kept).unwrap().count(), 4, "no draft is left");
    }
}
