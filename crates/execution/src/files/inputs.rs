//! Input files of jobs: the provider's, which every offer may name, and each party's own, which it uploads and no other
//! party sees.
//!
//! A file appears whole and durably or not at all: it is written beside its place and renamed. A party's files together
//! stay within its quota, uploads that are under way included; a job keeps the file that it was started with, even if
//! another is uploaded later.
//!
//! Where several processes serve on one database, the files of parties are in it, and the folder is a copy (`mirror.rs`).

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::catalogue::is_file_name;
use store::{Engine, Store};
use uuid::Uuid;

use super::mirror::Mirror;
use super::party_folders::{Draft, PartyFolders, names_in_party_folder, owner_of_party_folder};
use super::{FileEntry, if_file_is_there};

pub use super::mirror::MirrorError;

/// Files that one party may have: a list that can be read, and no way to fill a disk with names.
const FILES_MAX: usize = 1_000;

/// The input files of a data folder. Clones share their knowledge of the parties' use.
#[derive(Debug, Clone)]
pub struct InputFiles {
    provider: PathBuf,
    parties: PartyFolders,
    /// Bytes that each party may have.
    quota: u64,
    /// The database that the files of parties are in, where there is one.
    mirror: Option<Arc<Mirror>>,
    /// Whether one was looked for that is in the database.
    looked_for: Arc<AtomicBool>,
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
    owner: String,
    name: String,
    draft: Draft,
    /// The id of its content, where that is in a database.
    content: Uuid,
    bytes: u64,
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
            parties: PartyFolders::new(data_dir.join("party-files")),
            quota,
            mirror: None,
            looked_for: Arc::default(),
        })
    }

    /// Keeps the files of parties in this database too, where several processes can serve on it; otherwise they are in
    /// the folder only.
    #[must_use]
    pub fn kept_in(self, store: &Store) -> Self {
        let shared = store.kind() == Engine::Postgres;
        let mirror = shared.then(|| Arc::new(Mirror::new(store.clone(), self.parties.clone())));
        Self { mirror, ..self }
    }

    /// Makes the folder a copy of what the database has by now. All other calls look at the folder only, so that this comes before
    /// each decision for which files are looked for. Where nothing has changed it costs one small query.
    ///
    /// # Errors
    /// [`MirrorError`]; what was taken over until then stays.
    pub async fn catch_up(&self) -> Result<(), MirrorError> {
        match &self.mirror {
            Some(mirror) => mirror.catch_up().await,
            None => Ok(()),
        }
    }

    /// A copy of the handle for the work of one agreement, which may look for a file: most work does not, and need not wait for the folder
    /// to catch up.
    #[must_use]
    pub fn not_looked_for(&self) -> Self {
        Self {
            looked_for: Arc::default(),
            ..self.clone()
        }
    }

    /// Whether one was looked for that may be another in the database by now: what was found counts only where the folder had caught up.
    pub fn were_looked_for(&self) -> bool {
        self.looked_for.load(Ordering::Relaxed)
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
        if self.mirror.is_some() {
            self.looked_for.store(true, Ordering::Relaxed);
        }
        let path = self.parties.file(&owner_of_party_folder(party), name);
        (is_file_name(name) && path.is_file()).then_some(path)
    }

    /// Names that an offer of this party may use, in order: the first `count_max` that are found.
    pub fn names(&self, party: &str, count_max: usize) -> Vec<String> {
        let own = self.parties.names(&owner_of_party_folder(party));
        let mut names: Vec<_> = own
            .chain(names_in_party_folder(&self.provider))
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
        let owner = owner_of_party_folder(party);
        let mut files = Vec::new();
        for name in self.parties.names(&owner) {
            // It may have been removed meanwhile.
            let meta = if_file_is_there(fs::metadata(self.parties.file(&owner, &name)))?;
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
        let owner = owner_of_party_folder(party);
        let draft = self.parties.draft(&owner)?;
        self.parties.change(&owner, |used| {
            if used.files >= FILES_MAX {
                return Err(UploadError::QuotaExceeded { quota: self.quota });
            }
            used.files += 1;
            Ok(())
        })??;
        Ok(Upload {
            files: self.clone(),
            owner,
            name: name.to_owned(),
            draft,
            content: Uuid::now_v7(),
            bytes: 0,
        })
    }

    /// Removes a party's file; answers whether there was one.
    ///
    /// # Errors
    /// [`MirrorError`]: where the database did not answer, the file may be removed nevertheless.
    pub async fn remove(&self, party: &str, name: &str) -> Result<bool, MirrorError> {
        let owner = owner_of_party_folder(party);
        if let Some(mirror) = &self.mirror {
            return Ok(is_file_name(name) && mirror.remove(&owner, name).await?);
        }
        let (parties, name) = (self.parties.clone(), name.to_owned());
        let removed = task::spawn_blocking(move || parties.remove(&owner, &name));
        Ok(removed.await.map_err(io::Error::other)??)
    }
}

