//! The folder of uploaded files as a copy of those in the database, for processes that serve on one database with folders of
//! their own.
//!
//! Changes are taken over in the order of their numbers, one file at a time, and only here: an upload of this process is stored
//! in the database first, and then gets its place as every other change does, only that its content is here already. The number
//! of the last change is remembered beside the folders, with the id of the database whose numbers they are. Where it is
//! missing or of another database, the files that this database has never had are stored in it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use store::lasting_file::write_lasting_file;
use store::party_files::{self, FILE_PART_BYTES, PartyFile};
use store::{Store, hex};
use task::lock::lock;
use tokio::sync::Semaphore;
use tracing::{error, info};
use uuid::Uuid;

use super::FileEntry;
use super::party_folders::{Draft, PartyFolders};

/// The file that remembers the last change: no owner has this name.
const MARKER: &str = ".mirror";
/// The longest content of that file.
const MARKER_MAX: u64 = 256;
/// Files that are stored at a time: each takes a connection to the database.
const STORED_AT_ONCE: usize = 2;

/// What a use of the files comes to.
type Result<T, E = MirrorError> = std::result::Result<T, E>;

/// Why the folder could not be made a copy of the files in the database; worth another try.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MirrorError {
    /// The database refused, or is not available.
    #[error(transparent)]
    Store(Arc<store::Error>),
    /// The system refused.
    #[error(transparent)]
    System(Arc<io::Error>),
}

impl From<store::Error> for MirrorError {
    fn from(why: store::Error) -> Self {
        Self::Store(Arc::new(why))
    }
}

impl From<io::Error> for MirrorError {
    fn from(why: io::Error) -> Self {
        Self::System(Arc::new(why))
    }
}

/// Uploads of this process that are about to be stored, by the ids of their contents.
type Drafts = Arc<Mutex<HashMap<Uuid, PathBuf>>>;

/// The folders, and the database that they are a copy of.
#[derive(Debug)]
pub(super) struct Mirror {
    store: Store,
    folders: PartyFolders,
    drafts: Drafts,
    storing: Semaphore,
    /// How often it was asked to catch up.
    asked: AtomicU64,
    state: Arc<tokio::sync::Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The last change that was taken over; none before the first look.
    position: Option<Position>,
    /// The number that the marker has.
    noted: Option<i64>,
    /// The calls that the last look was for: all up to this one.
    served: u64,
    /// How it ended.
    failure: Option<MirrorError>,
}

/// The number of a change, and the database that it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    origin: Uuid,
    number: i64,
}

impl Mirror {
    pub(super) fn new(store: Store, folders: PartyFolders) -> Self {
        Self {
            store,
            folders,
            drafts: Drafts::default(),
            storing: Semaphore::new(STORED_AT_ONCE),
            asked: AtomicU64::new(0),
            state: Arc::default(),
        }
    }

    /// Takes over all that was stored before this call. Calls that come while another one looks share the next look.
    pub(super) async fn catch_up(self: &Arc<Self>) -> Result<()> {
        let own = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut state = Arc::clone(&self.state).lock_owned().await;
        if state.served >= own {
            return state.failure.clone().map_or(Ok(()), Err);
        }
        let all = self.asked.load(Ordering::SeqCst);
        let this = Arc::clone(self);
        // It goes on to its end where its caller has gone: a file that is just being put in its place must not come after a later
        // change of it.
        let look = task::spawn(async move {
            let done = this.take_over_changes(&mut state).await;
            (state.served, state.failure) = (all, done.clone().err());
            done
        });
        look.await.map_err(io::Error::other)?
    }

    /// Takes note of the draft of an upload that is about to be stored: it has all of its content, and lasts.
    pub(super) fn announce(&self, content: Uuid, draft: PathBuf) {
        lock(&self.drafts).insert(content, draft);
    }

    /// Forgets the draft of an upload, if it has no place by now.
    pub(super) fn withdraw(&self, content: Uuid) {
        lock(&self.drafts).remove(&content);
    }

    /// Stores an upload whose draft was announced, and gives it its place; answers whether it replaced a file.
    pub(super) async fn upload(self: &Arc<Self>, owner: &str, name: &str, content: Uuid) -> Result<bool> {
        let draft = lock(&self.drafts).get(&content).cloned().unwrap_or_default();
        let replaced = self.send((owner, name), content, draft, false).await?;
        self.catch_up().await?;
        Ok(replaced)
    }

    /// Removes a file; answers whether there was one.
    pub(super) async fn remove(self: &Arc<Self>, owner: &str, name: &str) -> Result<bool> {
        let removed = party_files::remove_party_file(&self.store, owner, name).await?;
        self.catch_up().await?;
        Ok(removed)
    }

