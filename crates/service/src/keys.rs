//! The bodies of requests about keys, as far as they say something by themselves; `access` decides about keys.

use domain::agreement::{Currency, Money};
use domain::clock::{MICROS_PER_SECOND, Micros};

use super::codec::json::Json;
use super::error::Result;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::codec::json_request::read_budget;

/// A key as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRequest {
    /// The party that it identifies.
    pub party: String,
    /// The word of its role.
    pub role: String,
    /// A name for it.
    pub label: Option<String>,
    /// From when on it is worth nothing.
    pub expires: Option<Micros>,
    /// Whether it may only read.
    pub read_only: bool,
    /// The most that the agreements made with it may cost together.
    pub spending_cap: Option<Money>,
}

impl KeyRequest {
    /// Reads one from a body, where a role is one of these words.
    ///
    /// # Errors
    /// [`Error::MalformedJson`](super::Error::MalformedJson), [`Error::Invalid`](super::Error::Invalid) with the place of each fault.
    pub fn read(body: &[u8], roles: &[&str]) -> Result<Self> {
        let body = Json::parse(body)?;
        let mut check = JsonCheck::default();
        let known = ["party", "role", "label", "expires", "readOnly", "spendingCap"];
        let object = check.object(&LocatedValue::root(&body), &known);
        let read = object.and_then(|object| {
            let party = object.read_required(&mut check, "party", JsonCheck::text);
            let role = object.read_required(&mut check, "role", |check, at| {
                let role = check.text(at)?;
                if !roles.contains(&role.as_str()) {
                    return check.wrong(at, format!("one of {} is expected", roles.join(", ")));
                }
                Some(role)
            });
            let label = object.read(&mut check, "label", JsonCheck::text);
            let expires = object.read(&mut check, "expires", read_key_instant);
            let read_only = object.read(&mut check, "readOnly", JsonCheck::boolean);
            let spending_cap = object.read(&mut check, "spendingCap", read_key_cap);
            Some(Self {
                party: party?,
                role: role?,
                label,
                expires,
                read_only: read_only.unwrap_or_default(),
                spending_cap,
            })
        });
        check.finish(read)
    }
}

/// Reads when a key expires; none for never, which has to be said as null.
///
/// # Errors
/// [`Error::MalformedJson`](super::Error::MalformedJson), [`Error::Invalid`](super::Error::Invalid) with the place of each fault.
pub fn read_key_expiry(body: &[u8]) -> Result<Option<Micros>> {
    let body = Json::parse(body)?;
    let mut check = JsonCheck::default();
    let read = check
        .object(&LocatedValue::root(&body), &["expires"])
        .and_then(|object| {
            if object.is_null("expires") {
                return Some(None);
            }
            object
                .read_required(&mut check, "expires", read_key_instant)
                .map(Some)
        });
    check.finish(read)
}

/// A sum of money.
fn read_key_cap(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<Money> {
    let cap = read_budget(check, at)?;
    let currency = Currency::parse(&cap.currency);
    let currency = currency.or_else(|| check.wrong(at, "three capital letters of a currency are expected"));
    Some(Money::new(cap.amount_micros, currency?))
}

/// An instant, to the second.
fn read_key_instant(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<Micros> {
    let time = check.date_time(at)?;
    Some(time.floor().saturating_mul(MICROS_PER_SECOND))
}
