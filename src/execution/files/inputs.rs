//! Input files of jobs: the provider's, which every offer may name, and each party's own, which it uploads and no other
//! party sees.
//!
//! A file appears whole and durably or not at all: it is written beside its place and renamed. A party's files together
//! stay within its quota, uploads that are under way included; a job keeps the file that it was started with, even if
//! another is uploaded later.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{FileEntry, if_there};
use crate::catalogue::is_file_name;
use crate::execution::lock::lock;

/// Files that one party may have: a list that can be read, and no way to fill a disk with names.
pub const FILES_MAX: usize = 1_000;

/// The prefix of the name of an unfinished upload: no file may have such a name.
const DRAFT: char = '.';

/// The input files of a data folder. Clones share their knowledge of the parties' use.
#[derive(Debug, Clone)]
pub struct InputFiles {
    provider: PathBuf,
    parties: PathBuf,
    /// Bytes that each party may have.
    quota: u64,
    used: Arc<Mutex<HashMap<String, Used>>>,
}

/// The use of a party, uploads under way included.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    bytes: u64,
    files: usize,
}

impl Used {
    /// Counts a file of this size no more.
    fn remove(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.files = self.files.saturating_sub(1);
    }
}

/// Why a file cannot be uploaded.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The party's quota does not leave room for it.
    #[error("the quota of {quota} bytes in at most {FILES_MAX} files leaves no room for it")]
    QuotaExceeded {
        /// Bytes that a party may have.
        quota: u64,
    },
    /// The system refused.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// An upload under way. Dropped before its end it leaves nothing behind.
#[derive(Debug)]
pub struct Upload {
    files: InputFiles,
    party: String,
    file: File,
    draft: PathBuf,
    target: PathBuf,
    bytes: u64,
    finished: bool,
}

impl InputFiles {
    /// The files below a data folder, with `quota` bytes for each party.
    ///
    /// # Errors
    /// When the current folder is needed to make a path absolute and is gone.
    pub fn new(data_dir: &Path, quota: u64) -> io::Result<Self> {
        let data_dir = std::path::absolute(data_dir)?;
        Ok(Self {
            provider: data_dir.join("files"),
            parties: data_dir.join("party-files"),
            quota,
            used: Arc::default(),
        })
    }

    /// Bytes that each party may have.
    pub fn quota(&self) -> u64 {
        self.quota
    }

    /// The file that a name means to a party: its own before the provider's.
    pub fn find(&self, party: &str, name: &str) -> Option<PathBuf> {
        self.find_own(party, name)
            .or_else(|| Some(self.provider.join(name)).filter(|path| is_file_name(name) && path.is_file()))
    }

    /// A party's own file.
    pub fn find_own(&self, party: &str, name: &str) -> Option<PathBuf> {
        let path = self.folder(party).join(name);
        (is_file_name(name) && path.is_file()).then_some(path)
    }

    /// Names that an offer of this party may use, in order: the first `count_max` that are found.
    pub fn names(&self, party: &str, count_max: usize) -> Vec<String> {
        let own = input_names_in(&self.folder(party));
        let mut names: Vec<_> = own
            .chain(input_names_in(&self.provider))
            .take(count_max)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// A party's own files, by name.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn own(&self, party: &str) -> io::Result<Vec<FileEntry>> {
        let folder = self.folder(party);
        let mut files = Vec::new();
        for name in input_names_in(&folder) {
            // It may have been removed meanwhile.
            let meta = if_there(fs::metadata(folder.join(&name)))?;
            files.extend(meta.map(|meta| FileEntry::new(name, &meta)));
        }
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Begins to upload a file of a party; one of the same name is replaced at the end. The name is one that
    /// [`is_file_name`] admits.
    ///
    /// # Errors
    /// [`UploadError::QuotaExceeded`] where the party has too many files, [`UploadError::System`].
    pub fn upload(&self, party: &str, name: &str) -> Result<Upload, UploadError> {
        debug_assert!(is_file_name(name));
        let folder = self.folder(party);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        self.change(party, |used| {
            if used.files >= FILES_MAX {
                return Err(UploadError::QuotaExceeded { quota: self.quota });
            }
            used.files += 1;
            Ok(())
        })??;
        let draft = folder.join(format!("{DRAFT}{}", Uuid::now_v7()));
        let file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o400)
            .open(&draft);
        let file = match file {
            Ok(file) => file,
            Err(why) => {
                self.change(party, |used| used.files -= 1)?;
                return Err(why.into());
            }
        };
        Ok(Upload {
            files: self.clone(),
            party: party.to_owned(),
            file,
            draft,
            target: folder.join(name),
            bytes: 0,
            finished: false,
        })
    }

