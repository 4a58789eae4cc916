//! Moves of many agreements at once, which are stored as one record: until they are settled the row of an agreement says where it was
//! before. So every read of agreements looks for records, in the same statement, and shows each agreement where it is.

use std::collections::HashMap;

use domain::agreement::{Agreement, MoveRecord, RecordedMove};
use uuid::Uuid;

use crate::engine::{Columns, Record, Result, Value, record, statements};
use crate::store::Store;

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
#[derive(Debug, Default)]
pub(crate) struct LatestMoves(HashMap<Uuid, RecordedMove>);

impl LatestMoves {
    /// Those of records, which come oldest first.
    pub(crate) fn of(records: &[MoveRecord]) -> Self {
        let moves = records.iter().flat_map(|record| &record.moves);
        Self(moves.map(|one| (one.agreement, *one)).collect())
    }

    /// The latest move of an agreement whose row has a version, where it is later than that.
    pub(crate) fn after(&self, agreement: Uuid, version: i64) -> Option<RecordedMove> {
        let one = self.0.get(&agreement).copied();
        one.filter(|one| one.version > version)
    }

    /// Brings an agreement to where it is.
    pub(crate) fn apply(&self, agreement: &mut Agreement) {
        if let Some(one_move) = self.after(agreement.id, agreement.version) {
            one_move.apply(agreement);
        }
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
    let (mut moved, mut known) = (LatestMoves::default(), None);
    loop {
        let found = store.read_all_or_named(name, values, statements, |row| {
            Ok((row.maybe_integer("newest_moves")?, one(row, &moved)?))
        });
        let found = found.await?;
        // All rows have the same: they are of one instant.
        let newest = found.iter().find_map(|(newest, _)| *newest);
        if newest <= known {
            return Ok(found.into_iter().map(|(_, read)| read).collect());
        }
        // The rows once more after the records: what was settled in between is in the rows. A record that came in between is read, too,
        // or a newcomer would stand where the rows say that others are.
        let records = move_records(store).await?;
        known = records.last().map(|record| record.number);
        moved = LatestMoves::of(&records);
    }
}

record! { MoveRecord: number, at "at_us", cause, why, moves }
