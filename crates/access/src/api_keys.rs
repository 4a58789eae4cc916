//! The keys of parties: making, revoking and listing them, and their expiry.

use std::collections::HashMap;

use uuid::Uuid;

use super::{Access, Error, KeyLimits, KeyRow, Role, Secret};
use address::is_hidden;
use domain::clock::Micros;
use store::keys::{self, KeyChange};

/// The longest name of a party, and the longest label of a key, in characters.
pub const NAME_LENGTH_MAX: usize = 100;

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

impl Access {
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

    /// Stores a key with this secret.
    pub(super) async fn store_key(
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