    async fn take_over_changes(&self, state: &mut State) -> Result<()> {
        let mut at = match state.position {
            Some(position) => position,
            None => self.begin().await?,
        };
        state.position = Some(at);
        // A content that was not there, though the change that has it was the last one of its file.
        let mut missed = None;
        'pages: loop {
            let changes = party_files::party_files_after(&self.store, at.number).await?;
            if changes.is_empty() {
                break;
            }
            if party_files::party_file_changes(&self.store).await?.forgotten > at.number {
                self.remove_unlisted().await?;
            }
            for change in changes {
                if !self.take_over(&change).await? {
                    if missed != change.content {
                        // It has changed again meanwhile, and has another number now.
                        missed = change.content;
                        continue 'pages;
                    }
                    self.give_up(&change, "a part of it is missing").await?;
                }
                at.number = change.number;
                state.position = Some(at);
            }
        }
        if state.noted != Some(at.number) {
            self.blocking(move |folders| note_mirrored_position(folders, at))
                .await?;
            state.noted = Some(at.number);
        }
        Ok(())
    }

    /// The position from which on changes are taken over. Files of a folder that is no copy of this database are stored in it.
    async fn begin(&self) -> Result<Position> {
        let changes = party_files::party_file_changes(&self.store).await?;
        let origin = changes.origin;
        let noted = self.blocking(read_mirrored_position).await?;
        if let Some(noted) =
            noted.filter(|position| position.origin == origin && position.number <= changes.last)
        {
            self.remove_unlisted().await?;
            return Ok(noted);
        }
        let mut count = 0;
        for owner in self.blocking(PartyFolders::owners).await? {
            let listed = party_files::party_files_of(&self.store, &owner).await?;
            let listed: HashSet<String> = listed.into_iter().map(|file| file.name).collect();
            for name in self.names_other_than(&owner, listed).await? {
                let path = self.folders.file(&owner, &name);
                let sent = self.send((&owner, &name), Uuid::now_v7(), path, true);
                count += usize::from(sent.await?);
            }
        }
        if count > 0 {
            info!(count, "uploaded files of the data folder are in the database now");
        }
        Ok(Position { origin, number: 0 })
    }

    /// Removes files that the database does not have.
    async fn remove_unlisted(&self) -> Result<()> {
        for owner in self.blocking(PartyFolders::owners).await? {
            let listed = party_files::party_files_of(&self.store, &owner)
                .await?
                .into_iter();
            let listed = listed.filter(|file| file.content.is_some());
            let listed: HashSet<String> = listed.map(|file| file.name).collect();
            for name in self.names_other_than(&owner, listed).await? {
                let owner = owner.clone();
                self.blocking(move |folders| folders.remove(&owner, &name))
                    .await?;
            }
        }
        Ok(())
    }

    /// The names of an owner's files here that are not among these.
    async fn names_other_than(&self, owner: &str, listed: HashSet<String>) -> Result<Vec<String>> {
        let owner = owner.to_owned();
        let found = move |folders: &PartyFolders| {
            let names = folders.names(&owner).filter(|name| !listed.contains(name));
            Ok(names.collect())
        };
        self.blocking(found).await
    }

    /// Does here what a change has done; answers whether its content was there.
    async fn take_over(&self, change: &PartyFile) -> Result<bool> {
        let (owner, name) = (change.owner.clone(), change.name.clone());
        let Some(content) = change.content else {
            self.blocking(move |folders| folders.remove(&owner, &name))
                .await?;
            return Ok(true);
        };
        let (drafts, wanted) = (Arc::clone(&self.drafts), change.clone());
        let is_here = self.blocking(move |folders| {
            let mut drafts = lock(&drafts);
            if let Some(draft) = drafts.get(&content)
                && draft.is_file()
            {
                folders.place(&owner, &name, draft, true)?;
                drafts.remove(&content);
                return Ok(true);
            }
            drop(drafts);
            is_same_as_mirrored(&folders.file(&owner, &name), &wanted)
        });
        if is_here.await? {
            return Ok(true);
        }
        self.fetch(change, content).await
    }

    /// Brings the content of a file from the database to its place; answers whether it was there.
    async fn fetch(&self, change: &PartyFile, content: Uuid) -> Result<bool> {
        let owner = change.owner.clone();
        let mut draft = self.blocking(move |folders| folders.draft(&owner)).await?;
        let (mut digest, mut bytes) = (Sha256::new(), 0);
        for number in 0.. {
            if bytes >= change.bytes {
                break;
            }
            let Some(part) = party_files::party_file_part(&self.store, content, number).await? else {
                return Ok(false);
            };
            digest.update(&part);
            bytes += i64::try_from(part.len()).unwrap_or(i64::MAX);
            draft = self.blocking(move |_| write_mirrored_part(draft, &part)).await?;
        }
        if bytes != change.bytes || hex(&digest.finalize()) != change.sha256 {
            self.give_up(change, "it has another content than was stored")
                .await?;
            return Ok(true);
        }
        let change = change.clone();
        let place = move |folders: &PartyFolders| {
            draft.file.set_modified(time_of_mirrored(change.written))?;
            draft.file.sync_all()?;
            folders.place(&change.owner, &change.name, &draft.path, false)
        };
        self.blocking(place).await?;
        Ok(true)
    }

    /// Goes on without a file that the database has not whole: the others are needed.
    async fn give_up(&self, change: &PartyFile, why: &str) -> Result<()> {
        error!(
            owner = change.owner,
            file = change.name,
            "an uploaded file is lost: {why}"
        );
        let (owner, name) = (change.owner.clone(), change.name.clone());
        self.blocking(move |folders| folders.remove(&owner, &name))
            .await?;
        Ok(())
    }

    /// Stores a file in the database, a part at a time, in one transaction, perhaps only if the database has never had one of its
    /// owner and name. Answers whether it replaced one, or, in the second case, whether it was stored.
    async fn send(
        &self,
        (owner, name): (&str, &str),
        content: Uuid,
        path: PathBuf,
        only_unknown: bool,
    ) -> Result<bool> {
        // The semaphore is never closed.
        let _turn = self.storing.acquire().await;
        let opened = self.blocking(move |_| {
            let file = File::open(path)?;
            let entry = FileEntry::new(String::new(), &file.metadata()?);
            Ok((file, entry.modified))
        });
        let (mut file, written) = opened.await?;
        let (mut digest, mut bytes) = (Sha256::new(), 0);
        let mut incoming = party_files::begin_party_file(&self.store, content).await?;
        loop {
            let (rest, part) = self.blocking(move |_| read_part_to_mirror(file)).await?;
            file = rest;
            if part.is_empty() {
                break;
            }
            digest.update(&part);
            bytes += i64::try_from(part.len()).unwrap_or(i64::MAX);
            incoming.add(&part).await?;
        }
        let file = PartyFile {
            number: 0,
            owner: owner.to_owned(),
            name: name.to_owned(),
            content: Some(content),
            bytes,
            sha256: hex(&digest.finalize()),
            written,
        };
        Ok(if only_unknown {
            incoming.finish_unknown(file).await?
        } else {
            incoming.finish(file).await?
        })
    }

    /// Works on the folders off the async threads.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&PartyFolders) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let folders = self.folders.clone();
        let done = task::spawn_blocking(move || work(&folders)).await;
        Ok(done.map_err(io::Error::other)??)
    }
}

