//! The calls that report the decisions about agreements.

use domain::change::CallBack;
use domain::clock::Micros;
use uuid::Uuid;

use crate::engine::{Columns, Record, Result, record, statements};
use crate::store::Store;

/// A call that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCallBack {
    /// The call.
    pub call: CallBack,
    /// The party of its agreement.
    pub party: String,
    /// The secret of its party that signs it, if there is one.
    pub secret: Option<String>,
}

/// At most `limit` calls that are due by `now`, the longest due first, and at most `of_each` about the agreements of one
/// party: a party with thousands of calls that fail keeps no other waiting.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn call_backs_due(
    store: &Store,
    now: Micros,
    limit: u32,
    of_each: u32,
) -> Result<Vec<DueCallBack>> {
    let values = &[now.into(), limit.into(), of_each.into()];
    let due = |row: &Columns<'_>| {
        Ok(DueCallBack {
            call: CallBack::of(row)?,
            party: row.text("party")?,
            secret: row.maybe_text("secret")?,
        })
    };
    store.read(statements::CALL_BACKS_DUE, values, due).await
}

/// How many calls are still to be made.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn call_backs_waiting(store: &Store) -> Result<u32> {
    let count = store.read_one(statements::CALL_BACKS_WAITING, &[], |row| row.count("waiting"));
    Ok(count.await?.unwrap_or(0))
}

/// Forgets a call that was made or is given up.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn forget_call_back(store: &Store, id: Uuid) -> Result<()> {
    store
        .write(statements::CALL_BACK_DONE, &[id.into()])
        .await
        .map(drop)
}

/// Notes that a call did not succeed at `now`, and when it is to be tried again.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn postpone_call_back(store: &Store, id: Uuid, due: Micros, now: Micros) -> Result<()> {
    let values = [id.into(), due.into(), now.into()];
    store.write(statements::CALL_BACK_FAILED, &values).await.map(drop)
}

record! { CallBack: id, agreement, address, body, attempts, due "due_us", since "created_us" }
