//! The task that prunes past executions and samples of resources, and archives agreements, by the provider's policy.

use std::time::Duration;

use domain::clock::{Clock, MICROS_PER_SECOND};
use scheduler::Seconds;
use store::pruning::{self, KeptExecutions};
use store::samples::{self, SamplesKept};
use store::{Store, archive};
use task::note_success;
use tokio_util::sync::CancellationToken;

use super::learning::LEARNED;

/// How often executions that may go are looked for.
const PAUSE: Duration = Duration::from_hours(1);
/// Executions that are pruned in one transaction, which holds the write lock for some tens of milliseconds. Also the number of
/// agreements that are archived between two looks at `stop`.
const BATCH: u32 = 500;

/// The data of the past that the provider keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryPolicy {
    /// Seconds for which each execution is kept.
    pub kept: Seconds,
    /// This many of the last ones of each application on each resource are kept longer.
    pub each: u32,
    /// For how long the conditions of resources are kept.
    pub samples: SamplesKept,
    /// Seconds after its end after which an agreement is archived.
    pub archive_after: Seconds,
}

/// Until `stop`: turns executions into sums where neither the policy nor the predictions need them, turns old samples into hours,
/// and archives agreements that ended long ago.
pub async fn prune_history(policy: HistoryPolicy, store: Store, clock: Clock, stop: CancellationToken) {
    let ago = |seconds: Seconds| clock.micros() - seconds * MICROS_PER_SECOND;
    loop {
        let kept = KeptExecutions {
            since: ago(policy.kept),
            each: policy.each,
            learned: LEARNED,
        };
        match prune_all_batches(&stop, || pruning::prune_executions(&store, &kept, BATCH)).await {
            Ok(0) => {}
            Ok(pruned) => tracing::info!(pruned, "old executions are sums over hours now"),
            Err(error) => tracing::warn!(%error, "old executions are not made into sums"),
        }
        match samples::fold_samples(&store, clock.now(), policy.samples).await {
            Ok(()) => note_success(),
            Err(error) => tracing::warn!(%error, "old samples are not made into hours"),
        }
        if stop
            .run_until_cancelled(tokio::time::sleep(PAUSE))
            .await
            .is_none()
        {
            return;
        }
        // Not directly after the start: the full check then holds a snapshot, in which the database keeps moved rows a second time.
        let over = ago(policy.archive_after);
        match prune_all_batches(&stop, || archive::archive_agreements(&store, over, BATCH)).await {
            Ok(0) => {}
            Ok(archived) => tracing::info!(archived, "agreements that ended long ago are archived"),
            Err(error) => tracing::warn!(%error, "agreements that ended long ago are not archived"),
        }
    }
}

/// Goes on batch by batch until there is nothing more; how many there were.
async fn prune_all_batches<B: Future<Output = Result<usize, store::Error>>>(
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
