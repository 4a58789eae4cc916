//! The task that makes new knowledge when there is something to be learned.

use std::sync::Arc;
use std::time::{Duration, Instant};

use scheduler::prediction::Ladder;
use scheduler::prediction::smoothing::STEPS_MAX;
use scheduler::{Seconds, Time};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Knowledge, Machines};
use crate::clock::{Clock, Micros};
use crate::store::{self, Learned, ResourceRow, Store};

/// The executions that are learned from: of each application on each resource as many as a history of runs remembers.
pub const LEARNED: Learned = Learned {
    newest: 20_000,
    each: 200,
};
const _: () = assert!(LEARNED.each as usize == scheduler::prediction::runs::RUNS_MAX);

/// How often the keeper looks for executions that have ended.
const LOOK: Duration = Duration::from_secs(2);

/// Learning takes at most one part in this number of a processor's time.
const SHARE: u32 = 10;

/// Samples are looked at when an hour of them is complete, in seconds.
const SAMPLES_LOOK: Seconds = 3_600;

/// The present knowledge, for its readers: cheap to clone.
#[derive(Debug, Clone)]
pub struct Predictions {
    known: watch::Receiver<Arc<Knowledge>>,
}

impl Predictions {
    /// Knowledge that its owner renews, with the way to do so.
    pub fn of(knowledge: Knowledge) -> (watch::Sender<Arc<Knowledge>>, Self) {
        let (sender, known) = watch::channel(Arc::new(knowledge));
        (sender, Self { known })
    }

    /// The present knowledge.
    pub fn now(&self) -> Arc<Knowledge> {
        Arc::clone(&self.known.borrow())
    }
}

/// How predictions know the stored resources, and the parts of an estimate that decide; none where estimates decide nothing.
pub type Setup = (
    fn(Vec<ResourceRow>) -> Result<Machines, store::Error>,
    Option<Ladder>,
);

/// The knowledge that is in the store.
///
/// # Errors
/// Those of reading it.
pub async fn learn_from_store(
    store: &Store,
    (machines, ladder): Setup,
    now: Time,
) -> Result<Knowledge, store::Error> {
    let machines = machines(store.resources().await?)?;
    learn_for_machines(store, (machines, ladder), now).await
}

/// The knowledge that is in the store, for resources that may not be there yet.
///
/// # Errors
/// Those of reading it.
pub async fn learn_for_machines(
    store: &Store,
    setup: (Machines, Option<Ladder>),
    now: Time,
) -> Result<Knowledge, store::Error> {
    let steps = i64::try_from(STEPS_MAX).unwrap_or(i64::MAX);
    let past = store.past_executions(LEARNED).await?;
    let hours = store.resource_hours(now - steps.saturating_mul(3_600)).await?;
    let learned = tokio::task::spawn_blocking(move || Knowledge::of(&past, &hours, setup, now));
    learned
        .await
        .map_err(|why| store::Error::Corrupt(format!("learning from executions: {why}")))
}

/// Renews knowledge until `stop`. It starts when the stored resources are those of the configuration: what it learns first decides
/// until the next look.
pub async fn keep_knowledge(
    known: watch::Sender<Arc<Knowledge>>,
    store: Store,
    setup: Setup,
    clock: Clock,
    stop: CancellationToken,
) {
    let mut seen = None;
    let mut pause = Duration::ZERO;
    while stop
        .run_until_cancelled(tokio::time::sleep(pause))
        .await
        .is_some()
    {
        pause = LOOK;
        match learn_if_changed(&store, setup, &clock, &mut seen).await {
            Ok(Some((knowledge, took))) => {
                pause = LOOK.max(took * SHARE);
                // It goes on without readers until it is told to stop.
                let _ = known.send(Arc::new(knowledge));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "predictions are not updated"),
        }
    }
}

/// The end of the last execution, the time of the samples, and the resources, that were seen.
type Seen = Option<(Option<Micros>, i64, Vec<ResourceRow>)>;

async fn learn_if_changed(
    store: &Store,
    setup: Setup,
    clock: &Clock,
    seen: &mut Seen,
) -> Result<Option<(Knowledge, Duration)>, store::Error> {
    let now = clock.now();
    let there = (
        store.last_execution().await?,
        now.seconds().div_euclid(SAMPLES_LOOK),
        store.resources().await?,
    );
    if seen.as_ref() == Some(&there) {
        return Ok(None);
    }
    let started = Instant::now();
    let knowledge = learn_from_store(store, setup, now).await?;
    *seen = Some(there);
    Ok(Some((knowledge, started.elapsed())))
}
