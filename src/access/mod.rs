//! Access: a caller shows an API key, or a session that was opened with one, and is then a party in a role. This module only
//! identifies the caller; the use cases decide which data a party may see.
//!
//! A key is looked up at every request. Where the store tells of changes, the result is kept for some seconds; revoking a key
//! still works at once. Look-ups go by the digest of the key. So the time that they take tells only about digests, which help no
//! attacker.
//!
//! The secret address of a person's calendar belongs to the key that the person signs in with, and is made of a key of its own, for
//! reading only, whose secret is never given out. So the address is worth nothing but this calendar, is in the list of keys, can be
//! shown again, and is over with either key.

mod key_cache;
mod operator_key;
mod secret;

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use key_cache::KeyCache;
pub use operator_key::{OPERATOR_KEY_FILE, OperatorKey};
pub use secret::{Secret, hide_keys};

use address::is_hidden;
pub use domain::access::Role;
use domain::agreement::{Money, Spender};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use store::Store;
pub use store::keys::KeyRow;
use store::keys::{self, KeyChange};
use store::portal_sessions::{self, SessionRow};

/// How long a portal session lasts at most, in microseconds: a working day and some.
pub const SESSION_LASTS: Micros = 12 * 60 * 60 * MICROS_PER_SECOND;
/// How long it lasts without a request.
pub const SESSION_IDLES: Micros = 2 * 60 * 60 * MICROS_PER_SECOND;
/// How often it is stored at most that it was used.
const USE_NOTED_EVERY: Micros = 5 * 60 * MICROS_PER_SECOND;
/// Sessions of one key at a time; signing in once more ends the oldest.
const SESSIONS_PER_KEY: u32 = 32;
/// The longest name of a party, and the longest label of a key, in characters.
pub const NAME_LENGTH_MAX: usize = 100;
/// The beginning of the label of a calendar's key; the id of its owner's key follows.
const FEED_LABEL: &str = "calendar feed of key ";
/// Hexadecimal digits of the id in the secret of a calendar.
const ID_DIGITS: usize = 32;
/// The party of the operator key that is made at the first start.
pub const OPERATOR_PARTY: &str = "operator";

/// What the owner of a key may not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyLimits {
    /// Whether it may only read.
    pub read_only: bool,
    /// The most that the agreements made with it may cost together.
    pub spending_cap: Option<Money>,
}

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The party that it acts for.
    pub party: String,
    /// Its rights.
    pub role: Role,
    /// The key that it showed, now or when it signed in.
    pub key: Uuid,
    /// The limits of that key.
    pub limits: KeyLimits,
    /// When that key expires, where it does.
    pub expires: Option<Micros>,
}

/// A key that was just made: the only time that its secret is known.
#[derive(Debug)]
pub struct NewKey {
    /// The key.
    pub info: KeyRow,
    /// The text that its owner sends.
    pub secret: Secret,
}

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct KeyWish {
    /// The party that it identifies.
    pub party: String,
    /// The rights of its owner.
    pub role: Role,
    /// A name for it.
    pub label: Option<String>,
    /// From when on it is worth nothing.
    pub expires: Option<Micros>,
    /// What its owner may not do.
    pub limits: KeyLimits,
}

