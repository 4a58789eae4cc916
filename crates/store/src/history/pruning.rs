//! Past executions that are no longer needed one by one become sums over hours.
//!
//! [`KeptExecutions`] says which executions stay: all that a prediction reads, the last ones of each application on each resource, those of
//! agreements that go on, and all that are young enough for a dispute. The timelines and the ledger, which record promises and
//! their outcomes, are never pruned.

use std::collections::BTreeMap;

use domain::agreement::{Note, NoteKind};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use domain::past::PastExecution;
use scheduler::{Seconds, counted};
use uuid::Uuid;

use super::past_executions::{LearnedExecutions, end_of_first_newest_past_execution, past_execution_of_row};
use crate::batch::sums::SummedTable;
use crate::batch::trail::Trail;
use crate::engine::{Result, Value, statements};
use crate::records::trail_lines::append_note_trail_line;
use crate::store::Store;

const HOUR: Seconds = 3_600;

/// Which executions stay as they are; all others may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptExecutions {
    /// The executions that ended since.
    pub since: Micros,
    /// This many of the last ones of each application on each resource.
    pub each: u32,
    /// The executions that are learned from.
    pub learned: LearnedExecutions,
}

/// The key of a sum: application, version, resource, outcome and hour.
type Key = (String, String, String, &'static str, i64);

/// Sums: runs, queue time, run time, bytes in and out.
type ExecutionSums = [i64; 5];

/// Makes sums of at most `limit` executions that do not stay, the oldest, in one transaction; answers of how many. Reads all
/// executions for that, and deletes and writes only for these.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`; `Error::Damaged` where the database was found not to be as it was left.
pub async fn prune_executions(store: &Store, kept: &KeptExecutions, limit: u32) -> Result<usize> {
    store.known.refuse_damaged()?;
    let Some(first_learned) = end_of_first_newest_past_execution(store, kept.learned).await? else {
        return Ok(0);
    };
    // An execution that may go now may go at any later time, so no writer has to wait during the search.
    let values = [
        kept.since.min(first_learned).into(),
        kept.each.max(kept.learned.each).into(),
        limit.into(),
    ];
    let found = store
        .read(statements::PRUNABLE_EXECUTIONS, &values, past_execution_of_row)
        .await?;
    if found.is_empty() {
        return Ok(0);
    }
    let mut transaction = store.begin().await?;
    let mut gone_parts = Vec::new();
    let mut sums: BTreeMap<Key, ExecutionSums> = BTreeMap::new();
    for PastExecution { execution, .. } in &found {
        let values = [execution.agreement.into(), execution.ended.into()];
        // The row as it is stored: one that was changed past the service is not the one in the sum, and stays found.
        let deleted = transaction.read(statements::DELETE_EXECUTION, &values, |row| {
            SummedTable::Executions.part_of_row(row)
        });
        // Another process may have been faster.
        let Some(part) = deleted.await?.pop() else {
            continue;
        };
        gone_parts.push(part);
        let key = (
            execution.application.clone(),
            execution.version.clone().unwrap_or_default(),
            execution.resource.clone(),
            execution.outcome.word(),
            execution.ended.div_euclid(HOUR * MICROS_PER_SECOND) * HOUR,
        );
        let sums = sums.entry(key).or_default();
        for (sum, more) in sums.iter_mut().zip([
            1,
            execution.queue_time,
            execution.run_time,
            execution.input_bytes,
            execution.output_bytes,
        ]) {
            *sum = sum.saturating_add(more);
        }
    }
    for ((application, version, resource, outcome, hour), sums) in &sums {
        let mut values: Vec<Value<'_>> = vec![
            application.into(),
            version.into(),
            resource.into(),
            (*outcome).into(),
            (*hour).into(),
        ];
        values.extend(sums.map(Value::from));
        transaction
            .execute(statements::ADD_EXECUTION_HOUR, &values)
            .await?;
    }
    // At the end, as batches wait from here on.
    let mut trail = transaction.read_lease(statements::LOCK_TRAIL, Trail::of).await?;
    let mut stated = trail.sums;
    for part in &gone_parts {
        stated.take_part(SummedTable::Executions, *part);
    }
    let detail = format!(
        "{} became sums of their hours",
        counted(gone_parts.len(), "execution")
    );
    let note = Note::new(
        Clock::system().micros(),
        NoteKind::Summed,
        (Uuid::nil(), None),
        detail,
    );
    append_note_trail_line(&mut transaction, &mut trail, &note, Some(stated)).await?;
    transaction.commit().await?;
    Ok(found.len())
}
