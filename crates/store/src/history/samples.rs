//! The observed conditions of resources: samples, and their means over hours.
//!
//! Samples become means over whole hours, and these go, by a policy ([`SamplesKept`]); a live estimate looks back ten weeks.

use domain::clock::MICROS_PER_SECOND;
use domain::past::{Condition, ResourceHour, Sample};
use scheduler::{Seconds, Time};

use crate::engine::{Columns, Record, Result, record, statements};
use crate::store::Store;

const HOUR: Seconds = 3_600;

/// For how long the conditions of resources are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplesKept {
    /// Seconds for which single samples are kept.
    pub samples: Seconds,
    /// Seconds for which their means over hours are kept.
    pub hours: Seconds,
}

/// Keeps a sample; one of the same resource and instant stays as it is.
///
/// # Errors
/// `Error::Conflict` where there is no such resource, `Error::Unavailable`.
pub async fn record_sample(store: &Store, sample: &Sample) -> Result<()> {
    let mut values = vec![(&sample.resource).into(), sample.at.into()];
    values.extend(sample.condition.values());
    store.write(statements::INSERT_SAMPLE, &values).await?;
    Ok(())
}

/// The conditions of resources hour by hour since an instant, from the samples and the hours that are kept.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn sample_hours_of_resources(store: &Store, since: Time) -> Result<Vec<ResourceHour>> {
    let values = [since.into(), (since.seconds() * MICROS_PER_SECOND).into()];
    store
        .read(statements::RESOURCE_HOURS, &values, read_sample_hour)
        .await
}

/// Makes hours of the samples that are older than they are kept, and forgets the hours that are, in one transaction. Only whole hours are made, so that a second call finds nothing left of the first one's.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn fold_samples(store: &Store, now: Time, kept: SamplesKept) -> Result<()> {
    let whole = |kept: Seconds| (now.seconds() - kept).div_euclid(HOUR) * HOUR;
    let before = [(whole(kept.samples) * MICROS_PER_SECOND).into()];
    let mut transaction = store.begin().await?;
    transaction.execute(statements::FOLD_SAMPLES, &before).await?;
    transaction.execute(statements::FORGET_SAMPLES, &before).await?;
    transaction
        .execute(statements::FORGET_HOURS, &[whole(kept.hours).into()])
        .await?;
    Ok(transaction.commit().await?)
}

record! {
    Condition: free_cpu "free_cpu_millionths", bandwidth_in, bandwidth_out, nodes_up, transfer_in, transfer_out
}

fn read_sample_hour(row: &Columns<'_>) -> Result<ResourceHour> {
    Ok(ResourceHour {
        resource: row.text("resource")?,
        start: Time(row.integer("hour_s")?),
        samples: row.integer("samples")?,
        condition: Condition::of(row)?,
    })
}
