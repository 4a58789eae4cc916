//! The folders with the files of parties, and the use that each party makes of its quota.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use domain::catalogue::is_file_name;
use sha2::{Digest, Sha256};
use task::lock::lock;
use uuid::Uuid;

use super::if_file_is_there;

/// The prefix of the name of an unfinished file: no file may have such a name.
const DRAFT: char = '.';

/// Folders, each named with the digest of its owner's name. Clones share their knowledge of the use.
#[derive(Debug, Clone)]
pub(super) struct PartyFolders {
    path: PathBuf,
    used: Arc<Mutex<HashMap<String, PartyFolderUsage>>>,
}

/// The use of a party, uploads under way included.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PartyFolderUsage {
    pub(super) bytes: u64,
    pub(super) files: usize,
}

impl PartyFolderUsage {
    /// Counts one more file of this size.
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.files += 1;
    }

    /// Counts a file of this size no more.
    pub(super) fn remove(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.files = self.files.saturating_sub(1);
    }
}

/// An unfinished file, which goes when this is dropped, unless it has got its place.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The owner of a party's files: a name of a party may be long and have any characters, that of a folder may not.
pub(super) fn owner_of_party_folder(party: &str) -> String {
    store::hex(&Sha256::digest(party.as_bytes()))
}

impl PartyFolders {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            used: Arc::default(),
        }
    }

    /// The folder of all of them.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of an owner's files.
    pub(super) fn folder(&self, owner: &str) -> PathBuf {
        self.path.join(owner)
    }

    /// The place of an owner's file.
    pub(super) fn file(&self, owner: &str, name: &str) -> PathBuf {
        self.folder(owner).join(name)
    }

    /// The owners with a folder.
    pub(super) fn owners(&self) -> io::Result<Vec<String>> {
        let mut owners = Vec::new();
        for entry in if_file_is_there(fs::read_dir(&self.path))?.into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            let is_digest = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_digest && entry.file_type()?.is_dir() {
                owners.push(name);
            }
        }
        owners.sort_unstable();
        Ok(owners)
    }

    /// The names of an owner's files.
    pub(super) fn names(&self, owner: &str) -> impl Iterator<Item = String> + use<> {
        names_in_party_folder(&self.folder(owner))
    }

    /// Begins a file. Its owner's use is counted by now, so that the count does not take it for one that a crash has left.
    pub(super) fn draft(&self, owner: &str) -> io::Result<Draft> {
        let folder = self.folder(owner);
        if !folder.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            // Its name lasts, and that of the folder around it.
            File::open(&self.path)?.sync_all()?;
            self.path
                .parent()
                .map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
        }
        self.change(owner, |_| ())?;
        let path = folder.join(format!("{DRAFT}{}", Uuid::now_v7()));
        let file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o400)
            .open(&path)?;
        Ok(Draft { file, path })
    }

    /// Puts a draft in its place, durably, and counts it, unless it has been counted since it began; answers whether it
    /// replaced a file. Where this fails, nothing has changed.
    pub(super) fn place(&self, owner: &str, name: &str, draft: &Path, is_counted: bool) -> io::Result<bool> {
        // Opened before anything changes: afterwards there might be no descriptor for it.
        let folder = File::open(self.folder(owner))?;
        let target = self.file(owner, name);
        let bytes = fs::metadata(draft)?.len();
        let replaced = self.change(owner, |used| {
            let replaced = fs::metadata(&target).ok().map(|meta| meta.len());
            fs::rename(draft, &target)?;
            if !is_counted {
                used.add(bytes);
            }
            if let Some(bytes) = replaced {
                used.remove(bytes);
            }
            Ok::<_, io::Error>(replaced.is_some())
        })??;
        folder.sync_all()?;
        Ok(replaced)
    }

    /// Removes a file, durably; answers whether there was one.
    pub(super) fn remove(&self, owner: &str, name: &str) -> io::Result<bool> {
        let path = self.file(owner, name);
        if !is_file_name(name) || !path.is_file() {
            return Ok(false);
        }
        let folder = File::open(self.folder(owner))?;
        let removed = self.change(owner, |used| {
            let bytes = fs::metadata(&path)?.len();
            let removed = if_file_is_there(fs::remove_file(&path))?;
            if removed.is_some() {
                used.remove(bytes);
            }
            Ok::<_, io::Error>(removed.is_some())
        })??;
        folder.sync_all()?;
        Ok(removed)
    }

    /// Changes the use of an owner. It is counted when it is first asked for, and files that a crash left behind are
    /// removed then.
    pub(super) fn change<T>(
        &self,
        owner: &str,
        change: impl FnOnce(&mut PartyFolderUsage) -> T,
    ) -> io::Result<T> {
        let mut owners = lock(&self.used);
        if !owners.contains_key(owner) {
            let used = count_files_of_party_folder(&self.folder(owner))?;
            owners.insert(owner.to_owned(), used);
        }
        Ok(change(owners.entry(owner.to_owned()).or_default()))
    }
}

/// The content of an owner's folder; files that a crash cut off are removed.
fn count_files_of_party_folder(folder: &Path) -> io::Result<PartyFolderUsage> {
    let mut used = PartyFolderUsage::default();
    for entry in if_file_is_there(fs::read_dir(folder))?.into_iter().flatten() {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(DRAFT) {
            fs::remove_file(entry.path())?;
        } else {
            used.add(entry.metadata()?.len());
        }
    }
    Ok(used)
}

/// Names of the files of a folder that offers can use; none where it cannot be read.
pub(super) fn names_in_party_folder(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_file_name(name))
}
