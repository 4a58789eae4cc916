//! The files of a SQLite database, as they were opened. A program that has a file open goes on with it where the file was removed,
//! replaced or moved, and nothing that it stores then is there after its end. So it is looked at each commit whether the names still
//! lead to the files that are open.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::Mutex;

use super::error::{Error, Result, silent_database_error};

/// What SQLite adds to the name of the file: nothing, for its log, and for the index of the log that processes share.
const ENDS: [&str; 3] = ["", "-wal", "-shm"];
/// What is added to the name for a copy of the open files, and while it is being written.
const RESCUED: &str = ".rescued";
const RESCUING: &str = ".rescuing";
/// Writes a copy of the database as this connection sees it to another file, which is empty.
const COPY_TO_FILE: &str = "VACUUM INTO $1";

/// The action where a SQLite file does not exist.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IfMissing {
    Create,
    Refuse,
}

/// The files of a database that is open.
pub(crate) struct DatabaseFiles {
    files: [OpenFile; 3],
    /// A connection that is open for as long as the database is: the last one that is closed takes the log away, which then would be
    /// another file.
    anchor: Mutex<Option<SqliteConnection>>,
}

struct OpenFile {
    path: PathBuf,
    /// Device and number of the file, once it is there.
    id: OnceLock<(u64, u64)>,
}

impl DatabaseFiles {
    /// The files of the database at a real path, which the connection has open.
    pub(super) fn of(path: &Path, anchor: SqliteConnection) -> Self {
        let files = ENDS.map(|end| OpenFile {
            path: database_file_with_end(path, end),
            id: OnceLock::new(),
        });
        let files = Self {
            files,
            anchor: Mutex::new(Some(anchor)),
        };
        // Takes note of those that are there by now.
        let _ = files.confirm();
        files
    }

    /// Makes sure that each name still leads to the file that is open. A few calls of the system, without a look at the disk.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the name.
    pub(crate) fn confirm(&self) -> Result<()> {
        for OpenFile { path, id } in &self.files {
            let found = match fs::metadata(path) {
                Ok(found) => Some((found.dev(), found.ino())),
                Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
                // Not to be told now says nothing of the file.
                Err(_) => continue,
            };
            let what = match (id.get(), found) {
                (None, None) => continue,
                (None, Some(found)) => {
                    let _ = id.set(found);
                    continue;
                }
                (Some(known), Some(found)) if *known == found => continue,
                (Some(_), None) => "was removed or moved",
                (Some(_), Some(_)) => "is another file than the one that is open",
            };
            let what = format!("the database file {} {what} under the service", path.display());
            return Err(Error::Damaged(what));
        }
        Ok(())
    }

    /// Writes what the open files have to a new file beside the place of the database, lasting, and answers with its name. A file has
    /// such a name only once it is whole.
    ///
    /// # Errors
    /// Where the file cannot be written; a later try may succeed.
    pub(crate) async fn rescue(&self) -> Result<PathBuf> {
        let path = &self.files[0].path;
        let draft = database_file_with_end(path, RESCUING);
        let failed = |why| Error::Unavailable(Box::new(sqlx::Error::Io(why)));
        // One that a failed try has left.
        if let Err(why) = fs::remove_file(&draft)
            && why.kind() != ErrorKind::NotFound
        {
            return Err(failed(why));
        }
        let mut options = OpenOptions::new();
        let options = options.create_new(true).write(true).mode(0o600);
        options.open(&draft).map_err(failed)?;
        let mut anchor = self.anchor.lock().await;
        // Any other connection may be a new one, to what has the name now.
        let anchor = anchor.as_mut().ok_or_else(silent_database_error)?;
        let copied = sqlx::query(COPY_TO_FILE).bind(draft.display().to_string());
        copied.execute(anchor).await?;
        let written = OpenOptions::new().write(true).open(&draft);
        written.and_then(|file| file.sync_all()).map_err(failed)?;
        let copy = free_name_for_rescued_files(path);
        fs::rename(&draft, &copy).map_err(failed)?;
        let folder = copy.parent().unwrap_or(Path::new("/"));
        // The copy is whole and has its name: another one beside it would be no safer, and would fill the disk.
        if let Err(why) = File::open(folder).and_then(|folder| folder.sync_all()) {
            tracing::error!(file = %copy.display(), %why, "a power cut may take the name of the rescued file");
        }
        Ok(copy)
    }

    /// Lets the files go.
    pub(super) async fn close(&self) {
        if let Some(anchor) = self.anchor.lock().await.take() {
            // What fails here has failed for the pool, too: the log stays beside the file then, and belongs to it.
            let _ = anchor.close().await;
        }
    }
}

/// Creates the file where it is missing, so that it is private from its first moment; SQLite gives its log the same
/// permissions. Answers with the file's real path: two names of one file must not be two locks.
pub(super) fn create_database_file(path: &Path, missing: IfMissing) -> io::Result<PathBuf> {
    OpenOptions::new()
        .create(matches!(missing, IfMissing::Create))
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)?;
    path.canonicalize()
}

/// The first name for a copy of a database file that no earlier copy has.
fn free_name_for_rescued_files(path: &Path) -> PathBuf {
    let mut copy = database_file_with_end(path, RESCUED);
    let mut number: u32 = 1;
    while copy.exists() {
        number += 1;
        copy = database_file_with_end(path, &format!("{RESCUED}-{number}"));
    }
    copy
}

fn database_file_with_end(path: &Path, end: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(end);
    path.into()
}
