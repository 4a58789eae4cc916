//! The secret address of a person's calendar belongs to the key that the person signs in with, and is made of a key of its own, for
//! reading only, whose secret is never given out. So the address is worth nothing but this calendar, is in the list of keys, can be
//! shown again, and is over with either key.

use uuid::Uuid;

use super::{Access, Caller, Error, KeyLimits, KeyRow, KeyWish, Role, Secret};
use store::keys::{self, KeyChange};

/// The beginning of the label of a calendar's key; the id of its owner's key follows.
const FEED_LABEL: &str = "calendar feed of key ";
/// Hexadecimal digits of the id in the secret of a calendar.
const ID_DIGITS: usize = 32;

impl Access {
    /// The secret of the calendar of a caller, where it has one.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn calendar_feed(&self, caller: &Caller) -> Result<Option<Secret>, store::Error> {
        let newest = self.keys_of_calendar_feed(caller).await?.pop();
        Ok(newest.map(|row| secret_of_calendar_feed(&row)))
    }

    /// Makes a new secret for the calendar of a caller; an earlier one is worth nothing from now on.
    ///
    /// # Errors
    /// Those of the store, and where there is no randomness.
    pub async fn make_calendar_feed(&self, caller: &Caller) -> Result<(), Error> {
        if let Some(key) = self.keys_of_calendar_feed(caller).await?.pop() {
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
            label: Some(label_of_calendar_feed(caller.key)),
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
    pub async fn party_of_calendar_feed(&self, secret: &str) -> Result<Option<String>, store::Error> {
        let id = secret.get(..ID_DIGITS).and_then(|id| Uuid::try_parse(id).ok());
        let Some(id) = id else { return Ok(None) };
        let row = keys::key(&self.store, id).await?;
        let Some(row) = row.filter(|row| secret_of_calendar_feed(row).matches(secret)) else {
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
    async fn keys_of_calendar_feed(&self, caller: &Caller) -> Result<Vec<KeyRow>, store::Error> {
        keys::keys_labelled(&self.store, &caller.party, &label_of_calendar_feed(caller.key)).await
    }
}

fn label_of_calendar_feed(owner: Uuid) -> String {
    format!("{FEED_LABEL}{owner}")
}

/// The id of the key, and what only the service can make of the digest of its secret.
fn secret_of_calendar_feed(row: &KeyRow) -> Secret {
    let proof = Secret(row.digest.clone()).derive("bespeak calendar feed");
    Secret(format!("{}{}", row.id.simple(), proof.expose()))
}
