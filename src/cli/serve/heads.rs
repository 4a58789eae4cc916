//! Signs the head of the audit trail at intervals, and compares a trail with what is known of it before anything is decided.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::clock::Clock;
use store::known_trail::read_known_trail_end;
use store::signed_heads::{HeadKey, SignedHeads, SignedLines, public_key_beside_head_key, read_last_head};
use store::{Store, trail_lines};
use task::Keeper;
use tracing::warn;

use crate::cli::Failure;
use crate::cli::config::trail::Trail;

/// How long a signature may take before its task counts as late.
const SIGNED_WITHIN: Duration = Duration::from_mins(1);
/// How long a start waits for the last signed head.
const HEADS_WAIT: Duration = Duration::from_secs(5);

/// Refuses a SQLite file that is not there where the data folder knows lines that it had: a new one would be made in its place.
///
/// # Errors
/// Where it is not there.
pub(super) async fn refuse_missing_file_with_heads(
    url: &str,
    config: &Trail,
    data_dir: &Path,
) -> Result<(), Failure> {
    let Some(path) = url.strip_prefix("sqlite:") else {
        return Ok(());
    };
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    if path.exists() || read_heads_before_serving(config, data_dir).await?.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "the database file {} is not there, and {} knows what it had: put the file back, or restore a backup; to begin anew take an empty \
         data folder",
        path.display(),
        data_dir.display()
    )))
}

/// Refuses a database without the last line that was signed or stored: it has gone back.
///
/// # Errors
/// Where that line is not there, or cannot be looked for.
pub(super) async fn compare_trail_with_heads(
    store: &Store,
    config: &Trail,
    data_dir: &Path,
) -> Result<(), Failure> {
    let known = read_heads_before_serving(config, data_dir).await?;
    match store.verify_known_lines(&known).await? {
        None => Ok(()),
        Some(gone) => Err(Failure::Refused(format!(
            "the stored state is inconsistent: {gone}: the database has gone back, and promises may be lost (docs/reference/operating.md, “A \
             database that has gone back”)"
        ))),
    }
}

/// The last line that was signed, and the last one that a process on this data folder knew to be stored. The first one may be on another
/// machine's disk, which a start does not depend on.
async fn read_heads_before_serving(config: &Trail, data_dir: &Path) -> Result<SignedLines, Failure> {
    let (heads, end) = (config.heads_file(data_dir), Trail::end_file(data_dir));
    let mut known = read_last_head_before_serving(&heads, config.key_file(data_dir))
        .await
        .unwrap_or_else(|why| {
            warn!(file = %heads.display(), %why, "the start goes without the last signed head of the audit trail");
            SignedLines::default()
        });
    let last = read_known_trail_end(&end);
    if let Some(last) = last.map_err(|why| Failure::Unavailable(format!("{}: {why}", end.display())))? {
        known.add_known(last);
    }
    Ok(known)
}

async fn read_last_head_before_serving(heads: &Path, key: PathBuf) -> io::Result<SignedLines> {
    let heads = heads.to_owned();
    let read = task::spawn_blocking(move || match public_key_beside_head_key(&key) {
        Ok(public) => read_last_head(&heads, &public),
        // Without it no head can be read. A new key is made soon.
        Err(_) => Ok(SignedLines::default()),
    });
    tokio::time::timeout(HEADS_WAIT, read).await??
}

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
    if let Some(what) = &*store.damage().borrow() {
        return Err(what.clone());
    }
    let head = trail_lines::last_lasting_trail_line(store, clock.micros()).await;
    let (head, heads) = (head.map_err(|why| why.to_string())?, Arc::clone(heads));
    // The disk may be slow, and another machine's.
    let signed = task::spawn_blocking(move || {
        let mut heads = heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.append(head).map_err(|why| why.to_string())
    });
    signed.await.map_err(|why| why.to_string())?
}
