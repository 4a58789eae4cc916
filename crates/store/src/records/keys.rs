//! API keys: rows only; `access` decides their meaning. Of a secret only its digest comes here.

use std::collections::HashMap;

use domain::access::Role;
use domain::agreement::{Money, Note, NoteKind};
use domain::clock::{Micros, second_of, time_in_words};
use uuid::Uuid;

use super::key_changes::await_key_change_listeners;
use super::trail_lines::write_with_trail_line;
use crate::engine::{Record, Result, Value, record, statements};
use crate::store::Store;

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The id by which it is revoked.
    pub id: Uuid,
    /// SHA-256 of the secret, in lower-case hexadecimal.
    pub digest: String,
    /// The party that it belongs to.
    pub party: String,
    /// The rights of its owner.
    pub role: Role,
    /// The name that its maker gave it.
    pub label: Option<String>,
    /// When it was made.
    pub created: Micros,
    /// From when on it is worth nothing.
    pub expires: Option<Micros>,
    /// When it was revoked.
    pub revoked: Option<Micros>,
    /// Whether it may only read.
    pub read_only: bool,
    /// The most that the agreements made with it may cost together.
    pub spending_cap: Option<Money>,
}

impl KeyRow {
    /// Whether it is worth something at an instant.
    pub fn works(&self, at: Micros) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| expires > at)
    }
}

/// Who changes a key, and when.
#[derive(Debug, Clone, Copy)]
pub struct KeyChange {
    /// The key of the operator that asked for it; none where it is done in the store itself.
    pub by: Option<Uuid>,
    /// When.
    pub at: Micros,
}

/// Stores a new key that an operator's key asked for, or none where it is made in the store itself.
///
/// # Errors
/// `Error::Conflict` where its id or digest is taken, `Error::Unavailable`.
pub async fn add_key(store: &Store, key: &KeyRow, by: Option<Uuid>) -> Result<()> {
    let label = key
        .label
        .as_deref()
        .map_or_else(String::new, |label| format!(": {label:?}"));
    let change = KeyChange { by, at: key.created };
    let reads = if key.read_only { ", for reading only" } else { "" };
    let cap = key
        .spending_cap
        .map_or_else(String::new, |cap| format!(", for at most {cap}"));
    // The maker of a key chooses its label, so it stands last and quoted.
    let detail = format!("as {}{reads}{cap}{label}", key.role);
    let note = Note {
        party: Some(key.party.clone()),
        ..note_of_changed_key(change, NoteKind::KeyAdded, key.id, &detail)
    };
    let values = key.values();
    write_with_trail_line(store, &[(statements::INSERT_KEY, &values)], &note)
        .await
        .map(drop)
}

/// Every key, oldest first: people make them one by one, so that they are never many.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn all_keys(store: &Store) -> Result<Vec<KeyRow>> {
    store.read(statements::KEYS, &[], KeyRow::of).await
}

/// The key with this digest, whether or not it is still worth anything.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn key_by_digest(store: &Store, digest: &str) -> Result<Option<KeyRow>> {
    store
        .read_one(statements::KEY_BY_DIGEST, &[digest.into()], KeyRow::of)
        .await
}

/// The keys of a party with a label that were not revoked, oldest first.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn keys_labelled(store: &Store, party: &str, label: &str) -> Result<Vec<KeyRow>> {
    store
        .read(
            statements::KEYS_LABELLED,
            &[party.into(), label.into()],
            KeyRow::of,
        )
        .await
}

/// Whether a party has a key that was not revoked.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn has_party_key(store: &Store, party: &str) -> Result<bool> {
    let values = [party.into()];
    let found = store.read_one(statements::PARTY_WITH_KEY, &values, |row| row.text("party"));
    Ok(found.await?.is_some())
}

/// The key with this id, whether or not it is still worth anything.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn key(store: &Store, id: Uuid) -> Result<Option<KeyRow>> {
    store.read_one(statements::KEY, &[id.into()], KeyRow::of).await
}

/// Revokes a key; false where there is none with this id that was not revoked before, or an operator's key asks for it and no
/// key of operators would work any more. When this returns, no process takes it any more.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn revoke_key(store: &Store, id: Uuid, change: KeyChange) -> Result<bool> {
    let note = note_of_changed_key(change, NoteKind::KeyRevoked, id, "");
    change_key(store, statements::REVOKE_KEY, &change.values(id), &note).await
}

/// Has a key expire at another time, or never; false where there is none with this id that works, or an operator's key asks
/// for it and the last key of operators would end earlier than it does. When this returns, every process knows it.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn expire_key(store: &Store, id: Uuid, expires: Option<Micros>, change: KeyChange) -> Result<bool> {
    let detail = expires.map_or_else(
        || "never".to_owned(),
        |at| format!("at {}", time_in_words(second_of(at))),
    );
    let note = note_of_changed_key(change, NoteKind::KeyExpires, id, &detail);
    let [key, now, last] = change.values(id);
    let values = [key, now, last, expires.into()];
    change_key(store, statements::EXPIRE_KEY, &values, &note).await
}

/// Gives a key that nobody signs in with another secret; false where there is none with this id that was not revoked.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn renew_key(store: &Store, id: Uuid, digest: &str, change: KeyChange) -> Result<bool> {
    let note = note_of_changed_key(change, NoteKind::KeyAdded, id, "with a new secret");
    let values = [id.into(), digest.into()];
    write_with_trail_line(store, &[(statements::RENEW_KEY, &values)], &note).await
}

async fn change_key(store: &Store, sql: &'static str, values: &[Value<'_>], note: &Note) -> Result<bool> {
    let changed = write_with_trail_line(store, &[(sql, values)], note).await?;
    if changed {
        await_key_change_listeners(store).await?;
    }
    Ok(changed)
}

/// What the agreements cost together that were made with keys that have a cap, by key, in millionths of its currency.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn spent_with_keys(store: &Store) -> Result<HashMap<Uuid, i64>> {
    let sums = store.read(statements::SPENT, &[], |row| {
        Ok((row.id("api_key")?, row.integer("sum_micros")?))
    });
    Ok(sums.await?.into_iter().collect())
}

impl KeyChange {
    /// The values of the statements that change a key: which, when, and whether it may be the last one of operators. Users who can
    /// open the store can make another.
    fn values(self, key: Uuid) -> [Value<'static>; 3] {
        [key.into(), self.at.into(), u32::from(self.by.is_none()).into()]
    }
}

/// The line of the trail about a changed key.
fn note_of_changed_key(change: KeyChange, kind: NoteKind, key: Uuid, detail: &str) -> Note {
    let by = change.by.map(|by| format!("by key {by}"));
    let parts = [Some(detail.to_owned()), by].into_iter().flatten();
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    Note::new(change.at, kind, (key, None), parts.join(", "))
}

record! {
    KeyRow: id, digest, party, role, label, created "created_us", expires "expires_us", revoked "revoked_us",
    read_only, spending_cap "cap_micros" "cap_currency"
}
