//! Counts of one minute, by party.

use std::collections::BTreeMap;

/// Counts of the current minute, by party.
#[derive(Debug, Clone, Default)]
pub(crate) struct PerMinute {
    minute: i64,
    counts: BTreeMap<String, u32>,
}

impl PerMinute {
    /// Counts one; how many of its party there have been in the minute.
    pub(crate) fn count(&mut self, party: &str, minute: i64) -> u32 {
        if self.minute != minute {
            self.minute = minute;
            self.counts.clear();
        }
        let count = self.counts.entry(party.to_owned()).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }

    /// The parties of which some were counted.
    pub(crate) fn parties(&self) -> impl Iterator<Item = &str> {
        self.counts.keys().map(String::as_str)
    }

    /// How many of a party there were in a minute that is not over.
    pub(crate) fn in_minute(&self, party: &str, minute: i64) -> u32 {
        let is_this = self.minute == minute;
        self.counts.get(party).copied().filter(|_| is_this).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_counted_by_party_and_minute() {
        let mut refused = PerMinute::default();
        assert_eq!((refused.count("a", 1), refused.count("a", 1)), (1, 2));
        assert_eq!((refused.count("b", 1), refused.count("a", 2)), (1, 1));
    }
}
