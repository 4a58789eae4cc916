//! Signs the head of the audit trail at intervals.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing::warn;

use crate::cli::Failure;
use crate::cli::config::trail::Trail;
use crate::clock::Clock;
use crate::store::Store;
use crate::store::signed_heads::{HeadKey, SignedHeads};
use crate::task::{self, Keeper};

/// How long a signature may take before its task counts as late.
const SIGNED_WITHIN: Duration = Duration::from_mins(1);

/// Begins to sign heads, now and at intervals until `stop`.
///
/// # Errors
/// Where the key cannot be read or made.
pub(super) fn start_signing_heads(
    config: &Trail,
    data_dir: &Path,
    store: &Store,
    clock: &Clock,
    keeper: &Keeper,
) -> Result<(), Failure> {
    let key = config.key_file(data_dir);
    let key = HeadKey::ensure(&key)
        .map_err(|why| Failure::Unavailable(format!("the key of the trail, {}: {why}", key.display())))?;
    let heads = SignedHeads::new(config.heads_file(data_dir), key);
    let heads = Arc::new(Mutex::new(heads));
    let (store, clock, interval) = (store.clone(), clock.clone(), config.interval());
    keeper.keep(("trail-heads", 2 * interval + SIGNED_WITHIN), move |stop| {
        let (store, clock, heads) = (store.clone(), clock.clone(), Arc::clone(&heads));
        async move {
            loop {
                match sign_head(&store, &clock, &heads).await {
                    Ok(()) => task::note_success(),
                    Err(why) => {
                        warn!(%why, "the head of the audit trail could not be signed; the next one says all that it would have said");
                    }
                }
                let pause = tokio::time::sleep(interval);
                if stop.run_until_cancelled(pause).await.is_none() {
                    return;
                }
            }
        }
    });
    Ok(())
}

async fn sign_head(store: &Store, clock: &Clock, heads: &Arc<Mutex<SignedHeads>>) -> Result<(), String> {
    let head = store.trail_head(clock.micros()).await;
    let (head, heads) = (head.map_err(|why| why.to_string())?, Arc::clone(heads));
    // The disk may be slow, and another machine's.
    let signed = task::spawn_blocking(move || {
        let mut heads = heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.append(head).map_err(|why| why.to_string())
    });
    signed.await.map_err(|why| why.to_string())?
}
