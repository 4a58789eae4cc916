//! Moves that are recorded and that rows of agreements may not have yet: an agreement that waits is where the latest of them says, inside
//! its window. That a record was changed, added or deleted shows in the sum of its table.

use domain::agreement::{Agreement, MoveRecord, RecordedMove};

use super::findings::Invariant::{self, I6};
use super::findings::{Finding, Findings};
use crate::engine::{Connection, Error, Record, Result, statements};
use crate::records::recorded_moves::LatestMoves;

/// Reads the records. One that cannot be read is a finding.
pub(super) async fn read_moves_to_check(
    connection: &mut Connection,
    findings: &mut Vec<Finding>,
) -> Result<Vec<MoveRecord>> {
    let rows = connection.read(statements::ALL_MOVES, &[], |row| Ok(MoveRecord::of(row)));
    let mut records = Vec::new();
    for row in rows.await? {
        match row {
            Ok(record) => records.push(record),
            Err(Error::Corrupt(what)) => {
                findings.push(Finding::new(Invariant::Readable, "moves".to_owned(), what));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(records)
}

/// The agreement where a record has moved it, if one may have.
pub(super) fn check_moved_agreement(
    agreement: &Agreement,
    moved: &LatestMoves,
    found: &mut Findings,
) -> Option<Agreement> {
    let one_move = moved.after(agreement.id, agreement.version)?;
    let may_move = RecordedMove::may_record(agreement);
    found.must(may_move, I6, || {
        format!("it is {} and has moved by a record", agreement.state)
    });
    if !may_move {
        return None;
    }
    let mut agreement = agreement.clone();
    one_move.apply(&mut agreement);
    let (window, placed) = (agreement.window(), agreement.placement());
    found.must(window.contains(placed), I6, || {
        format!("it has moved to {placed}, which is not inside its window {window}")
    });
    Some(agreement)
}
