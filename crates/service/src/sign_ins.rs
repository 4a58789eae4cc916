//! Failed sign-ins to the pages, in the audit trail. They need no key, so they have a line a minute at most, however many there are.

use std::time::Duration;

use domain::agreement::{Note, NoteKind};
use store::trail_lines;
use task::note_success;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::Service;

/// The least time between two lines.
const NOTED_EVERY: Duration = Duration::from_mins(1);

/// Counts a sign-in of somebody at an address that has failed.
pub fn count_failed_sign_in(service: &Service, address: String) {
    service.failed_sign_ins.count(address);
}

/// Notes failed sign-ins in the audit trail until it is told to stop, and then the last ones.
pub async fn note_failed_sign_ins(service: Service, stop: CancellationToken) {
    let failed = &service.failed_sign_ins;
    loop {
        let is_stopped = stop.run_until_cancelled(failed.any()).await.is_none();
        let counts = failed.take();
        let words = counts.to_string();
        if !words.is_empty() {
            let subject = (Uuid::now_v7(), None);
            let note = Note::new(service.clock.micros(), NoteKind::SignInFailed, subject, words);
            match trail_lines::add_note(&service.store, &note).await {
                Ok(()) => note_success(),
                // A line whose transaction ends late may be there all the same: its counts are then in two lines.
                Err(why) => {
                    warn!(%why, failed = note.detail, "failed sign-ins are not in the audit trail");
                    failed.add(counts);
                }
            }
        }
        if is_stopped {
            return;
        }
        stop.run_until_cancelled(tokio::time::sleep(NOTED_EVERY)).await;
    }
}
