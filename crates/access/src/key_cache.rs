//! Keys and sessions that were looked up lately, so that not every request asks the database. They are kept only while changes
//! are heard of, and never longer than the store allows. Any change forgets all of them.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use store::key_changes::{self, KEYS_KEPT};
use store::portal_sessions::SessionRow;
use task::lock::lock;
use task::note_success;
use tokio_util::sync::CancellationToken;

use super::Access;

/// The most that are kept. Far fewer keys are in use within some seconds.
const MOST: usize = 4_096;

/// How long to wait before it is tried again to hear of changes.
const RETRY: Duration = Duration::from_secs(1);

/// The results of look-ups, by digest; a key is a session that lasts.
#[derive(Debug, Default)]
pub(super) struct KeyCache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether changes are heard of.
    listening: bool,
    /// How often it was forgotten.
    forgotten: u64,
    rows: HashMap<String, (Instant, SessionRow)>,
}

/// When something was looked up that was not known.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnknownSession {
    forgotten: u64,
    at: Instant,
}

impl KeyCache {
    /// The row of a digest, or the time from which it is looked up.
    pub(super) fn get(&self, digest: &str) -> Result<SessionRow, UnknownSession> {
        let inner = lock(&self.inner);
        match inner.rows.get(digest) {
            Some((read, row)) if read.elapsed() < KEYS_KEPT => Ok(row.clone()),
            _ => Err(UnknownSession {
                forgotten: inner.forgotten,
                at: Instant::now(),
            }),
        }
    }

    /// Keeps the result, unless something has changed since it was asked for.
    pub(super) fn keep(&self, asked: UnknownSession, digest: String, row: SessionRow) {
        let mut inner = lock(&self.inner);
        if !inner.listening || inner.forgotten != asked.forgotten {
            return;
        }
        if inner.rows.len() >= MOST {
            inner.rows.clear();
        }
        inner.rows.insert(digest, (asked.at, row));
    }

    /// Forgets everything; afterwards it is kept again only where changes are heard of.
    pub(super) fn forget(&self, listening: bool) {
        let mut inner = lock(&self.inner);
        inner.rows.clear();
        inner.forgotten += 1;
        inner.listening = listening;
    }

    /// Forgets everything after a change of our own.
    pub(super) fn changed(&self) {
        let listening = lock(&self.inner).listening;
        self.forget(listening);
    }
}

impl Access {
    /// Listens for changes of keys until it is stopped, so that results of look-ups may be kept for a while.
    pub async fn hear_of_key_changes(self, stop: CancellationToken) {
        let Some(mut changes) = key_changes::key_change_listener(&self.store) else {
            return;
        };
        let hear = async {
            loop {
                let heard = changes.heard().await;
                self.known.forget(heard.is_ok());
                match heard {
                    Ok(()) => note_success(),
                    Err(why) => {
                        tracing::warn!(error = %why, "no notifications of changes of keys; each request looks its key up");
                        tokio::time::sleep(RETRY).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(hear).await;
        self.known.forget(false);
    }
}
