//! Sessions of the portal, each opened with a key. Of a session's secret only its digest comes here.

use domain::agreement::{Note, NoteKind};
use domain::clock::Micros;
use uuid::Uuid;

use super::keys::{self, KeyRow};
use super::trail_lines::write_with_trail_line;
use crate::engine::{Columns, Error, Record, Result, Value, statements};
use crate::store::Store;

/// A session and the key that it was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The key as it is now.
    pub key: KeyRow,
    /// From when on the session is worth nothing.
    pub expires: Micros,
}

/// A session that is to be opened.
#[derive(Debug, Clone, Copy)]
pub struct NewSession<'a> {
    /// The digest of its secret.
    pub digest: &'a str,
    /// The key that it is opened with.
    pub key: Uuid,
    /// The address that the sign-in came from.
    pub address: &'a str,
    /// When.
    pub at: Micros,
    /// From when on it is worth nothing.
    pub expires: Micros,
}

/// Opens a session with a key, with its line in the audit trail, and forgets the sessions that have expired by then. Of the key's own
/// sessions, only the `most` that last longest stay.
///
/// # Errors
/// `Error::Conflict` where there is no such key, `Error::Unavailable`, `Error::Damaged`. No session is opened or ended then.
pub async fn add_portal_session(store: &Store, new: NewSession<'_>, most: u32) -> Result<()> {
    let key = keys::key(store, new.key).await?;
    let key = key.ok_or_else(|| Error::Conflict(format!("there is no key {}", new.key)))?;
    // The maker of a key chooses its label, so it stands last and quoted.
    let label = key.label.map_or_else(String::new, |label| format!(": {label:?}"));
    let detail = format!("from {}{label}", new.address);
    let note = Note {
        party: Some(key.party),
        ..Note::new(new.at, NoteKind::SignedIn, (new.key, None), detail)
    };
    let session = [new.digest.into(), new.key.into(), new.expires.into()];
    let now = [new.at.into()];
    let kept = [new.key.into(), most.into()];
    let writes: [(&str, &[Value<'_>]); 3] = [
        (statements::INSERT_SESSION, &session),
        (statements::FORGET_SESSIONS, &now),
        (statements::FORGET_OLDEST_SESSIONS, &kept),
    ];
    write_with_trail_line(store, &writes, &note).await.map(drop)
}

/// The session with this digest, whether or not it is still worth anything.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn portal_session(store: &Store, digest: &str) -> Result<Option<SessionRow>> {
    store
        .read_one(statements::SESSION, &[digest.into()], read_portal_session)
        .await
}

/// Has a session be worth something until an instant, if it is not for longer.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn extend_portal_session(store: &Store, digest: &str, expires: Micros) -> Result<()> {
    let values = [digest.into(), expires.into()];
    store.write(statements::EXTEND_SESSION, &values).await.map(drop)
}

/// Ends a session; false where there is none.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn remove_portal_session(store: &Store, digest: &str) -> Result<bool> {
    Ok(store.write(statements::DELETE_SESSION, &[digest.into()]).await? == 1)
}

fn read_portal_session(row: &Columns<'_>) -> Result<SessionRow> {
    Ok(SessionRow {
        key: KeyRow::of(row)?,
        expires: row.integer("session_expires_us")?,
    })
}
