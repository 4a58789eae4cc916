//! The sessions of people in the portal: each is opened with a key.

use super::{Access, Caller, Error, Role, Secret};
use domain::clock::{MICROS_PER_SECOND, Micros};
use store::portal_sessions::{self, NewSession};

/// How long a portal session lasts at most, in microseconds: a working day and some.
pub const SESSION_LASTS: Micros = 12 * 60 * 60 * MICROS_PER_SECOND;
/// How long it lasts without a request.
pub const SESSION_IDLES: Micros = 2 * 60 * 60 * MICROS_PER_SECOND;
/// How often it is stored at most that it was used.
const USE_NOTED_EVERY: Micros = 5 * 60 * MICROS_PER_SECOND;
/// Sessions of one key at a time; signing in once more ends the oldest.
const SESSIONS_PER_KEY: u32 = 32;

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

impl Access {
    /// Opens a session with a key for somebody at an address, which the audit trail tells; `None` where the key is worth nothing, or is
    /// for a program that watches.
    ///
    /// # Errors
    /// Those of the store, and where there is no randomness.
    pub async fn sign_in(&self, bearer: &str, address: &str) -> Result<Option<Session>, Error> {
        let caller = self.authenticate(bearer).await?;
        let Some(caller) = caller.filter(|caller| caller.role != Role::Monitor) else {
            return Ok(None);
        };
        let now = self.clock.micros();
        let cookie = Secret::session(now)?;
        let expires = now.saturating_add(SESSION_IDLES);
        let new = NewSession {
            digest: &cookie.digest(),
            key: caller.key,
            address,
            at: now,
            expires,
        };
        portal_sessions::add_portal_session(&self.store, new, SESSIONS_PER_KEY).await?;
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
                let caller = Caller::of_key(row.key, self.clock.micros());
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
}

/// The token against requests forged by other sites follows from the session, so that it need not be stored.
fn csrf_token_of_session(cookie: &Secret) -> Secret {
    cookie.derive("bespeak portal form")
}
