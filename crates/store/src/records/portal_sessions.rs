//! Sessions of the portal, each opened with a key. Of a session's secret only its digest comes here.

use domain::clock::Micros;
use uuid::Uuid;

use super::keys::KeyRow;
use crate::engine::{Columns, Record, Result, statements};
use crate::store::Store;

/// A session and the key that it was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The key as it is now.
    pub key: KeyRow,
    /// From when on the session is worth nothing.
    pub expires: Micros,
}

/// Opens a session with a key, and forgets the sessions that have expired at `now`. Of the key's own sessions, only the
/// `most` that last longest stay.
///
/// # Errors
/// `Error::Conflict` where there is no such key, `Error::Unavailable`.
pub async fn add_portal_session(
    store: &Store,
    digest: &str,
    key: Uuid,
    expires: Micros,
    now: Micros,
    most: u32,
) -> Result<()> {
    let mut transaction = store.begin().await?;
    let session = [digest.into(), key.into(), expires.into()];
    let kept = [key.into(), most.into()];
    transaction
        .execute(statements::FORGET_SESSIONS, &[now.into()])
        .await?;
    transaction.execute(statements::INSERT_SESSION, &session).await?;
    transaction
        .execute(statements::FORGET_OLDEST_SESSIONS, &kept)
        .await?;
    Ok(transaction.commit().await?)
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
