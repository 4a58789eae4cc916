//! The data for prediction: past executions with their parties.
//!
//! Executions are pruned by a policy ([`crate::pruning::KeptExecutions`]).

use domain::agreement::Execution;
use domain::clock::Micros;
use domain::past::PastExecution;

use crate::engine::{Columns, Record, Result, statements};
use crate::store::Store;

/// Which executions are learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnedExecutions {
    /// This many of the last ones of all, at least 1.
    pub newest: u32,
    /// And this many of the last ones of each application on each resource, at least 1. So an application that runs often does
    /// not push out one that runs seldom.
    pub each: u32,
}

/// The most executions that are learned from, for any number of applications and resources: some tens of megabytes.
const LEARNED_MAX: u32 = 100_000;

/// The executions that are learned from, by their ends; of more than 100,000 the last ones. Takes time in proportion to the
/// rows that it reads.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn past_executions(store: &Store, learned: LearnedExecutions) -> Result<Vec<PastExecution>> {
    let newest = end_of_first_newest_past_execution(store, learned)
        .await?
        .unwrap_or(0);
    // In statements of their own: Postgres would expect far more histories than there are, and read all executions for them.
    let newer = [learned.each.saturating_sub(1).into()];
    let histories = store
        .read(statements::HISTORIES, &newer, read_begin_of_past_executions)
        .await?;
    let mut found = Vec::new();
    for (application, resource, first) in histories {
        let values = [
            application.into(),
            resource.into(),
            first.min(newest).into(),
            LEARNED_MAX.into(),
        ];
        let executions = store.read(statements::PAST_EXECUTIONS, &values, past_execution_of_row);
        found.extend(executions.await?);
        if found.len() > 2 * LEARNED_MAX as usize {
            keep_last_past_executions(&mut found);
        }
    }
    keep_last_past_executions(&mut found);
    Ok(found)
}

/// The end of the last execution; none before the first.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn end_of_last_past_execution(store: &Store) -> Result<Option<Micros>> {
    let ended = store
        .read(statements::LAST_EXECUTION, &[], |row| row.integer("ended_us"))
        .await?;
    Ok(ended.first().copied())
}

/// The end of the first of the newest executions that are learned from; none where there are fewer.
pub(crate) async fn end_of_first_newest_past_execution(
    store: &Store,
    learned: LearnedExecutions,
) -> Result<Option<Micros>> {
    let newer = [learned.newest.saturating_sub(1).into()];
    let ended = |row: &Columns<'_>| row.integer("ended_us");
    store
        .read_one(statements::NTH_LAST_EXECUTION, &newer, ended)
        .await
}

/// An application, a resource, and the end of the first of its executions there that are learned from in any case.
fn read_begin_of_past_executions(row: &Columns<'_>) -> Result<(String, String, Micros)> {
    Ok((
        row.text("application")?,
        row.text("resource")?,
        row.integer("ended_us")?,
    ))
}

/// Sorts executions by their ends, and keeps the last [`LEARNED_MAX`] of them.
fn keep_last_past_executions(found: &mut Vec<PastExecution>) {
    found.sort_by_key(|past| past.execution.ended);
    let surplus = found.len().saturating_sub(LEARNED_MAX as usize);
    found.drain(..surplus);
}

pub(crate) fn past_execution_of_row(row: &Columns<'_>) -> Result<PastExecution> {
    Ok(PastExecution {
        execution: Execution::of(row)?,
        party: row.text("party")?,
        agreed: row.integer("created_us")?,
    })
}
