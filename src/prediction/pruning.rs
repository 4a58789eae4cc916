//! The task that prunes past executions and samples of resources by the provider's policy.

use std::time::Duration;

use scheduler::Seconds;
use tokio_util::sync::CancellationToken;

use super::LEARNED;
use crate::clock::{Clock, MICROS_PER_SECOND};
use crate::store::{self, Kept, SamplesKept, Store};

/// How often it is looked for what may go.
const PAUSE: Duration = Duration::from_hours(1);
/// Executions that go in one transaction, which keeps others from writing meanwhile: some tens of milliseconds.
const BATCH: u32 = 500;

/// What the provider keeps of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryPolicy {
    /// Seconds for which each execution is kept.
    pub kept: Seconds,
    /// The last so many of each application on each resource are kept longer.
    pub each: u32,
    /// For how long it is kept what resources were like.
    pub samples: SamplesKept,
}

/// Makes sums of the executions that the policy does not keep and nobody learns from, and hours of old samples, until `stop`.
pub async fn prune(policy: HistoryPolicy, store: Store, clock: Clock, stop: CancellationToken) {
    loop {
        let kept = Kept {
            since: clock.micros() - policy.kept * MICROS_PER_SECOND,
            each: policy.each,
            learned: LEARNED,
        };
        match all(&store, &kept, &stop).await {
            Ok(0) => {}
            Ok(pruned) => tracing::info!(pruned, "old executions are sums over hours now"),
            Err(error) => tracing::warn!(%error, "old executions stay as they are"),
        }
        if let Err(error) = store.fold_samples(clock.now(), policy.samples).await {
            tracing::warn!(%error, "old samples are not made into hours");
        }
        if stop
            .run_until_cancelled(tokio::time::sleep(PAUSE))
            .await
            .is_none()
        {
            return;
        }
    }
}

async fn all(store: &Store, kept: &Kept, stop: &CancellationToken) -> Result<usize, store::Error> {
    let mut pruned = 0;
    while !stop.is_cancelled() {
        match store.prune_executions(kept, BATCH).await? {
            0 => break,
            count => pruned += count,
        }
    }
    Ok(pruned)
}
