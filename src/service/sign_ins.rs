//! Sign-ins to the pages, in the audit trail: a line for each. Those that fail need no key, so they have a line a minute at most,
//! however many there are.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::agreement::NoteKind;
use planner::AddNote;
use store::keys;
use task::lock::lock;
use task::note_success;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::{Result, Service};

/// The least time between two lines about failed sign-ins.
const NOTED_EVERY: Duration = Duration::from_mins(1);
/// Addresses that such a line names; further ones are counted together, so that it has a bound.
const ADDRESSES_MAX: usize = 20;

/// The failed sign-ins that are not noted yet. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct FailedSignIns {
    counts: Arc<Mutex<FailedCounts>>,
    /// Rung when there is one.
    any: Arc<Notify>,
}

#[derive(Debug, Default)]
struct FailedCounts {
    by_address: BTreeMap<String, u64>,
    /// Those of addresses that found no place.
    others: u64,
}

impl FailedCounts {
    fn count(&mut self, address: String) {
        if self.by_address.len() < ADDRESSES_MAX || self.by_address.contains_key(&address) {
            *self.by_address.entry(address).or_default() += 1;
        } else {
            self.others += 1;
        }
    }
}

impl fmt::Display for FailedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.by_address.iter();
        let named = named.map(|(address, count)| format!("{count} from {address}"));
        let others = (self.others > 0).then(|| format!("{} from other addresses", self.others));
        let parts: Vec<String> = named.chain(others).collect();
        f.write_str(&parts.join(", "))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_failed_sign_ins_names_few_addresses_and_counts_all() {
        let mut counts = FailedCounts::default();
        for number in 0..3 * ADDRESSES_MAX {
            for _ in 0..2 {
                counts.count(format!("192.0.2.{number}"));
            }
        }
        let words = counts.to_string();
        assert!(
            words.starts_with("2 from 192.0.2.0, 2 from 192.0.2.1, "),
            "{words}"
        );
        assert!(words.ends_with(", 80 from other addresses"), "{words}");
        assert_eq!(words.split(", ").count(), ADDRESSES_MAX + 1);
    }
}
