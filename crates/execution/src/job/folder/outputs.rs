//! The output of a job: its two output streams, and the files that it leaves in its working folder.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use domain::catalogue::is_file_name;
use scheduler::worded;

use crate::ExecutionError;
use crate::files::known_file::KnownFile;
use crate::files::{FileEntry, if_file_is_there};
use crate::job::folder::Folder;

/// Files of a job's working folder that are listed at most: as many as a person looks through.
const WRITTEN_FILES_MAX: usize = 1_000;

worded! {
    /// An output of a job, which has two, with the name of its file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Stream {
        /// The standard output.
        Out = "stdout",
        /// The standard error output.
        Err = "stderr",
    }
}

/// A file that a job has written: one of its two outputs, or a file that it left in its working folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputFile {
    /// An output.
    Stream(Stream),
    /// A file, by a name that [`is_file_name`] admits.
    File(String),
}

impl Folder {
    /// Where one of its outputs is.
    pub(crate) fn output(&self, stream: Stream) -> PathBuf {
        self.common().join(stream.word())
    }

    /// Adds a line about the job to its standard error output.
    pub(crate) fn append_message_to_output(&self, line: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(0o600);
        let mut file = options.open(self.output(Stream::Err))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// A file for an output: a new one, empty, or for a later slot the one of the slots before, at its end.
    pub(crate) fn create_output(&self, stream: Stream) -> Result<File, ExecutionError> {
        let path = self.output(stream);
        let is_later = self.is_later();
        let mut options = OpenOptions::new();
        options.append(is_later).write(!is_later).truncate(!is_later);
        options
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(ExecutionError::system("create", path))
    }

    /// The file of an output, to write at its end.
    pub(crate) fn append_to_output(&self, stream: Stream) -> Result<File, ExecutionError> {
        let path = self.output(stream);
        let mut options = OpenOptions::new();
        let opened = options.append(true).create(true).mode(0o600).open(&path);
        opened.map_err(ExecutionError::system("open", path))
    }

    /// The pipe by which the job of this slot writes one of its outputs.
    pub(crate) fn output_pipe(&self, stream: Stream) -> PathBuf {
        self.path().join(format!(".{}.pipe", stream.word()))
    }

    /// Bytes of the outputs as they are kept.
    pub(crate) fn output_bytes(&self) -> u64 {
        let bytes = |stream: Stream| fs::metadata(self.output(stream)).map_or(0, |meta| meta.len());
        bytes(Stream::Out) + bytes(Stream::Err)
    }

    /// An output as a file, once there is one. An empty output is not kept.
    pub fn output_entry(&self, stream: Stream) -> Option<FileEntry> {
        let name = stream.word().to_owned();
        if let Ok(meta) = fs::metadata(self.output(stream)) {
            return Some(FileEntry::new(name, &meta));
        }
        self.ran_until().map(|modified| FileEntry {
            name,
            bytes: 0,
            modified,
        })
    }

    /// The meaning of a name among the job's outputs: its outputs always exist, a file of its working folder where
    /// there is one. Inputs, links and folders do not count.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn output_file(&self, name: &str) -> Result<Option<OutputFile>, ExecutionError> {
        if let Some(stream) = Stream::from_word(name) {
            return Ok(Some(OutputFile::Stream(stream)));
        }
        let mut files = self.output_files()?.into_iter();
        let found = files.find(|file| file.name == name);
        Ok(found.map(|file| OutputFile::File(file.name)))
    }

    /// The files that the job has left in its working folder, by name: the first [`WRITTEN_FILES_MAX`] found.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn output_files(&self) -> Result<Vec<FileEntry>, ExecutionError> {
        let inputs = self.spec()?.map(|spec| spec.inputs).unwrap_or_default();
        let is_input = |name: &str| {
            inputs
                .iter()
                .any(|input| input.file_name() == Some(OsStr::new(name)))
        };
        let (work, own) = (self.work(), self.files_beside_outputs()?);
        let list = || -> io::Result<Vec<FileEntry>> {
            let mut files = Vec::new();
            for entry in if_file_is_there(fs::read_dir(&work))?.into_iter().flatten() {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                // Of a link, this is about the link.
                let Some(meta) = if_file_is_there(entry.metadata())? else {
                    continue;
                };
                if own.has(&meta) && is_file_name(&name) && !is_input(&name) {
                    files.push(FileEntry::new(name, &meta));
                }
                if files.len() == WRITTEN_FILES_MAX {
                    break;
                }
            }
            files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            Ok(files)
        };
        list().map_err(ExecutionError::system("list", &work))
    }

    /// Which files of its working folder are the job's own.
    fn files_beside_outputs(&self) -> Result<FilesBesideOutputs, ExecutionError> {
        let is_isolated = self.spec()?.is_some_and(|spec| spec.isolation.is_some());
        Ok(if is_isolated {
            FilesBesideOutputs::All
        } else {
            FilesBesideOutputs::Single(self.given_files()?)
        })
    }

    /// Opens an output of the job, while it is being written or afterwards; none where it is not there.
    ///
    /// # Errors
    /// When the system refuses, or a job has put something else where a file was.
    pub fn open_output(&self, written: &OutputFile) -> Result<Option<File>, ExecutionError> {
        let path = match written {
            OutputFile::Stream(stream) => self.output(*stream),
            OutputFile::File(name) => self.work().join(name),
        };
        // A job owns its folder: the target of a link is not its own output, and a pipe would never end.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let own = self.files_beside_outputs()?;
        let open = || -> io::Result<Option<File>> {
            let opened = OpenOptions::new()
                .read(true)
                .custom_flags(flags.bits().cast_signed())
                .open(&path);
            let file = if_file_is_there(opened)?;
            if let Some(file) = &file
                && !own.has(&file.metadata()?)
            {
                return Err(io::Error::other("it is no file of the job alone"));
            }
            Ok(file)
        };
        open().map_err(ExecutionError::system("open", &path))
    }
}

/// The files of a job's folder that are the job's own.
enum FilesBesideOutputs {
    /// All: an isolated job cannot name others.
    All,
    /// Files with one name, and these that the job was given. Another one may be a second name of a file that is not the job's.
    Single(Vec<KnownFile>),
}

impl FilesBesideOutputs {
    fn has(&self, meta: &fs::Metadata) -> bool {
        let is_own = match self {
            Self::All => true,
            Self::Single(given) => meta.nlink() == 1 || given.iter().any(|given| given.is(meta)),
        };
        meta.is_file() && is_own
    }
}
