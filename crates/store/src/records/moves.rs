//! Moves of many agreements at once, which are stored as one record: until they are settled the row of an agreement says where it was
//! before. So every read of agreements looks for records, in the same statement, and shows each agreement where it is.

use domain::agreement::MoveRecord;

use crate::engine::{Columns, Record, Result, Value, record, statements};
use crate::records::recorded_moves::LatestMoves;
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

/// Reads the records that came since: each is read and parsed once.
pub(super) async fn read_later_moves(store: &Store, newest: Option<i64>) -> Result<()> {
    let known = store.moves.to_extend(newest);
    let after = [known.newest.unwrap_or(i64::MIN).into()];
    let later = store.read(statements::MOVES_AFTER, &after, <MoveRecord as Record>::of);
    store.moves.extend(known, &later.await?);
    Ok(())
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
            Some((newest, _)) if *newest != moved.newest => read_later_moves(store, *newest).await?,
            _ => return Ok(found.into_iter().map(|(_, read)| read).collect()),
        }
    }
}

record! { MoveRecord: number, at "at_us", cause, why, moves }
