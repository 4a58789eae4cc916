//! Finished pieces of work, kept for prediction.

use domain::agreement::Execution;
use uuid::Uuid;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// The pieces of work that were done for an agreement, oldest first.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn executions_of_agreement(store: &Store, agreement: Uuid) -> Result<Vec<Execution>> {
    store
        .read(statements::EXECUTIONS, &[agreement.into()], Execution::of)
        .await
}

record! {
    Execution: agreement, ended "ended_us", application, version, arguments, input_bytes, output_bytes, resource, nodes,
    planned "planned_start_s" "planned_end_s", estimate "estimate_s", queue_time "queue_time_us", run_time "run_time_us",
    transfer_in "transfer_in_us", transfer_out "transfer_out_us", moved_in "moved_in_bytes", moved_out "moved_out_bytes",
    outcome
}
