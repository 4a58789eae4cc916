//! The task that prunes past executions and samples of resources, and archives agreements, by the provider's policy.

use std::time::Duration;

use scheduler::Seconds;
use tokio_util::sync::CancellationToken;

use super::LEARNED;
use crate::clock::{Clock, MICROS_PER_SECOND};
use crate::store::{self, Kept, SamplesKept, Store};

/// How often it is looked for what may go.
const PAUSE: Duration = Duration::from_hours(1);
/// Executions that go in one transaction, which keeps others from writing meanwhile: some tens of milliseconds. So many agreements
/// are archived before it is looked whether to stop.
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
    /// Seconds after its end after which an agreement is archived.
    pub archive_after: Seconds,
}

/// Makes sums of the executions that the policy does not keep and nobody learns from, and hours of old samples, and archives
/// agreements that have been over for long, until `stop`.
pub async fn prune(policy: HistoryPolicy, store: Store, clock: Clock, stop: CancellationToken) {
    let ago = |seconds: Seconds| clock.micros() - seconds * MICROS_PER_SECOND;
    loop {
        let kept = Kept {
            since: ago(policy.kept),
            each: policy.each,
            learned: LEARNED,
        };
        match all(&stop, || store.prune_executions(&kept, BATCH)).await {
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
        // Not at once: while a service checks what is stored, the database keeps what is moved twice.
        let over = ago(policy.archive_after);
        match all(&stop, || store.archive(over, BATCH)).await {
            Ok(0) => {}
            Ok(archived) => tracing::info!(archived, "agreements that have been over for long are archived"),
            Err(error) => tracing::warn!(%error, "agreements that have been over for long are not archived"),
        }
    }
}

/// Goes on batch by batch until there is nothing more; how many there were.
async fn all<B: Future<Output = Result<usize, store::Error>>>(
    stop: &CancellationToken,
    batch: impl Fn() -> B,
) -> Result<usize, store::Error> {
    let mut sum = 0;
    while !stop.is_cancelled() {
        match batch().await? {
            0 => break,
            count => sum += count,
        }
    }
    Ok(sum)
}
