//! The agreements that peers carry out.

use domain::agreement::{Account, AtPeer};
use uuid::Uuid;

use crate::engine::{Columns, Error, Record, Result, record, statements};
use crate::store::Store;

/// At most `limit` of those that are not over at their peers, by their ids, newer than `after`.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn open_at_peers(store: &Store, after: Uuid, limit: u32) -> Result<Vec<AtPeer>> {
    let values = [after.into(), limit.into()];
    store.read(statements::OPEN_AT_PEERS, &values, AtPeer::of).await
}

/// At most `limit` of those at a peer, by their ids, newer than `after`.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn all_at_peer(store: &Store, peer: &str, after: Uuid, limit: u32) -> Result<Vec<AtPeer>> {
    let values = [peer.into(), after.into(), limit.into()];
    store.read(statements::ALL_AT_PEER, &values, AtPeer::of).await
}

/// The ids of at most `limit` whose agreement here is over or has left the peer, and that are not settled.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn unsettled_at_peers(store: &Store, limit: u32) -> Result<Vec<Uuid>> {
    store
        .read(statements::LEFT_PEERS, &[limit.into()], |row| row.id("id"))
        .await
}

/// What was posted to a peer for one of these, less what it was posted from it, in millionths.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn posted_to_peer(store: &Store, row: &AtPeer) -> Result<i64> {
    let account = Account::Peer(row.peer.clone()).to_string();
    let values = [row.agreement.into(), account.into()];
    let posted = store.read_one(statements::POSTED_TO_PEER, &values, |row| row.integer("micros"));
    Ok(posted.await?.unwrap_or(0))
}

/// The names of the peers at which agreements are not over.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn peers_needed(store: &Store) -> Result<Vec<String>> {
    store
        .read(statements::PEERS_NEEDED, &[], |row| row.text("peer"))
        .await
}

/// How many agreements each peer has carried out or ended as was asked, and how many it has lost: by its name.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn promises_of_peers(store: &Store) -> Result<Vec<(String, u64, u64)>> {
    let count = |row: &Columns<'_>, column| Ok::<_, Error>(u64::from(row.count(column)?));
    store
        .read(statements::PROMISES_OF_PEERS, &[], |row| {
            Ok((row.text("peer")?, count(row, "kept")?, count(row, "broken")?))
        })
        .await
}

/// The peers' agreements behind one of ours, the first made first: none where no peer has carried it out.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn at_peers_of_agreement(store: &Store, agreement: Uuid) -> Result<Vec<AtPeer>> {
    store
        .read(statements::AT_PEERS, &[agreement.into()], AtPeer::of)
        .await
}

record! { AtPeer: id, agreement, peer, address, intent, price "price_micros" "price_currency", made "made_us", state,
charged "charged_micros", paid_back "paid_back_micros", lost, guarantees, settled "settled_us" }
