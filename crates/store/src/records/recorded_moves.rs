//! The recorded moves that a process has read and not seen settled yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::agreement::{Agreement, MoveRecord, RecordedMove};
use uuid::Uuid;

/// Moves that are kept in memory before all records are read anew: twice what is recorded at most, a few MiB.
const KNOWN_MAX: usize = 32_768;

/// The latest recorded move of each agreement that has one.
#[derive(Debug, Clone, Default)]
pub(crate) struct LatestMoves {
    /// The number of the newest record that was read; none where there was none.
    pub(super) newest: Option<i64>,
    moves: HashMap<Uuid, RecordedMove>,
}

impl LatestMoves {
    /// The latest moves of records, which come oldest first.
    pub(crate) fn of(records: &[MoveRecord]) -> Self {
        let mut moves = Self::default();
        moves.extend(records);
        moves
    }

    /// Takes in later records.
    fn extend(&mut self, records: &[MoveRecord]) {
        self.newest = records.last().map(|record| record.number).or(self.newest);
        let moves = records.iter().flat_map(|record| &record.moves);
        self.moves.extend(moves.map(|one| (one.agreement, *one)));
    }

    /// The latest move of an agreement whose row has a version, where it is later than that.
    pub(crate) fn after(&self, agreement: Uuid, version: i64) -> Option<RecordedMove> {
        let one = self.moves.get(&agreement).copied();
        one.filter(|one| one.version > version)
    }

    /// Brings an agreement to where it is.
    pub(crate) fn apply(&self, agreement: &mut Agreement) {
        if let Some(one_move) = self.after(agreement.id, agreement.version) {
            one_move.apply(agreement);
        }
    }
}

/// The recorded moves that a process has read: each record is read and parsed once.
#[derive(Debug, Default)]
pub(crate) struct ReadMoves(Mutex<Arc<LatestMoves>>);

impl ReadMoves {
    /// The latest moves of all records that were read.
    pub(super) fn latest(&self) -> Arc<LatestMoves> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The moves to which later records are added: none where the newest record is an earlier one by now, or many are settled meanwhile.
    pub(super) fn to_extend(&self, newest: Option<i64>) -> Arc<LatestMoves> {
        let known = self.latest();
        if newest < known.newest || known.moves.len() > KNOWN_MAX {
            return Arc::default();
        }
        known
    }

    /// Adds later records, which come oldest first.
    pub(super) fn extend(&self, mut known: Arc<LatestMoves>, later: &[MoveRecord]) {
        Arc::make_mut(&mut known).extend(later);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}
