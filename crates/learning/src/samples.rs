//! Samples of resources: taken one a minute, and kept.

use std::time::Duration;

use domain::clock::Clock;
use domain::past::{Condition, Sample};
use store::{Store, samples};
use task::note_success;
use tokio_util::sync::CancellationToken;

use super::machine_counters::{machine_condition_between, read_machine_counters};

/// The first sample is taken after so long, so that a service which has just started knows something soon.
const FIRST: Duration = Duration::from_secs(1);

/// The others.
const STEP: Duration = Duration::from_mins(1);

/// Keeps the samples of one resource.
pub(super) struct Samples {
    resource: String,
    store: Store,
    clock: Clock,
    /// Until the next one.
    pause: Duration,
}

impl Samples {
    pub(super) fn of(resource: String, store: Store, clock: Clock) -> Self {
        Self {
            resource,
            store,
            clock,
            pause: FIRST,
        }
    }

    /// Waits until it is time for the next sample; false where it is to be none any more.
    pub(super) async fn are_due(&self, stop: &CancellationToken) -> bool {
        let waited = stop.run_until_cancelled(tokio::time::sleep(self.pause));
        waited.await.is_some()
    }

    /// Keeps a sample as of now. Until there has been one the next is due as soon as the first one was.
    pub(super) async fn keep(&mut self, condition: Option<Condition>) {
        let Some(condition) = condition else { return };
        self.pause = STEP;
        let sample = Sample {
            resource: self.resource.clone(),
            at: self.clock.micros(),
            condition,
        };
        match samples::record_sample(&self.store, &sample).await {
            Ok(()) => note_success(),
            Err(error) => tracing::warn!(resource = self.resource, %error, "a sample is not kept"),
        }
    }
}

/// Samples a resource that reports its condition by itself, such as a cluster, until `stop`. `look` answers from the known
/// condition; none where it is not known.
pub async fn sample_resource(
    resource: String,
    store: Store,
    clock: Clock,
    stop: CancellationToken,
    look: impl Fn() -> Option<Condition> + Send,
) {
    let mut samples = Samples::of(resource, store, clock);
    while samples.are_due(&stop).await {
        samples.keep(look()).await;
    }
}

/// Samples this machine for a resource with this number of nodes on it, until `stop`, and sums up old samples.
pub async fn sample_machine(
    resource: String,
    nodes: u32,
    store: Store,
    clock: Clock,
    stop: CancellationToken,
) {
    let mut before = (clock.micros(), read_machine_counters().await);
    let mut samples = Samples::of(resource, store, clock.clone());
    while samples.are_due(&stop).await {
        let now = (clock.micros(), read_machine_counters().await);
        let mut condition = machine_condition_between(before, now);
        condition.nodes_up = Some(nodes.into());
        before = now;
        samples.keep(Some(condition)).await;
    }
}
