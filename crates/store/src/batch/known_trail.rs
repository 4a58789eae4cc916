//! The end of the audit trail that this process knows to be stored. It was told so by a commit, or has read it. A database that does not
//! have this line any more has gone back: to a snapshot of its disk, to a server that has lost commits, to a backup. What was promised
//! since is not in it, so nothing may be decided on it.
//!
//! The end is kept in a small file, too, so that the next process knows it. The file is written over without a wait for the disk: it
//! outlives the process, and after a power cut it may be older than the database, which says less and nothing wrong.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::clock::Clock;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::trail::Trail;
use crate::engine::connection::Pool;
use crate::engine::{Connection, Error, Result, hex, statements};
use crate::signed_heads::Head;

/// Characters of the kept end, which is filled with spaces: a shorter text leaves nothing of a longer one.
const KEPT: usize = 192;
/// Characters of the sum behind it.
const SUM: usize = 16;

/// What a process knows of the trail, and the first fault that it has found.
#[derive(Default)]
pub(crate) struct KnownTrail {
    end: Mutex<KnownTrailEnd>,
    /// How often it was found out what became of a batch; none where that is not known.
    settled: Mutex<Option<i64>>,
    damage: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct KnownTrailEnd {
    trail: Trail,
    file: Option<File>,
}

impl KnownTrail {
    /// The end as far as it is known.
    pub(crate) fn trail(&self) -> Trail {
        self.end().trail.clone()
    }

    /// Takes note of an end that is stored; one before that says nothing.
    pub(crate) fn note(&self, trail: Trail) {
        let mut end = self.end();
        if trail.number > end.trail.number {
            end.trail = trail;
            end.keep();
        }
    }

    /// How often it was found out what became of a batch, as the lease's row was last seen to have it; none where it was not seen.
    pub(super) fn settled(&self) -> Option<i64> {
        *self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of that number, which stands in a row that was locked.
    pub(super) fn note_settled(&self, settled: i64) {
        *self.settled.lock().unwrap_or_else(PoisonError::into_inner) = Some(settled);
    }

    /// Keeps the end in a file from now on.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub(crate) fn keep_in(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(path)?;
        let mut end = self.end();
        end.file = Some(file);
        if end.trail.number > 0 {
            end.keep();
        }
        Ok(())
    }

    /// Hears of what was found.
    pub(crate) fn damage(&self) -> watch::Receiver<Option<String>> {
        self.damage.subscribe()
    }

    /// Notes a fault, unless there was one before.
    pub(crate) fn note_damage(&self, what: &str) {
        self.damage.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert_with(|| what.to_owned());
            is_first
        });
    }

    /// Makes sure that nothing was found so far.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the first fault.
    pub(crate) fn refuse_damaged(&self) -> Result<()> {
        match &*self.damage.borrow() {
            Some(what) => Err(Error::Damaged(what.clone())),
            None => Ok(()),
        }
    }

    fn end(&self) -> MutexGuard<'_, KnownTrailEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownTrailEnd {
    /// Writes the end over the one before. Where that fails the file says less than it could.
    fn keep(&self) {
        let Some(file) = &self.file else { return };
        let Trail { number, hash, .. } = self.trail.clone();
        let at = Clock::system().micros();
        let head = serde_json::to_string(&Head { number, hash, at }).unwrap_or_default();
        let head = format!("{head:<KEPT$}");
        let text = format!("{head}\n{}\n", sum_of_known_trail(&head));
        if let Err(why) = file.write_all_at(text.as_bytes(), 0) {
            tracing::warn!(%why, "the end of the audit trail cannot be kept in the data folder");
        }
    }
}

/// The end that another process has kept in a file; none where there is no such file, or it is not whole.
///
/// # Errors
/// Where the file cannot be read.
pub fn read_known_trail_end(path: &Path) -> io::Result<Option<Head>> {
    let kept = match fs::read(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    // A power cut may leave what is no text: the sum says that it is none of ours.
    let text = String::from_utf8_lossy(&kept);
    let mut lines = text.lines();
    let (head, sum_of_head) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let is_whole = sum_of_known_trail(head) == sum_of_head;
    Ok(is_whole
        .then(|| serde_json::from_str(head.trim_end()).ok())
        .flatten())
}

fn sum_of_known_trail(head: &str) -> String {
    let mut sum = hex(&Sha256::digest(head));
    sum.truncate(SUM);
    sum
}

/// Whether it is seen at once that an end goes on from another.
pub(crate) fn is_same_end(known: &Trail, stored: &Trail) -> bool {
    known.number == 0 || (known.number, &known.hash) == (stored.number, &stored.hash)
}

/// Makes sure that a stored end, which was read after the other one was known, goes on from that one: the trail still has its line.
///
/// # Errors
/// [`Error::Damaged`] where it has not, and those of reading.
pub(crate) async fn confirm_known_trail_end(
    connection: &mut Connection,
    known: &Trail,
    stored: &Trail,
) -> Result<()> {
    if is_same_end(known, stored) {
        return Ok(());
    }
    if stored.number > known.number {
        let values = [known.number.into()];
        let found = connection.read(statements::LINE_HASH, &values, |row| row.text("hash"));
        if found.await?.contains(&known.hash) {
            return Ok(());
        }
    }
    Err(Error::Damaged(format!(
        "it has gone back: line {} of the audit trail was stored and is not there; the trail ends with line {}",
        known.number, stored.number
    )))
}

/// Makes sure that a stored end goes on from the known one. A connection is taken only where that is not seen at once.
///
/// # Errors
/// Those of [`confirm_known_trail_end`].
pub(super) async fn confirm_known_trail_end_by_pool(
    readers: &Pool,
    known: &Trail,
    stored: &Trail,
) -> Result<()> {
    if is_same_end(known, stored) {
        return Ok(());
    }
    let mut connection = readers.acquire().await?;
    confirm_known_trail_end(&mut connection, known, stored).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(number: i64) -> Trail {
        Trail {
            number,
            hash: format!("hash {number}"),
            ..Trail::default()
        }
    }

    #[test]
    fn the_latest_end_is_kept_and_half_a_file_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trail-end");
        assert_eq!(read_known_trail_end(&path).unwrap(), None);
        let known = KnownTrail::default();
        known.note(end(7));
        known.keep_in(&path).unwrap();
        let kept = || {
            read_known_trail_end(&path)
                .unwrap()
                .map(|head| (head.number, head.hash))
        };
        assert_eq!(kept(), Some((7, "hash 7".to_owned())));
        known.note(end(1_000_000));
        known.note(end(9));
        assert_eq!(kept(), Some((1_000_000, "hash 1000000".to_owned())));
        // After a restore the numbers are lower.
        let restored = KnownTrail::default();
        restored.note(end(3));
        restored.keep_in(&path).unwrap();
        assert_eq!(kept(), Some((3, "hash 3".to_owned())));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(kept(), None);
        fs::write(&path, [0xff_u8; 210]).unwrap();
        assert_eq!(kept(), None);
    }

    #[test]
    fn the_first_damage_is_told_and_stays() {
        let known = KnownTrail::default();
        let hears = known.damage();
        known.refuse_damaged().unwrap();
        known.note_damage("first");
        known.note_damage("second");
        assert_eq!(hears.borrow().as_deref(), Some("first"));
        let refused = known.refuse_damaged().unwrap_err();
        assert!(refused.to_string().ends_with("first"), "{refused}");
    }
}
