//! Moves of many agreements at once, which are stored as one record: until they are settled the row of an agreement says where it was
//! before. So every read of agreements looks for records, in the same statement, and shows each agreement where it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::agreement::{Agreement, MoveRecord, RecordedMove};
use uuid::Uuid;

use crate::engine::{Columns, Record, Result, Value, record, statements};
use crate::store::Store;

/// Moves that are kept in memory before all records are read anew: twice what is recorded at most, a few MiB.
const KNOWN_MAX: usize = 32_768;

/// The records of moves that are not settled, oldest first.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn move_records(store: &Store) -> Result<Vec<MoveRecord>> {
    store
        .read(statements::ALL_MOVES, &[], <MoveRecord as Record>::of)
        .await
}

/// The latest recorded move of each agreement that has one.
#[derive(Debug, Clone, Default)]
pub(crate) struct LatestMoves {
    /// The number of the newest record that was read; none where there was none.
    newest: Option<i64>,
    moves: HashMap<Uuid, RecordedMove>,
}

impl LatestMoves {
    /// Those of records, which come oldest first.
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
    fn latest(&self) -> Arc<LatestMoves> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the records that came since. All are read where the newest is an earlier one by now, or many are settled meanwhile.
    async fn read_on(&self, store: &Store, newest: Option<i64>) -> Result<()> {
        let mut known = self.latest();
        if newest < known.newest || known.moves.len() > KNOWN_MAX {
            known = Arc::default();
        }
        let after = [known.newest.unwrap_or(i64::MIN).into()];
        let later = store.read(statements::MOVES_AFTER, &after, <MoveRecord as Record>::of);
        let later = later.await?;
        Arc::make_mut(&mut known).extend(&later);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }
}

/// Reads agreements by the first of two statements, or only those of one name by the second, as [`Store::read_all_or_named`] does. `one`
/// reads a row with the moves that it may not have yet.
pub(crate) async fn read_moved_agreements<T: Send>(
    store: &Store,
    name: Option<&str>,
    values: &[Value<'_>],
    statements: [&'static str; 2],
    one: impl Fn(&Columns<'_>, &LatestMoves) -> Result<T> + Send + Sync,
) -> Result<Vec<T>> {
    loop {
        // The rows after the records: what was settled in between is in the rows. Where a record came in between, both are read again, or
        // a newcomer would stand where the rows say that others are.
        let moved = store.moves.latest();
        let found = store.read_all_or_named(name, values, statements, |row| {
            Ok((row.maybe_integer("newest_moves")?, one(row, &moved)?))
        });
        let found = found.await?;
        // All rows have the same: they are of one instant.
        match found.first() {
            Some((newest, _)) if *newest != moved.newest => store.moves.read_on(store, *newest).await?,
            _ => return Ok(found.into_iter().map(|(_, read)| read).collect()),
        }
    }
}

record! { MoveRecord: number, at "at_us", cause, why, moves }