/// A portal session that was just opened.
#[derive(Debug)]
pub struct Session {
    /// The value of the cookie.
    pub cookie: Secret,
    /// The value that every form of the session must bring back.
    pub csrf: Secret,
    /// Until when it lasts without a request.
    pub expires: Micros,
}

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
            Some(row) if secret.has_digest(&row.key.digest) => Ok(self.caller(row.key)),
            _ => Ok(None),
        }
    }

    /// Makes a key for a party, as the key `by` of an operator has asked; in the store itself nobody asks.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the party or the label is no name, or the key would be worth nothing from the start.
    pub async fn add_key(&self, mut wish: KeyWish, by: Option<Uuid>) -> Result<NewKey, Error> {
        wish.check_names()?;
        self.check_expiry(wish.expires)?;
        if wish.role == Role::Operator && wish.expires.is_none() {
            let lasts = self.operators_last;
            wish.expires = lasts.map(|lasts| self.clock.micros().saturating_add(lasts));
        }
        let secret = Secret::key()?;
        let info = self.store_key(&secret, wish, by).await?;
        Ok(NewKey { info, secret })
    }

    fn check_expiry(&self, expires: Option<Micros>) -> Result<(), Error> {
        if expires.is_some_and(|expires| expires <= self.clock.micros()) {
            return Err(Error::Invalid("the key would have expired already".into()));
        }
        Ok(())
    }

    /// Every key that was ever made, oldest first.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, store::Error> {
        keys::all_keys(&self.store).await
    }

    /// A key.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn key(&self, id: Uuid) -> Result<Option<KeyRow>, store::Error> {
        keys::key(&self.store, id).await
    }

    /// What the agreements cost together that were made with keys that have a cap, by key, in millionths of its currency.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn spent(&self) -> Result<HashMap<Uuid, i64>, store::Error> {
        keys::spent_with_keys(&self.store).await
    }

    /// Makes a key and its sessions worth nothing from now on, as the key `by` of an operator has asked; false where there is no
    /// such key, or it was revoked before.
    ///
    /// # Errors
    /// [`Error::LastOfOperators`] where an operator has asked for it, and those of the store.
    pub async fn revoke(&self, id: Uuid, by: Option<Uuid>) -> Result<bool, Error> {
        let at = self.clock.micros();
        let revoked = keys::revoke_key(&self.store, id, KeyChange { by, at }).await;
        self.known.changed();
        self.check_change_of_key(id, revoked?, |key| key.revoked.is_none())
            .await
    }

    /// Has a key be worth nothing from another time on, or never, as the key `by` of an operator has asked; false where there is no
    /// such key that works.
    ///
    /// # Errors
    /// [`Error::Invalid`] where that time is over, [`Error::LastOfOperators`] where an operator has asked that the last key of
    /// operators end earlier than it does, and those of the store.
    pub async fn set_expiry(
        &self,
        id: Uuid,
        expires: Option<Micros>,
        by: Option<Uuid>,
    ) -> Result<bool, Error> {
        self.check_expiry(expires)?;
        let at = self.clock.micros();
        let changed = keys::expire_key(&self.store, id, expires, KeyChange { by, at }).await;
        self.known.changed();
        self.check_change_of_key(id, changed?, |key| key.works(at)).await
    }

    /// Whether a key was changed. If one that could be was not, it is the last of operators.
    async fn check_change_of_key(
        &self,
        id: Uuid,
        is_changed: bool,
        could_be: impl FnOnce(&KeyRow) -> bool,
    ) -> Result<bool, Error> {
        if !is_changed && self.key(id).await?.as_ref().is_some_and(could_be) {
            return Err(Error::LastOfOperators);
        }
        Ok(is_changed)
    }

    /// Opens a session with a key; `None` where the key is worth nothing, or is for a program that watches.
    ///
    /// # Errors
    /// Those of the store, and where there is no randomness.
    pub async fn sign_in(&self, bearer: &str) -> Result<Option<Session>, Error> {
        let caller = self.authenticate(bearer).await?;
        let Some(caller) = caller.filter(|caller| caller.role != Role::Monitor) else {
            return Ok(None);
        };
        let now = self.clock.micros();
        let cookie = Secret::session(now)?;
        let expires = now.saturating_add(SESSION_IDLES);
        portal_sessions::add_portal_session(
            &self.store,
            &cookie.digest(),
            caller.key,
            expires,
            now,
            SESSIONS_PER_KEY,
        )
        .await?;
        // It may have ended the oldest.
        self.known.changed();
        Ok(Some(Session {
            csrf: csrf_token_of_session(&cookie),
            cookie,
            expires,
        }))
    }

    /// The caller of a session's cookie, and the value that its forms must bring back ([`Secret::matches`]); `None` where the session
    /// has ended, or its key has.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn session(&self, cookie: &str) -> Result<Option<(Caller, Secret)>, store::Error> {
        let Some(cookie) = Secret::parse_session(cookie) else {
            return Ok(None);
        };
        let (digest, now) = (cookie.digest(), self.clock.micros());
        let ends = cookie.begun().saturating_add(SESSION_LASTS);
        match self
            .look_up(&digest, portal_sessions::portal_session(&self.store, &digest))
            .await?
        {
            Some(row) if row.expires > now && ends > now => {
                let expires = now.saturating_add(SESSION_IDLES).min(ends);
                if expires - row.expires >= USE_NOTED_EVERY {
                    portal_sessions::extend_portal_session(&self.store, &digest, expires).await?;
                }
                let caller = self.caller(row.key);
                Ok(caller.map(|caller| (caller, csrf_token_of_session(&cookie))))
            }
            _ => Ok(None),
        }
    }

    /// Ends a session, if it is one.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn sign_out(&self, cookie: &str) -> Result<(), store::Error> {
        if let Some(cookie) = Secret::parse_session(cookie) {
            portal_sessions::remove_portal_session(&self.store, &cookie.digest()).await?;
            self.known.changed();
        }
        Ok(())
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

    /// The caller of a key, if the key is valid now.
    fn caller(&self, key: KeyRow) -> Option<Caller> {
        key.works(self.clock.micros()).then_some(Caller {
            party: key.party,
            role: key.role,
            key: key.id,
            limits: KeyLimits {
                read_only: key.read_only,
                spending_cap: key.spending_cap,
            },
            expires: key.expires,
        })
    }

    async fn store_key(
        &self,
        secret: &Secret,
        wish: KeyWish,
        by: Option<Uuid>,
    ) -> Result<KeyRow, store::Error> {
        let key = KeyRow {
            id: Uuid::now_v7(),
            digest: secret.digest(),
            party: wish.party,
            role: wish.role,
            label: wish.label,
            created: self.clock.micros(),
            expires: wish.expires,
            revoked: None,
            read_only: wish.limits.read_only,
            spending_cap: wish.limits.spending_cap,
        };
        keys::add_key(&self.store, &key, by).await?;
        Ok(key)
    }

    /// The secret of the calendar of a caller, where it has one.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn calendar_feed(&self, caller: &Caller) -> Result<Option<Secret>, store::Error> {
        let newest = self.feed_keys(caller).await?.pop();
        Ok(newest.map(|row| feed_secret(&row)))
    }

    /// Makes a new secret for the calendar of a caller; an earlier one is worth nothing from now on.
    ///
    /// # Errors
    /// Those of the store, and where there is no randomness.
    pub async fn make_calendar_feed(&self, caller: &Caller) -> Result<(), Error> {
        if let Some(key) = self.feed_keys(caller).await?.pop() {
            let change = KeyChange {
                by: Some(caller.key),
                at: self.clock.micros(),
            };
            let digest = Secret::key()?.digest();
            if keys::renew_key(&self.store, key.id, &digest, change).await? {
                return Ok(());
            }
        }
        let wish = KeyWish {
            party: caller.party.clone(),
            role: Role::Consumer,
            label: Some(feed_label(caller.key)),
            expires: None,
            limits: KeyLimits {
                read_only: true,
                spending_cap: None,
            },
        };
        self.add_key(wish, Some(caller.key)).await?;
        Ok(())
    }

    /// The party whose calendar a secret opens; none where it opens none, or one of its keys is worth nothing any more.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn party_of_feed(&self, secret: &str) -> Result<Option<String>, store::Error> {
        let id = secret.get(..ID_DIGITS).and_then(|id| Uuid::try_parse(id).ok());
        let Some(id) = id else { return Ok(None) };
        let row = keys::key(&self.store, id).await?;
        let Some(row) = row.filter(|row| feed_secret(row).matches(secret)) else {
            return Ok(None);
        };
        let owner = row
            .label
            .as_deref()
            .and_then(|label| label.strip_prefix(FEED_LABEL)?.parse().ok());
        let Some(owner) = owner else { return Ok(None) };
        let now = self.clock.micros();
        let is_open = self.key(owner).await?.is_some_and(|owner| owner.works(now));
        Ok((is_open && row.works(now)).then_some(row.party))
    }

    /// The keys of the calendar of a caller that were not revoked, oldest first.
    async fn feed_keys(&self, caller: &Caller) -> Result<Vec<KeyRow>, store::Error> {
        keys::keys_labelled(&self.store, &caller.party, &feed_label(caller.key)).await
    }
}