    /// Removes a party's file; answers whether there was one.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove(&self, party: &str, name: &str) -> io::Result<bool> {
        let Some(path) = self.find_own(party, name) else {
            return Ok(false);
        };
        self.change(party, |used| {
            let bytes = fs::metadata(&path)?.len();
            let removed = if_there(fs::remove_file(&path))?;
            if removed.is_some() {
                used.remove(bytes);
            }
            Ok(removed.is_some())
        })?
    }

    /// The folder of a party's files. A name of a party may be long and have any characters, that of a folder may not.
    fn folder(&self, party: &str) -> PathBuf {
        self.parties
            .join(crate::store::hex(&Sha256::digest(party.as_bytes())))
    }

    /// Changes the use of a party. It is counted when it is first asked for, and files that a crash left behind are
    /// removed then.
    fn change<T>(&self, party: &str, change: impl FnOnce(&mut Used) -> T) -> io::Result<T> {
        let mut parties = lock(&self.used);
        if !parties.contains_key(party) {
            let used = count_input_files(&self.folder(party))?;
            parties.insert(party.to_owned(), used);
        }
        Ok(change(parties.entry(party.to_owned()).or_default()))
    }
}

impl Upload {
    /// Writes more of the file.
    ///
    /// # Errors
    /// [`UploadError::QuotaExceeded`], [`UploadError::System`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), UploadError> {
        let (more, quota) = (bytes.len() as u64, self.files.quota);
        self.files.change(&self.party, |used| {
            if used.bytes + more > quota {
                return Err(UploadError::QuotaExceeded { quota });
            }
            used.bytes += more;
            Ok(())
        })??;
        self.bytes += more;
        Ok(self.file.write_all(bytes)?)
    }

    /// Puts the file in its place, durably; answers whether it replaced one.
    ///
    /// # Errors
    /// When the system refuses; nothing has changed then.
    pub fn finish(mut self) -> io::Result<bool> {
        self.file.sync_all()?;
        // Opened before anything changes: afterwards there might be no descriptor for it.
        let folder = self.target.parent().map(File::open).transpose()?;
        let (draft, target) = (&self.draft, &self.target);
        let replaced = self.files.change(&self.party, |used| {
            let replaced = fs::metadata(target).ok().map(|meta| meta.len());
            fs::rename(draft, target)?;
            if let Some(bytes) = replaced {
                used.remove(bytes);
            }
            Ok::<_, io::Error>(replaced.is_some())
        })??;
        self.finished = true;
        if let Some(folder) = folder {
            folder.sync_all()?;
        }
        Ok(replaced)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let _ = fs::remove_file(&self.draft);
        let bytes = self.bytes;
        let _ = self.files.change(&self.party, |used| used.remove(bytes));
    }
}

/// The content of a party's folder; uploads that a crash cut off are removed.
fn count_input_files(folder: &Path) -> io::Result<Used> {
    let mut used = Used::default();
    for entry in if_there(fs::read_dir(folder))?.into_iter().flatten() {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(DRAFT) {
            fs::remove_file(entry.path())?;
        } else {
            used.bytes += entry.metadata()?.len();
            used.files += 1;
        }
    }
    Ok(used)
}

/// Names of the files of a folder that offers can use; none where it cannot be read.
fn input_names_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_file_name(name))
}

