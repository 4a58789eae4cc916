//! Finished pieces of work, kept for prediction.

use uuid::Uuid;

use crate::agreement::{Execution, RunOutcome};
use crate::store::database::Store;
use crate::store::engine::{Columns, Error, Value, statements, to_json};

impl Store {
    /// The pieces of work that were done for an agreement, oldest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn executions(&self, agreement: Uuid) -> Result<Vec<Execution>, Error> {
        self.read(statements::EXECUTIONS, &[agreement.into()], read).await
    }
}

pub(in crate::store) fn read(row: &Columns<'_>) -> Result<Execution, Error> {
    Ok(Execution {
        agreement: row.id("agreement")?,
        application: row.text("application")?,
        version: row.maybe_text("version")?,
        arguments: row.json("arguments")?,
        input_bytes: row.integer("input_bytes")?,
        output_bytes: row.integer("output_bytes")?,
        resource: row.text("resource")?,
        nodes: row.count("nodes")?,
        planned: row.interval("planned_start_s", "planned_end_s")?,
        estimate: row.integer("estimate_s")?,
        queue_time: row.integer("queue_time_us")?,
        run_time: row.integer("run_time_us")?,
        transfer_in: row.integer("transfer_in_us")?,
        transfer_out: row.integer("transfer_out_us")?,
        outcome: row
            .maybe_outcome()?
            .ok_or_else(|| Error::Corrupt("outcome is null".into()))?,
        ended: row.integer("ended_us")?,
    })
}

/// The columns of [`crate::store::engine::bulk::INSERT_EXECUTIONS`].
pub(in crate::store) fn row(execution: &Execution) -> [Value<'_>; 18] {
    [
        execution.agreement.into(),
        execution.ended.into(),
        (&execution.application).into(),
        (&execution.version).into(),
        to_json(&execution.arguments).into(),
        execution.input_bytes.into(),
        execution.output_bytes.into(),
        (&execution.resource).into(),
        execution.nodes.into(),
        execution.planned.start.into(),
        execution.planned.end.into(),
        execution.estimate.into(),
        execution.queue_time.into(),
        execution.run_time.into(),
        execution.transfer_in.into(),
        execution.transfer_out.into(),
        execution.outcome.word().into(),
        RunOutcome::exit(execution.outcome).map(i64::from).into(),
    ]
}
