//! Refused requests are noted in the audit trail, as many of each party in a minute as a person would read.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::agreement::{Note, NoteKind};
use crate::clock::second_of;
use crate::planner::Error;
use crate::planner::decide::Decider;
use crate::store::Change;

/// Refusals of one party in a minute that are noted. Requests without end must not fill the disk, and every note costs a
/// transaction.
const NOTED_MAX: u32 = 60;

/// How often each party has been refused in the current minute.
#[derive(Debug, Default)]
pub(in crate::planner) struct Refused {
    minute: i64,
    counts: BTreeMap<String, u32>,
}

impl Refused {
    /// Counts a refusal; how many of its party there have been in the minute.
    fn count(&mut self, party: &str, minute: i64) -> u32 {
        if self.minute != minute {
            self.minute = minute;
            self.counts.clear();
        }
        let count = self.counts.entry(party.to_owned()).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }
}

impl Decider<'_> {
    /// Notes that a party's request was refused, if it was.
    pub(in crate::planner) fn note_refused<T>(
        &mut self,
        party: &str,
        subject: Uuid,
        decided: &Result<T, Error>,
    ) {
        let Err(Error::Refused(refusal)) = decided else {
            return;
        };
        let minute = second_of(self.now).seconds().div_euclid(60);
        let count = self.plan.refused.count(party, minute);
        let more = match count.cmp(&NOTED_MAX) {
            std::cmp::Ordering::Less => "",
            std::cmp::Ordering::Equal => "; further ones of this party in this minute are not noted",
            std::cmp::Ordering::Greater => return,
        };
        self.batch.push(Change::Note(Note {
            at: self.now,
            kind: NoteKind::Refused,
            subject,
            negotiation: None,
            party: Some(party.to_owned()),
            detail: format!("{refusal}{more}"),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_party_and_minute() {
        let mut refused = Refused::default();
        assert_eq!((refused.count("a", 1), refused.count("a", 1)), (1, 2));
        assert_eq!((refused.count("b", 1), refused.count("a", 2)), (1, 1));
    }
}
