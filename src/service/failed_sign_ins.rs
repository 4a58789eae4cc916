//! The failed sign-ins that the audit trail does not have yet, in a bounded number of words.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

/// Addresses that a line names; further ones are counted together.
const ADDRESSES_MAX: usize = 20;

/// The failed sign-ins that are not noted yet. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct FailedSignIns {
    pub(super) counts: Arc<Mutex<FailedCounts>>,
    /// Rung when there is one.
    pub(super) any: Arc<Notify>,
}

/// How many there were.
#[derive(Debug, Default)]
pub(super) struct FailedCounts {
    by_address: BTreeMap<String, u64>,
    /// Those of addresses that found no place.
    others: u64,
}

impl FailedCounts {
    /// Counts one.
    pub(super) fn count(&mut self, address: String) {
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
