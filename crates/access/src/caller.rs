//! The caller of a request: its party, its role and its key.

use uuid::Uuid;

use super::{KeyRow, Role};
use domain::agreement::{Money, Spender};
use domain::clock::Micros;

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

impl Caller {
    /// The caller of a key, if the key is valid at `now`.
    pub(super) fn of_key(key: KeyRow, now: Micros) -> Option<Self> {
        key.works(now).then_some(Self {
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

    /// Its key, where it may spend only so much.
    pub fn spender(&self) -> Option<Spender> {
        let cap = self.limits.spending_cap?;
        Some(Spender { key: self.key, cap })
    }
}
