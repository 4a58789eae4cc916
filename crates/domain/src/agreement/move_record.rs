//! Many moves of agreements as one value: what a decision stores when it moves more than a few.

use scheduler::{Interval, Time, counted};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Agreement;
use crate::clock::Micros;

/// Moves that were decided together. It never changes; it goes once the rows of its agreements are as it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveRecord {
    /// Its number: later records have higher ones.
    pub number: i64,
    /// When they were decided.
    pub at: Micros,
    /// The agreement that they make room for, where there is one.
    pub cause: Option<Uuid>,
    /// The reason, in words.
    pub why: String,
    /// The moves, one for each agreement.
    pub moves: Vec<RecordedMove>,
}

/// The move of the only slot of one agreement. As JSON it is a list of three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Uuid, i64, i64)", into = "(Uuid, i64, i64)")]
pub struct RecordedMove {
    /// Which agreement.
    pub agreement: Uuid,
    /// Its version after the move.
    pub version: i64,
    /// Its planned start from then on.
    pub start: Time,
}

impl MoveRecord {
    /// The record in words, for the audit trail.
    pub fn in_words(&self) -> String {
        format!("{} moved {}", counted(self.moves.len(), "agreement"), self.why)
    }
}

impl RecordedMove {
    /// That an agreement is where it is, in its version.
    pub fn of(agreement: &Agreement) -> Self {
        Self {
            agreement: agreement.id,
            version: agreement.version,
            start: agreement.placement().start,
        }
    }

    /// Whether the moves of an agreement may be recorded: it waits, and has one slot, which it has never lost.
    pub fn may_record(agreement: &Agreement) -> bool {
        agreement.is_waiting() && !agreement.slots.is_split() && !agreement.waits_to_run_again()
    }

    /// Brings an agreement to this move, unless it has it or a later change.
    pub fn apply(self, agreement: &mut Agreement) {
        if agreement.id == self.agreement && agreement.version < self.version {
            let (slot, nodes) = agreement.slots[0].stretch();
            agreement.place_slot(0, (Interval::of(self.start, slot.duration()), nodes));
            agreement.version = self.version;
        }
    }
}

impl From<(Uuid, i64, i64)> for RecordedMove {
    fn from((agreement, version, start): (Uuid, i64, i64)) -> Self {
        Self {
            agreement,
            version,
            start: Time(start),
        }
    }
}

impl From<RecordedMove> for (Uuid, i64, i64) {
    fn from(one_move: RecordedMove) -> Self {
        (one_move.agreement, one_move.version, one_move.start.seconds())
    }
}
