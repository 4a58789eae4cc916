//! Sign-ins to the pages, in the audit trail: a line for each. Those that fail need no key, so they have a line a minute at most,
//! however many there are.

use std::mem;
use std::time::Duration;

use domain::agreement::NoteKind;
use planner::AddNote;
use store::keys;
use task::lock::lock;
use task::note_success;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::failed_sign_ins::FailedSignIns;
use super::{Result, Service};

/// The least time between two lines about failed sign-ins.
const NOTED_EVERY: Duration = Duration::from_mins(1);

/// Notes in the audit trail that somebody at an address has signed in with a key.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable) where it could not be stored.
pub async fn note_sign_in(service: &Service, key: Uuid, address: &str) -> Result<()> {
    let row = keys::key(&service.store, key).await?;
    let (party, label) = row.map_or((None, None), |row| (Some(row.party), row.label));
    // The maker of a key chooses its label, so it stands last and quoted.
    let label = label.map_or_else(String::new, |label| format!(": {label:?}"));
    let note = AddNote {
        kind: NoteKind::SignedIn,
        subject: key,
        party,
        detail: format!("from {address}{label}"),
    };
    Ok(service.planner.send(note).await?)
}

/// Counts a sign-in of somebody at an address that has failed.
pub fn count_failed_sign_in(service: &Service, address: String) {
    lock(&service.failed_sign_ins.counts).count(address);
    service.failed_sign_ins.any.notify_one();
}

/// Notes failed sign-ins in the audit trail until it is told to stop, and then the last ones.
pub async fn note_failed_sign_ins(service: Service, stop: CancellationToken) {
    let FailedSignIns { counts, any } = &service.failed_sign_ins;
    loop {
        let is_stopped = stop.run_until_cancelled(any.notified()).await.is_none();
        let failed = mem::take(&mut *lock(counts)).to_string();
        if !failed.is_empty() {
            let note = AddNote {
                kind: NoteKind::SignInFailed,
                subject: Uuid::now_v7(),
                party: None,
                detail: failed.clone(),
            };
            match service.planner.send(note).await {
                Ok(()) => note_success(),
                Err(why) => warn!(%why, failed, "failed sign-ins are not in the audit trail"),
            }
        }
        if is_stopped {
            return;
        }
        stop.run_until_cancelled(tokio::time::sleep(NOTED_EVERY)).await;
    }
}