impl Upload {
    /// Writes more of the file.
    ///
    /// # Errors
    /// [`UploadError::QuotaExceeded`], [`UploadError::System`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), UploadError> {
        let (more, quota) = (bytes.len() as u64, self.files.quota);
        self.files.parties.change(&self.owner, |used| {
            if used.bytes + more > quota {
                return Err(UploadError::QuotaExceeded { quota });
            }
            used.bytes += more;
            Ok(())
        })??;
        self.bytes += more;
        Ok(self.draft.file.write_all(bytes)?)
    }

    /// Puts the file in its place, durably, and in the database before, where it is kept in one; answers whether it replaced
    /// one.
    ///
    /// # Errors
    /// [`MirrorError`]. Nothing has changed then; where the database did not answer, it may have the file nevertheless.
    pub async fn finish(self) -> Result<bool, MirrorError> {
        let finished = task::spawn_blocking(move || {
            self.draft.file.sync_all()?;
            let replaced = match self.files.mirror {
                None => Some(self.put_in_place()?),
                Some(_) => None,
            };
            Ok::<_, io::Error>((self, replaced))
        });
        let (upload, replaced) = finished.await.map_err(io::Error::other)??;
        let Some(mirror) = &upload.files.mirror else {
            return Ok(replaced.unwrap_or(false));
        };
        mirror.announce(upload.content, upload.draft.path.clone());
        mirror.upload(&upload.owner, &upload.name, upload.content).await
    }

    fn put_in_place(&self) -> io::Result<bool> {
        let parties = &self.files.parties;
        parties.place(&self.owner, &self.name, &self.draft.path, true)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // From here on it is given no place.
        if let Some(mirror) = &self.files.mirror {
            mirror.withdraw(self.content);
        }
        // One that has its place is counted there.
        if self.draft.path.try_exists().unwrap_or(true) {
            let bytes = self.bytes;
            let _ = self.files.parties.change(&self.owner, |used| used.remove(bytes));
        }
    }
}

/// Puts an input file into a job's folder: in its present state where the file system can, even if its name changes later.
/// A file that can be written, or that the job is to change, is copied by way of `draft`, since a job that changes its input changes no other's.
pub(crate) fn put_input_file(input: &Path, link: &Path, draft: &Path, is_changed: bool) -> io::Result<()> {
    let mode = fs::metadata(input)?.permissions().mode();
    if (is_changed || mode & 0o222 != 0) && fs::symlink_metadata(link).is_err() {
        if_file_is_there(fs::remove_file(draft))?;
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
        Ok(upload.put_in_place()?)
    }

    fn remove(files: &InputFiles, party: &str, name: &str) -> bool {
        files.parties.remove(&owner_of_party_folder(party), name).unwrap()
    }

    fn folder_of(files: &InputFiles, party: &str) -> PathBuf {
        files.parties.folder(&owner_of_party_folder(party))
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
        assert!(remove(&files, "physics", "a"));
        assert!(!remove(&files, "physics", "a"));
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
        assert!(remove(&files, "physics", "c"));
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
        assert_eq!(fs::read_dir(folder_of(&after, "physics")).unwrap().count(), 1);
    }

    #[test]
    fn a_party_has_a_bounded_number_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&folder, 10);
        for number in 0..FILES_MAX {
            fs::create_dir_all(folder_of(&files, "physics")).unwrap();
            fs::write(folder_of(&files, "physics").join(number.to_string()), "").unwrap();
        }
        assert!(put(&files, "physics", "more", b"").is_err());
        assert!(remove(&files, "physics", "7"));
        put(&files, "physics", "more", b"").unwrap();
    }
}
