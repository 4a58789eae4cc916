//! The data for prediction: past executions with their parties, and the observed conditions of resources.
//!
//! Executions are pruned by a policy ([`crate::KeptExecutions`]). Samples of resources become means over whole hours, and these go, by
//! another ([`SamplesKept`]); a live estimate looks back ten weeks.

use domain::agreement::Execution;
use domain::clock::{MICROS_PER_SECOND, Micros};
use domain::past::{Condition, PastExecution, ResourceHour, Sample};
use scheduler::{Seconds, Time};

use crate::database::Store;
use crate::engine::{Columns, Record, Result, record, statements};

const HOUR: Seconds = 3_600;

/// For how long the conditions of resources are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplesKept {
    /// Seconds for which single samples are kept.
    pub samples: Seconds,
    /// Seconds for which their means over hours are kept.
    pub hours: Seconds,
}

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

impl Store {
    /// The executions that are learned from, by their ends; of more than 100,000 the last ones. Takes time in proportion to the
    /// rows that it reads.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn past_executions(&self, learned: LearnedExecutions) -> Result<Vec<PastExecution>> {
        let newest = self.first_of_newest(learned).await?.unwrap_or(0);
        // In statements of their own: Postgres would expect far more histories than there are, and read all executions for them.
        let newer = [learned.each.saturating_sub(1).into()];
        let histories = self.read(statements::HISTORIES, &newer, history_of_row).await?;
        let mut found = Vec::new();
        for (application, resource, first) in histories {
            let values = [
                application.into(),
                resource.into(),
                first.min(newest).into(),
                LEARNED_MAX.into(),
            ];
            let executions = self.read(statements::PAST_EXECUTIONS, &values, past_execution_of_row);
            found.extend(executions.await?);
            if found.len() > 2 * LEARNED_MAX as usize {
                keep_last(&mut found);
            }
        }
        keep_last(&mut found);
        Ok(found)
    }

    /// The end of the last execution; none before the first.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn last_execution(&self) -> Result<Option<Micros>> {
        let ended = self
            .read(statements::LAST_EXECUTION, &[], |row| row.integer("ended_us"))
            .await?;
        Ok(ended.first().copied())
    }

    /// Keeps a sample; one of the same resource and instant stays as it is.
    ///
    /// # Errors
    /// `Error::Conflict` where there is no such resource, `Error::Unavailable`.
    pub async fn record_sample(&self, sample: &Sample) -> Result<()> {
        let mut values = vec![(&sample.resource).into(), sample.at.into()];
        values.extend(sample.condition.values());
        self.write(statements::INSERT_SAMPLE, &values).await?;
        Ok(())
    }

    /// The conditions of resources hour by hour since an instant, from the samples and the hours that are kept.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn resource_hours(&self, since: Time) -> Result<Vec<ResourceHour>> {
        let values = [since.into(), (since.seconds() * MICROS_PER_SECOND).into()];
        self.read(statements::RESOURCE_HOURS, &values, read_resource_hour)
            .await
    }

    /// Makes hours of the samples that are older than they are kept, and forgets the hours that are, in one transaction. Only whole hours are made, so that a second call finds nothing left of the first one's.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn fold_samples(&self, now: Time, kept: SamplesKept) -> Result<()> {
        let whole = |kept: Seconds| (now.seconds() - kept).div_euclid(HOUR) * HOUR;
        let before = [(whole(kept.samples) * MICROS_PER_SECOND).into()];
        let mut transaction = self.begin().await?;
        transaction.execute(statements::FOLD_SAMPLES, &before).await?;
        transaction.execute(statements::FORGET_SAMPLES, &before).await?;
        transaction
            .execute(statements::FORGET_HOURS, &[whole(kept.hours).into()])
            .await?;
        Ok(transaction.commit().await?)
    }

    /// The end of the first of the newest executions that are learned from; none where there are fewer.
    pub(crate) async fn first_of_newest(&self, learned: LearnedExecutions) -> Result<Option<Micros>> {
        let newer = [learned.newest.saturating_sub(1).into()];
        let ended = |row: &Columns<'_>| row.integer("ended_us");
        self.read_one(statements::NTH_LAST_EXECUTION, &newer, ended).await
    }
}

/// An application, a resource, and the end of the first of its executions there that are learned from in any case.
fn history_of_row(row: &Columns<'_>) -> Result<(String, String, Micros)> {
    Ok((
        row.text("application")?,
        row.text("resource")?,
        row.integer("ended_us")?,
    ))
}

/// Sorts executions by their ends, and keeps the last [`LEARNED_MAX`] of them.
fn keep_last(found: &mut Vec<PastExecution>) {
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

record! {
    Condition: free_cpu "free_cpu_millionths", bandwidth_in, bandwidth_out, nodes_up, transfer_in, transfer_out
}

fn read_resource_hour(row: &Columns<'_>) -> Result<ResourceHour> {
    Ok(ResourceHour {
        resource: row.text("resource")?,
        start: Time(row.integer("hour_s")?),
        samples: row.integer("samples")?,
        condition: Condition::of(row)?,
    })
}
