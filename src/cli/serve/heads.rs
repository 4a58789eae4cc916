//! Signs the head of the audit trail at intervals.

use std::path::Path;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::cli::Failure;
use crate::cli::config::trail::Trail;
use crate::clock::Clock;
use crate::store::signed_heads::{HeadKey, SignedHeads};
use crate::store::{self, Store};
use crate::task;

/// Begins to sign heads, now and at intervals until `stop`.
///
/// # Errors
/// Where the key cannot be read or made.
pub(super) fn start_signing_heads(
    config: &Trail,
    data_dir: &Path,
    store: &Store,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let key = config.key_file(data_dir);
    let key = HeadKey::ensure(&key)
        .map_err(|why| Failure::Unavailable(format!("the key of the trail, {}: {why}", key.display())))?;
    let heads = SignedHeads::new(config.heads_file(data_dir), key);
    let (store, clock, interval, stop) = (store.clone(), clock.clone(), config.interval(), stop.clone());
    task::spawn(async move {
        let mut heads = heads;
        loop {
            heads = match sign_head(&store, &clock, heads).await {
                (heads, Ok(())) => heads,
                (heads, Err(why)) => {
                    warn!(%why, "the head of the audit trail could not be signed; the next one says all that it would have said");
                    heads
                }
            };
            if stop
                .run_until_cancelled(tokio::time::sleep(interval))
                .await
                .is_none()
            {
                return;
            }
        }
    });
    Ok(())
}

async fn sign_head(
    store: &Store,
    clock: &Clock,
    mut heads: SignedHeads,
) -> (SignedHeads, Result<(), String>) {
    let head = match store.trail_head(clock.micros()).await {
        Ok(head) => head,
        Err(why) => return (heads, Err(store::Error::to_string(&why))),
    };
    // The disk may be slow, and another machine's.
    let signed = task::spawn_blocking(move || {
        let appended = heads.append(head).map_err(|why| why.to_string());
        (heads, appended)
    });
    // It neither panics nor is cancelled.
    signed.await.expect("a head is signed")
}