impl KeyWish {
    /// Checks the names of the party and the key. They stand in logs, headings and lists: each is one line, not empty, not endless.
    fn check_names(&self) -> Result<(), Error> {
        let label = self.label.as_deref().map(|label| ("the label", label));
        for (what, name) in [("the party", self.party.as_str())].into_iter().chain(label) {
            if name.trim().is_empty() || name.trim() != name {
                return Err(Error::Invalid(format!(
                    "{what} is empty or begins or ends with a space"
                )));
            }
            if name.chars().count() > NAME_LENGTH_MAX {
                return Err(Error::Invalid(format!(
                    "{what} is longer than {NAME_LENGTH_MAX} characters"
                )));
            }
            if name.chars().any(is_hidden) {
                return Err(Error::Invalid(format!(
                    "{what} has a control character or an invisible one"
                )));
            }
        }
        Ok(())
    }
}

impl Caller {
    /// Its key, where it may spend only so much.
    pub fn spender(&self) -> Option<Spender> {
        let cap = self.limits.spending_cap?;
        Some(Spender { key: self.key, cap })
    }
}

/// The token against requests forged by other sites follows from the session, so that it need not be stored.
fn csrf_token_of_session(cookie: &Secret) -> Secret {
    cookie.derive("bespeak portal form")
}

fn feed_label(owner: Uuid) -> String {
    format!("{FEED_LABEL}{owner}")
}

/// The id of the key, and what only the service can make of the digest of its secret.
fn feed_secret(row: &KeyRow) -> Secret {
    let proof = Secret(row.digest.clone()).derive("bespeak calendar feed");
    Secret(format!("{}{}", row.id.simple(), proof.expose()))
}
