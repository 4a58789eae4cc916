//! Access: a caller shows an API key, or a session that was opened with one, and is then a party in a role. This module only
//! identifies the caller; the use cases decide which data a party may see.
//!
//! A key is looked up at every request. Where the store tells of changes, the result is kept for some seconds; revoking a key
//! still works at once. Look-ups go by the digest of the key. So the time that they take tells only about digests, which help no
//! attacker.

mod api_keys;
mod calendar_feed;
mod caller;
mod key_cache;
mod operator_key;
mod secret;
mod sessions;

use std::sync::Arc;

pub use api_keys::{KeyWish, NAME_LENGTH_MAX, NewKey};
pub use caller::{Caller, KeyLimits};
use key_cache::KeyCache;
pub use operator_key::{OPERATOR_KEY_FILE, OperatorKey, ensure_operator_key};
pub use secret::{Secret, hide_keys};
pub use sessions::{SESSION_IDLES, SESSION_LASTS, Session};

pub use domain::access::Role;
use domain::clock::{Clock, Micros};
use store::Store;
use store::keys;
pub use store::keys::KeyRow;
use store::portal_sessions::SessionRow;

/// The party of the operator key that is made at the first start.
pub const OPERATOR_PARTY: &str = "operator";

/// Why a key could not be made or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The name of a party or a label that cannot be one.
    #[error("{0}")]
    Invalid(String),
    /// No key of operators would work any more.
    #[error(
        "it is the last key of operators that works: make another one first, or use `bespeak key` in the store itself"
    )]
    LastOfOperators,
    /// The operator key's file cannot be read or written.
    #[error("cannot keep the operator key in {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The operating system has no randomness to give.
    #[error("no randomness: {0}")]
    Random(#[from] getrandom::Error),
}

/// Keys and sessions of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Access {
    store: Store,
    clock: Clock,
    known: Arc<KeyCache>,
    /// How long a key of operators lasts where its maker does not say.
    operators_last: Option<Micros>,
}

impl Access {
    /// The keys of `store`, at the time of `clock`.
    pub fn new(store: Store, clock: Clock) -> Self {
        Self {
            store,
            clock,
            known: Arc::default(),
            operators_last: None,
        }
    }

    /// Has keys of operators last for this long where their makers do not say; without an end where it is none.
    #[must_use]
    pub fn with_operators_for(self, operators_last: Option<Micros>) -> Self {
        Self {
            operators_last,
            ..self
        }
    }

    /// The caller with this key; `None` where it is none of ours, or expired or revoked.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn authenticate(&self, bearer: &str) -> Result<Option<Caller>, store::Error> {
        let Some(secret) = Secret::parse_key(bearer) else {
            return Ok(None);
        };
        let digest = secret.digest();
        let read = async {
            let expires = Micros::MAX;
            let key = keys::key_by_digest(&self.store, &digest).await?;
            Ok(key.map(|key| SessionRow { key, expires }))
        };
        match self.look_up(&digest, read).await? {
            Some(row) if secret.has_digest(&row.key.digest) => {
                Ok(Caller::of_key(row.key, self.clock.micros()))
            }
            _ => Ok(None),
        }
    }

    /// The row of a digest: the one that is known, or the one that is read then.
    async fn look_up(
        &self,
        digest: &str,
        read: impl Future<Output = Result<Option<SessionRow>, store::Error>>,
    ) -> Result<Option<SessionRow>, store::Error> {
        let asked = match self.known.get(digest) {
            Ok(row) => return Ok(Some(row)),
            Err(asked) => asked,
        };
        let found = read.await?;
        if let Some(row) = &found {
            self.known.keep(asked, digest.to_owned(), row.clone());
        }
        Ok(found)
    }
}
