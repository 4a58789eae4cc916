//! The failed sign-ins that the audit trail does not have yet, in a bounded number of words.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex};

use task::lock::lock;
use tokio::sync::Notify;

/// Addresses that a line names; further ones are counted together.
const ADDRESSES_MAX: usize = 20;

/// The failed sign-ins that the audit trail does not have yet. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct FailedSignIns {
    counts: Arc<Mutex<FailedCounts>>,
    /// Rung when there is one.
    any: Arc<Notify>,
}

/// How many there were.
#[derive(Debug, Default)]
pub(super) struct FailedCounts {
    by_address: BTreeMap<String, u64>,
    /// How many came from addresses that found no place.
    others: u64,
}

impl FailedSignIns {
    /// Counts one from an address.
    pub(super) fn count(&self, address: String) {
        let mut one = FailedCounts::default();
        one.add(address, 1);
        self.add(one);
    }

    /// Counts some more.
    pub(super) fn add(&self, more: FailedCounts) {
        let mut counts = lock(&self.counts);
        for (address, count) in more.by_address {
            counts.add(address, count);
        }
        counts.others += more.others;
        drop(counts);
        self.any.notify_one();
    }

    /// Waits until there are any.
    pub(super) async fn any(&self) {
        self.any.notified().await;
    }

    /// All that were counted, which are counted no more.
    pub(super) fn take(&self) -> FailedCounts {
        mem::take(&mut *lock(&self.counts))
    }
}

impl FailedCounts {
    fn add(&mut self, address: String, count: u64) {
        if self.by_address.len() < ADDRESSES_MAX || self.by_address.contains_key(&address) {
            *self.by_address.entry(address).or_default() += count;
        } else {
            self.others += count;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_failed_sign_ins_names_few_addresses_and_counts_all() {
        let mut counts = FailedCounts::default();
        for number in 0..3 * ADDRESSES_MAX {
            for _ in 0..2 {
                counts.add(format!("192.0.2.{number}"), 1);
            }
        }
        let words = counts.to_string();
        assert!(
            words.starts_with("2 from 192.0.2.0, 2 from 192.0.2.1, "),
            "{words}"
        );
        assert!(words.ends_with(", 80 from other addresses"), "{words}");
        assert_eq!(words.split(", ").count(), ADDRESSES_MAX + 1);
        // Counts that could not be noted come back.
        let failed = FailedSignIns::default();
        failed.add(counts);
        failed.add(failed.take());
        assert_eq!(failed.take().to_string(), words);
        assert_eq!(failed.take().to_string(), "");
    }
}