/// Whether a file is there with the content of a change and the time when it was written.
fn is_same_as_mirrored(path: &Path, change: &PartyFile) -> io::Result<bool> {
    let Some(mut file) = super::if_file_is_there(File::open(path))? else {
        return Ok(false);
    };
    let found = FileEntry::new(String::new(), &file.metadata()?);
    if i64::try_from(found.bytes) != Ok(change.bytes) || found.modified != change.written {
        return Ok(false);
    }
    let mut digest = Sha256::new();
    loop {
        let (rest, part) = read_part_to_mirror(file)?;
        if part.is_empty() {
            return Ok(hex(&digest.finalize()) == change.sha256);
        }
        digest.update(&part);
        file = rest;
    }
}

/// The next part of a file; empty at its end.
fn read_part_to_mirror(file: File) -> io::Result<(File, Vec<u8>)> {
    let mut part = Vec::with_capacity(FILE_PART_BYTES);
    let mut bounded = file.take(FILE_PART_BYTES as u64);
    bounded.read_to_end(&mut part)?;
    Ok((bounded.into_inner(), part))
}

fn write_mirrored_part(mut draft: Draft, part: &[u8]) -> io::Result<Draft> {
    draft.file.write_all(part)?;
    Ok(draft)
}

fn time_of_mirrored(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros.max(0).unsigned_abs())
}

/// Remembers the last change that was taken over, durably.
fn note_mirrored_position(folders: &PartyFolders, at: Position) -> io::Result<()> {
    fs::create_dir_all(folders.path())?;
    let line = format!("{} {}\n", at.origin, at.number);
    write_lasting_file(&folders.path().join(MARKER), line.as_bytes(), 0o600)
}

/// The last change that was remembered; none where it cannot be read.
fn read_mirrored_position(folders: &PartyFolders) -> io::Result<Option<Position>> {
    let Some(file) = super::if_file_is_there(File::open(folders.path().join(MARKER)))? else {
        return Ok(None);
    };
    let mut text = Vec::new();
    file.take(MARKER_MAX).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let parse = || {
        let (origin, number) = text.strip_suffix('\n')?.split_once(' ')?;
        Some(Position {
            origin: origin.parse().ok()?,
            number: number.parse().ok()?,
        })
    };
    Ok(parse())
}
