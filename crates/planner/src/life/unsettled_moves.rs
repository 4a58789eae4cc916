//! Moves of many agreements at once. A decision that moves more than a few stores one record of all of them, so that a move costs a few
//! bytes. The rows of the agreements, their timelines and the events of their parties follow in slices: they are settled, each agreement
//! by one line for all its moves since. What changes an agreement settles it first (`docs/design/store.md`).

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use domain::agreement::{Agreement, EventKind, MoveRecord, RecordedMove};
use domain::change::Change;
use domain::clock::time_difference_in_words;
use scheduler::{Move, Seconds, Time};
use uuid::Uuid;

use crate::decider::Decider;

/// The moves of a decision that are still stored one by one: as few cost nothing.
pub(crate) const FEW_MOVES: usize = 16;
/// Agreements that are settled in a slice: storing them takes a few milliseconds.
const SLICE_SETTLED: usize = 64;
/// Recorded moves that may be unsettled: each read of an agreement looks through their records, which takes a few milliseconds then.
/// Where there would be more, moves are stored one by one.
const UNSETTLED_MAX: usize = 16_384;
/// Seconds within which the start of an agreement binds soon, so that its move is stored at once.
const SOON: Seconds = 60;

/// The moves that are recorded and not settled.
#[derive(Debug, Clone, Default)]
pub struct UnsettledMoves {
    agreements: BTreeMap<Uuid, UnsettledAgreement>,
    records: BTreeMap<i64, UnsettledRecord>,
    /// The moves of all these records.
    recorded: usize,
    /// The number of the last record.
    last: i64,
    /// The agreement that was settled last: the others have their turns first.
    settled: Uuid,
}

/// How an agreement is stored that has moved since.
#[derive(Debug, Clone, Copy)]
struct UnsettledAgreement {
    version: i64,
    start: Time,
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
    pub fn of(records: Vec<MoveRecord>, agreements: &mut [Agreement]) -> Self {
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
            // Superseded records were forgotten together with what has superseded them.
            unsettled.add(Arc::new(record), moved);
        }
        unsettled
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.agreements.is_empty()
    }

    /// How many agreements are unsettled.
    pub(crate) fn len(&self) -> usize {
        self.agreements.len()
    }

    /// Adds a record, with the agreements that it moves, their versions and their starts before. Returns the records that are superseded
    /// by it.
    fn add(
        &mut self,
        record: Arc<MoveRecord>,
        moved: impl IntoIterator<Item = (Uuid, i64, Time)>,
    ) -> Vec<Arc<MoveRecord>> {
        let number = record.number;
        let mut superseded = Vec::new();
        let mut unsettled = 0;
        for (id, version, start) in moved {
            let stored = UnsettledAgreement {
                version,
                start,
                record: number,
            };
            unsettled += 1;
            let known = self.agreements.entry(id).or_insert(stored);
            let before = std::mem::replace(&mut known.record, number);
            if before != number {
                superseded.extend(self.count_down(before));
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
    fn take(&mut self, id: Uuid) -> Option<(UnsettledAgreement, String, Option<Arc<MoveRecord>>)> {
        let stored = self.agreements.remove(&id)?;
        let record = self.records.get(&stored.record);
        let why = record.map_or_else(String::new, |found| found.record.why.clone());
        Some((stored, why, self.count_down(stored.record)))
    }

    /// The agreements that are settled next.
    fn next_to_settle(&self) -> Vec<Uuid> {
        let after = self.agreements.range((Excluded(self.settled), Unbounded));
        let before = self.agreements.range(..=self.settled);
        after
            .chain(before)
            .map(|(id, _)| *id)
            .take(SLICE_SETTLED)
            .collect()
    }
}

impl Decider<'_> {
    /// Settles one slice of recorded moves.
    pub fn settle_some_moves(&mut self) {
        for id in self.state.life.unsettled_moves().next_to_settle() {
            self.state.life.unsettled_moves_mut().settled = id;
            settle_moves(self, id);
        }
    }
}

/// Has an agreement be stored where it is, if recorded moves are unsettled that have brought it there.
pub(crate) fn settle_moves(decider: &mut Decider<'_>, id: Uuid) {
    let Some((stored, why, over)) = decider.state.life.unsettled_moves_mut().take(id) else {
        return;
    };
    let Some(agreement) = decider.state.must_get(id) else {
        return;
    };
    let moved = time_difference_in_words(agreement.placement().start - stored.start);
    let event = decider.event(EventKind::Moved, format!("{moved}, {why}"));
    decider.batch.push(Change::SettleMoves {
        agreement: Box::new(agreement),
        event,
        before: stored.version,
    });
    decider.batch.extend(over.map(Change::ForgetMoves));
}

/// The slots of agreements whose moves one record takes: none where the moves are few.
pub(crate) fn moves_to_record(decider: &Decider<'_>, moves: &[Move]) -> Vec<u64> {
    let unsettled = decider.state.life.unsettled_moves();
    if moves.len() <= FEW_MOVES || unsettled.recorded + moves.len() > UNSETTLED_MAX {
        return Vec::new();
    }
    let now = decider.present_second();
    let may_record = |one_move: &&Move| {
        let state = &decider.state;
        let slot = state.placement.slot_by_number(&state.agreements, one_move.id);
        slot.is_some_and(|(agreement, _)| {
            let within = state.elsewhere.handed_within(&agreement.resource);
            let soon = now + within.max(decider.settings.announce).max(SOON);
            let near = state.elsewhere.near_until(&agreement.resource, now);
            let binds_soon = one_move.from.min(one_move.to) <= near.map_or(soon, |near| near.max(soon));
            RecordedMove::may_record(agreement) && !binds_soon
        })
    };
    let mut recorded: Vec<u64> = moves.iter().filter(may_record).map(|one| one.id).collect();
    recorded.sort_unstable();
    if recorded.len() <= FEW_MOVES {
        recorded.clear();
    }
    recorded
}

/// Stores moves as one record, with the agreements as they were before, and as they are now.
pub(crate) fn record_moves(
    decider: &mut Decider<'_>,
    moves: Vec<RecordedMove>,
    before: Vec<(Uuid, i64, Time)>,
    (why, cause): (&str, Option<Uuid>),
) {
    if moves.is_empty() {
        return;
    }
    let at = decider.now;
    let unsettled = decider.state.life.unsettled_moves_mut();
    let record = Arc::new(MoveRecord {
        number: unsettled.last + 1,
        at,
        cause,
        why: why.to_owned(),
        moves,
    });
    let superseded = unsettled.add(Arc::clone(&record), before);
    decider.batch.push(Change::RecordMoves(record));
    let superseded = superseded.into_iter().map(Change::ForgetMoves);
    decider.batch.extend(superseded);
}

#[cfg(test)]
mod tests;
