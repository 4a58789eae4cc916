//! API keys and portal sessions: rows only; `access` decides their meaning. Of a secret only its digest comes here.

use uuid::Uuid;

use crate::agreement::{Note, NoteKind};
use crate::clock::Micros;
use crate::store::database::Store;
use crate::store::engine::{Columns, Record, Result, record, statements};

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The id by which it is revoked.
    pub id: Uuid,
    /// SHA-256 of the secret, in lower-case hexadecimal.
    pub digest: String,
    /// The party that it belongs to.
    pub party: String,
    /// The word of its role.
    pub role: String,
    /// The name that its maker gave it.
    pub label: Option<String>,
    /// When it was made.
    pub created: Micros,
    /// From when on it is worth nothing.
    pub expires: Option<Micros>,
    /// When it was revoked.
    pub revoked: Option<Micros>,
}

/// A session and the key that it was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The key as it is now.
    pub key: KeyRow,
    /// From when on the session is worth nothing.
    pub expires: Micros,
}

impl Store {
    /// Stores a new key.
    ///
    /// # Errors
    /// `Error::Conflict` where its id or digest is taken, `Error::Unavailable`.
    pub async fn add_key(&self, key: &KeyRow) -> Result<()> {
        let label = key
            .label
            .as_deref()
            .map_or_else(String::new, |label| format!(": {label}"));
        let note = Note {
            at: key.created,
            kind: NoteKind::KeyAdded,
            subject: key.id,
            negotiation: None,
            party: Some(key.party.clone()),
            detail: format!("as {}{label}", key.role),
        };
        let values = key.values();
        let noted = self.write_noted(statements::INSERT_KEY, &values, &note);
        noted.await.map(drop)
    }

    /// Every key, oldest first: people make them one by one, so that they are never many.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn keys(&self) -> Result<Vec<KeyRow>> {
        self.read(statements::KEYS, &[], KeyRow::of).await
    }

    /// The key with this digest, whether or not it is still worth anything.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn key_by_digest(&self, digest: &str) -> Result<Option<KeyRow>> {
        self.read_one(statements::KEY_BY_DIGEST, &[digest.into()], KeyRow::of)
            .await
    }

    /// Whether a party has a key that was not revoked.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn has_key_of(&self, party: &str) -> Result<bool> {
        let values = [party.into()];
        let found = self.read_one(statements::PARTY_WITH_KEY, &values, |row| row.text("party"));
        Ok(found.await?.is_some())
    }

    /// Revokes a key; false where there is none with this id that was not revoked before. When this returns, no process takes it
    /// any more.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn revoke_key(&self, id: Uuid, now: Micros) -> Result<bool> {
        let values = [id.into(), now.into()];
        let note = Note {
            at: now,
            kind: NoteKind::KeyRevoked,
            subject: id,
            negotiation: None,
            party: None,
            detail: String::new(),
        };
        let revoked = self.write_noted(statements::REVOKE_KEY, &values, &note).await?;
        if revoked {
            self.await_key_listeners().await?;
        }
        Ok(revoked)
    }

    /// Opens a session with a key, and forgets the sessions that have expired at `now`. Of the key's own sessions, only the
    /// `most` that last longest stay.
    ///
    /// # Errors
    /// `Error::Conflict` where there is no such key, `Error::Unavailable`.
    pub async fn add_session(
        &self,
        digest: &str,
        key: Uuid,
        expires: Micros,
        now: Micros,
        most: u32,
    ) -> Result<()> {
        let mut transaction = self.begin().await?;
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
    pub async fn session(&self, digest: &str) -> Result<Option<SessionRow>> {
        self.read_one(statements::SESSION, &[digest.into()], read_session)
            .await
    }

    /// Ends a session; false where there is none.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn remove_session(&self, digest: &str) -> Result<bool> {
        Ok(self.write(statements::DELETE_SESSION, &[digest.into()]).await? == 1)
    }
}

record! {
    KeyRow: id, digest, party, role, label, created "created_us", expires "expires_us", revoked "revoked_us"
}

fn read_session(row: &Columns<'_>) -> Result<SessionRow> {
    Ok(SessionRow {
        key: KeyRow::of(row)?,
        expires: row.integer("session_expires_us")?,
    })
}
