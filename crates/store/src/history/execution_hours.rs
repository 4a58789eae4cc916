//! Sums of executions by the hour in which they had ended.

use domain::clock::Micros;
use scheduler::Time;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// Sums of executions that had ended within an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionHour {
    /// Of which application.
    pub application: String,
    /// Of which version; empty where there is only one.
    pub version: String,
    /// Where they ran.
    pub resource: String,
    /// How they ended, in the word of an outcome.
    pub outcome: String,
    /// The hour's first second.
    pub start: Time,
    /// How many there were.
    pub runs: i64,
    /// How long they waited for their processes, together.
    pub queue_time: Micros,
    /// How long they ran, together.
    pub run_time: Micros,
    /// Bytes that they read, together.
    pub input_bytes: i64,
    /// Bytes that they wrote, together.
    pub output_bytes: i64,
}

/// The sums of the executions that are still kept one by one, by application, version, resource, outcome and hour.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn unpruned_execution_hours(store: &Store) -> Result<Vec<ExecutionHour>> {
    store
        .read(statements::KEPT_EXECUTION_HOURS, &[], ExecutionHour::of)
        .await
}

/// The sums of pruned executions, by application, version, resource, outcome and hour.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn pruned_execution_hours(store: &Store) -> Result<Vec<ExecutionHour>> {
    store
        .read(statements::EXECUTION_HOURS, &[], ExecutionHour::of)
        .await
}

record! {
    ExecutionHour: application, version, resource, outcome, start "hour_s", runs, queue_time "queue_time_us",
    run_time "run_time_us", input_bytes, output_bytes
}
