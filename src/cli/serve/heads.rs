//! Signs the head of the audit trail at intervals, and compares a trail with what is known of it before anything is decided.

use std::io;
use std::path::Path;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::cli::Failure;
use crate::cli::config::trail::Trail;
use crate::clock::Clock;
use crate::store::signed_heads::{HeadKey, SignedHeads, SignedLines, public_key_beside, read_last_head};
use crate::store::{self, Store, read_trail_end};
use crate::task;

/// Refuses a SQLite file that is not there where the data folder knows lines that it had: a new one would be made in its place.
///
/// # Errors
/// Where it is not there.
pub(super) fn refuse_missing_file(url: &str, config: &Trail, data_dir: &Path) -> Result<(), Failure> {
    let Some(path) = url.strip_prefix("sqlite:") else {
        return Ok(());
    };
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    if path.exists() || known_lines(config, data_dir)?.is_empty() {
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
pub(super) async fn compare_trail(store: &Store, config: &Trail, data_dir: &Path) -> Result<(), Failure> {
    let known = known_lines(config, data_dir)?;
    match store.find_gone_line(&known).await? {
        None => Ok(()),
        Some(gone) => Err(Failure::Refused(format!(
            "the stored state is inconsistent: {gone}: the database has gone back, and promises may be lost (docs/operating.md, “A \
             database that has gone back”)"
        ))),
    }
}

/// The last line that was signed, and the last one that a process on this data folder knew to be stored.
fn known_lines(config: &Trail, data_dir: &Path) -> Result<SignedLines, Failure> {
    let (heads, end) = (config.heads_file(data_dir), Trail::end_file(data_dir));
    let failed = |path: &Path, why: io::Error| Failure::Unavailable(format!("{}: {why}", path.display()));
    let mut known = match public_key_beside(&config.key_file(data_dir)) {
        Ok(public) => read_last_head(&heads, &public).map_err(|why| failed(&heads, why))?,
        // Without it no head can be read. A new key is made soon.
        Err(_) => SignedLines::default(),
    };
    if let Some(last) = read_trail_end(&end).map_err(|why| failed(&end, why))? {
        known.add_known(last);
    }
    Ok(known)
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
    if let Some(what) = &*store.damage().borrow() {
        return (heads, Err(what.clone()));
    }
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
