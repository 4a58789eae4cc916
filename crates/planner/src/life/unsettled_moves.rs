//! The moves that are recorded and that the rows of their agreements do not have yet (`super::settle_moves`).

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use domain::agreement::{Agreement, MoveRecord};
use scheduler::Time;
use uuid::Uuid;

use crate::journal::{JournaledMap, TakeBack};

/// Agreements that are settled in a slice: storing them takes a few milliseconds.
pub(crate) const SLICE_SETTLED: usize = 64;

/// The moves that are recorded and not settled.
#[derive(Debug, Clone, Default)]
pub struct UnsettledMoves {
    agreements: JournaledMap<BTreeMap<Uuid, UnsettledAgreement>>,
    records: JournaledMap<BTreeMap<i64, UnsettledRecord>>,
    /// The moves of all these records.
    recorded: usize,
    /// The number of the last record, or a later one.
    last: i64,
    /// The agreement that was settled last: the others have their turns first.
    settled: Uuid,
}

/// How an agreement is stored that has moved since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnsettledAgreement {
    pub(crate) version: i64,
    pub(crate) start: Time,
    /// The number of the record with its latest move.
    record: i64,
}

#[derive(Debug, Clone)]
struct UnsettledRecord {
    record: Arc<MoveRecord>,
    /// The agreements that are where this record says.
    unsettled: usize,
}

impl UnsettledMoves {
    /// Brings stored agreements to where they are by the stored records, which come oldest first. The agreements are sorted by id.
    ///
    /// The next record has a number above `trail_number`, that of the trail's last line: each record has added a line, so no record that
    /// is settled by now had such a number, and a reader that asks for later records than it has read gets them.
    pub fn of(records: Vec<MoveRecord>, trail_number: i64, agreements: &mut [Agreement]) -> Self {
        let mut unsettled = Self::default();
        for record in records {
            let mut moved = Vec::with_capacity(record.moves.len());
            for one_move in &record.moves {
                let found = agreements.binary_search_by_key(&one_move.agreement, |agreement| agreement.id);
                // What is over, or was changed since, was settled with that.
                let found = found.ok().map(|at| &mut agreements[at]);
                if let Some(agreement) = found.filter(|found| found.version < one_move.version) {
                    moved.push((agreement.id, agreement.version, agreement.placement().start));
                    one_move.apply(agreement);
                }
            }
            // A superseded record was forgotten in the batch of the record that superseded it.
            unsettled.add(Arc::new(record), moved);
        }
        unsettled.last = unsettled.last.max(trail_number);
        unsettled
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.agreements.is_empty()
    }

    /// How many moves its records have.
    pub(crate) fn recorded(&self) -> usize {
        self.recorded
    }

    /// The number of the next record.
    pub(crate) fn next_number(&self) -> i64 {
        self.last + 1
    }

    /// How many agreements are unsettled.
    pub(crate) fn len(&self) -> usize {
        self.agreements.len()
    }

    /// Adds a record, with the agreements that it moves, their versions and their starts before. Returns the records that are superseded
    /// by it.
    pub(crate) fn add(
        &mut self,
        record: Arc<MoveRecord>,
        moved: impl IntoIterator<Item = (Uuid, i64, Time)>,
    ) -> Vec<Arc<MoveRecord>> {
        let number = record.number;
        let mut superseded = Vec::new();
        let mut unsettled = 0;
        for (id, version, start) in moved {
            let record = number;
            let stored = UnsettledAgreement {
                version,
                start,
                record,
            };
            unsettled += 1;
            let before = self.agreements.get(&id).copied();
            let now = before.map_or(stored, |before| UnsettledAgreement { record, ..before });
            self.agreements.insert(id, now);
            if let Some(before) = before.filter(|before| before.record != number) {
                superseded.extend(self.count_down(before.record));
            }
        }
        self.last = number;
        self.recorded += record.moves.len();
        self.records.insert(number, UnsettledRecord { record, unsettled });
        superseded
    }

    /// Takes an agreement out of a record. Returns the record where no agreement is left in it.
    fn count_down(&mut self, number: i64) -> Option<Arc<MoveRecord>> {
        let found = self.records.get_mut(&number)?;
        found.unsettled = found.unsettled.saturating_sub(1);
        if found.unsettled > 0 {
            return None;
        }
        let over = self.records.remove(&number)?;
        self.recorded -= over.record.moves.len();
        Some(over.record)
    }

    /// Takes an agreement out. Returns how it is stored, the reason of its last move, and the record that is over by that.
    pub(crate) fn take(&mut self, id: Uuid) -> Option<(UnsettledAgreement, String, Option<Arc<MoveRecord>>)> {
        let stored = self.agreements.remove(&id)?;
        let record = self.records.get(&stored.record);
        let why = record.map_or_else(String::new, |found| found.record.why.clone());
        Some((stored, why, self.count_down(stored.record)))
    }

    /// The agreements of the next slice.
    pub(crate) fn next_slice(&mut self) -> Vec<Uuid> {
        let after = self.agreements.range((Excluded(self.settled), Unbounded));
        let before = self.agreements.range(..=self.settled);
        let next = after.chain(before).map(|(id, _)| *id);
        let next: Vec<Uuid> = next.take(SLICE_SETTLED).collect();
        self.settled = next.last().copied().unwrap_or_default();
        next
    }
}

impl TakeBack for UnsettledMoves {
    type Before = (usize, i64, Uuid);

    fn begin_try(&mut self) -> Self::Before {
        self.agreements.begin_try();
        self.records.begin_try();
        (self.recorded, self.last, self.settled)
    }

    fn take_back(&mut self, (recorded, last, settled): Self::Before) {
        self.agreements.take_back(());
        self.records.take_back(());
        (self.recorded, self.last, self.settled) = (recorded, last, settled);
    }
}