/// Puts an input file into a job's folder: in its present state where the file system can, even if its name changes later.
/// One that can be written, or that the job is to change, is copied by way of `draft`, since a job that changes its input changes no other's.
pub(crate) fn put_input(input: &Path, link: &Path, draft: &Path, is_changed: bool) -> io::Result<()> {
    let mode = fs::metadata(input)?.permissions().mode();
    if (is_changed || mode & 0o222 != 0) && fs::symlink_metadata(link).is_err() {
        if_there(fs::remove_file(draft))?;
        fs::copy(input, draft)?;
        let mode = if is_changed { mode | 0o200 } else { mode & 0o555 };
        fs::set_permissions(draft, Permissions::from_mode(mode))?;
        return fs::rename(draft, link);
    }
    let linked = fs::hard_link(input, link).or_else(|why| match why.kind() {
        ErrorKind::AlreadyExists => Ok(()),
        // On another file system, or not ours to link to.
        _ => symlink(input, link),
    });
    match linked {
        Err(why) if why.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &tempfile::TempDir, quota: u64) -> InputFiles {
        InputFiles::new(folder.path(), quota).unwrap()
    }

    fn put(files: &InputFiles, party: &str, name: &str, bytes: &[u8]) -> Result<bool, UploadError> {
        let mut upload = files.upload(party, name)?;
        upload.write(bytes)?;
        Ok(upload.finish()?)
    }

    #[test]
    fn a_party_finds_its_own_file_before_the_providers_and_never_anothers() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&folder, 100);
        fs::create_dir(folder.path().join("files")).unwrap();
        fs::write(folder.path().join("files/a"), "provider").unwrap();
        assert!(!put(&files, "physics", "a", b"own").unwrap());
        let read = |party, name| files.find(party, name).map(|path| fs::read(path).unwrap());
        assert_eq!(read("physics", "a").unwrap(), b"own");
        assert_eq!(read("biology", "a").unwrap(), b"provider");
        assert!(put(&files, "physics", "a", b"new").unwrap(), "it is replaced");
        assert!(!put(&files, "physics", "b", b"").unwrap());
        assert_eq!(read("physics", "a").unwrap(), b"new");
        assert_eq!(read("biology", "b"), None);
        for path in ["../files/a", "/etc/passwd", ".", "..", ""] {
            assert_eq!(files.find("physics", path), None, "{path}");
        }
        assert_eq!(files.names("physics", 10), ["a", "b"]);
        assert_eq!(files.names("biology", 10), ["a"]);
        assert!(files.remove("physics", "a").unwrap());
        assert!(!files.remove("physics", "a").unwrap());
        assert_eq!(
            read("physics", "a").unwrap(),
            b"provider",
            "which it cannot remove"
        );
    }

    #[test]
    fn the_quota_counts_what_is_there_what_is_on_its_way_and_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&folder, 10);
        put(&files, "physics", "a", b"12345").unwrap();
        let mut second = files.upload("physics", "b").unwrap();
        second.write(b"1234").unwrap();
        let over = put(&files, "physics", "c", b"12").unwrap_err();
        assert!(matches!(over, UploadError::QuotaExceeded { quota: 10 }));
        put(&files, "biology", "c", b"1234567890").unwrap();
        drop(second);
        put(&files, "physics", "c", b"12345").unwrap();
        assert!(
            put(&files, "physics", "a", b"1").is_err(),
            "the old one stays until the end"
        );
        assert!(files.remove("physics", "c").unwrap());
        assert!(put(&files, "physics", "a", b"1").unwrap());
        // Another process finds the same.
        let again = InputFiles::new(folder.path(), 10).unwrap();
        put(&again, "physics", "d", b"123456789").unwrap();
        assert!(put(&again, "physics", "e", b"1").is_err());
        let names: Vec<_> = again
            .own("physics")
            .unwrap()
            .into_iter()
            .map(|file| file.name)
            .collect();
        assert_eq!(names, ["a", "d"]);
    }

    #[test]
    fn an_upload_that_a_crash_cut_off_is_gone_after_the_restart() {
        let folder = tempfile::tempdir().unwrap();
        let before = files(&folder, 10);
        let mut upload = before.upload("physics", "a").unwrap();
        upload.write(b"1234567890").unwrap();
        std::mem::forget(upload);
        let after = files(&folder, 10);
        assert!(after.own("physics").unwrap().is_empty());
        put(&after, "physics", "a", b"0123456789").unwrap();
        assert_eq!(fs::read_dir(after.folder("physics")).unwrap().count(), 1);
    }

    #[test]
    fn a_party_has_a_bounded_number_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&folder, 10);
        for number in 0..FILES_MAX {
            fs::create_dir_all(files.folder("physics")).unwrap();
            fs::write(files.folder("physics").join(number.to_string()), "").unwrap();
        }
        assert!(put(&files, "physics", "more", b"").is_err());
        assert!(files.remove("physics", "7").unwrap());
        put(&files, "physics", "more", b"").unwrap();
    }
}
