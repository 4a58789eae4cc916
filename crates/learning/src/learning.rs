//! The task that makes new knowledge when there is something to be learned.

use std::fmt::Display;
use std::time::{Duration, Instant};

use domain::clock::{Clock, Micros};
use domain::past::{PastExecution, ResourceHour};
use domain::resources::{CorruptRow, ResourceRow};
use prediction::{Knowledge, Machines, Predictions};
use rustix::process::setpriority_process;
use rustix::time::{ClockId, clock_gettime};
use scheduler::prediction::Ladder;
use scheduler::prediction::series::STEPS_MAX;
use scheduler::{Seconds, Time};
use store::past_executions::{self, LearnedExecutions};
use store::{Store, resources, samples};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The executions that are learned from: of each application on each resource as many as a history of runs remembers.
pub(crate) const LEARNED: LearnedExecutions = LearnedExecutions {
    newest: 20_000,
    each: 200,
};
const _: () = assert!(LEARNED.each as usize == scheduler::prediction::runs::RUNS_MAX);

/// When a keeper looks for executions that have ended.
#[derive(Debug, Clone, Copy)]
pub struct LearningPace {
    /// Before its first look.
    after: Duration,
    /// Between its looks.
    every: Duration,
}

impl LearningPace {
    /// Of a process that leads. One that `has_taken_over` waits: learning takes seconds of a processor, and at a takeover all clients
    /// come at once.
    pub fn of_leader(has_taken_over: bool) -> Self {
        let every = Duration::from_secs(2);
        let after = if has_taken_over { every } else { Duration::ZERO };
        Self { after, every }
    }

    /// Of a process that stands by: it decides nothing, and is often started just when another process takes the lead.
    pub const STANDING_BY: Self = Self {
        after: Duration::from_secs(10),
        every: Duration::from_mins(5),
    };
}

/// Learning takes at most one part in this number of a processor's time.
const SHARE: u32 = 10;

/// When it is tried again, at the latest, where the store could not be read.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Beside one other busy thread, learning gets a tenth of a processor; see `setpriority(2)`.
const LOW_PRIORITY: i32 = 10;

/// Samples are looked at when an hour of them is complete, in seconds.
const SAMPLES_LOOK: Seconds = 3_600;

/// How predictions know the stored resources, and the parts of an estimate that decide; none where estimates decide nothing.
pub type Setup = (
    fn(Vec<ResourceRow>) -> Result<Machines, CorruptRow>,
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
    let machines = machines(resources::all_resources(store).await?)?;
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
    let (past, hours) = read_past_to_learn(store, now).await?;
    let learned = task::spawn_blocking(move || Knowledge::of(&past, &hours, setup, now));
    learned.await.map_err(not_learned)
}

/// All that is learned from.
async fn read_past_to_learn(
    store: &Store,
    now: Time,
) -> Result<(Vec<PastExecution>, Vec<ResourceHour>), store::Error> {
    let steps = i64::try_from(STEPS_MAX).unwrap_or(i64::MAX);
    let past = past_executions::past_executions(store, LEARNED).await?;
    let hours = samples::sample_hours_of_resources(store, now - steps.saturating_mul(3_600)).await?;
    Ok((past, hours))
}

fn not_learned(why: impl Display) -> store::Error {
    store::Error::Corrupt(format!("learning from executions: {why}"))
}

/// Does some work on a thread of low priority: requests and decisions hardly wait for it. Answers also the time of a processor that
/// it took.
async fn learn_at_low_priority<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(T, Duration), store::Error> {
    let (sender, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("learning".to_owned());
    let started = thread.spawn(move || {
        // On Linux this is about the thread. Where the system refuses it, the work has the priority of all others.
        let _ = setpriority_process(None, LOW_PRIORITY);
        let done = work();
        let took = clock_gettime(ClockId::ThreadCPUTime).try_into();
        let _ = sender.send((done, took.unwrap_or_default()));
    });
    started.map_err(not_learned)?;
    done.await.map_err(not_learned)
}

/// Renews knowledge at a pace until `stop`. It starts when the stored resources are those of the configuration: what it learns first
/// decides until the next look.
pub async fn keep_knowledge(
    known: Predictions,
    store: Store,
    setup: Setup,
    clock: Clock,
    pace: LearningPace,
    stop: CancellationToken,
) {
    let mut seen = None;
    let mut pause = pace.after;
    while stop
        .run_until_cancelled(tokio::time::sleep(pause))
        .await
        .is_some()
    {
        pause = pace.every;
        let learned = stop.run_until_cancelled(learn_if_changed(&store, setup, &clock, &mut seen));
        let Some(learned) = learned.await else { return };
        match learned {
            Ok(Some((knowledge, took))) => {
                pause = pace.every.max(took * SHARE);
                known.renew(knowledge);
                task::note_success();
            }
            Ok(None) => task::note_success(),
            Err(error) => {
                tracing::warn!(%error, "predictions are not updated");
                pause = pace.every.min(RETRY_MAX);
            }
        }
    }
}

/// The end of the last execution, the time of the samples, and the resources, that were seen.
type LearnedState = Option<(Option<Micros>, i64, Vec<ResourceRow>)>;

async fn learn_if_changed(
    store: &Store,
    setup: Setup,
    clock: &Clock,
    seen: &mut LearnedState,
) -> Result<Option<(Knowledge, Duration)>, store::Error> {
    let now = clock.now();
    let there = (
        past_executions::end_of_last_past_execution(store).await?,
        now.seconds().div_euclid(SAMPLES_LOOK),
        resources::all_resources(store).await?,
    );
    if seen.as_ref() == Some(&there) {
        return Ok(None);
    }
    let (machines, ladder) = setup;
    let setup = (machines(there.2.clone())?, ladder);
    let began = Instant::now();
    let (past, hours) = read_past_to_learn(store, now).await?;
    let read = began.elapsed();
    let (knowledge, took) = learn_at_low_priority(move || Knowledge::of(&past, &hours, setup, now)).await?;
    *seen = Some(there);
    Ok(Some((knowledge, read + took)))
}
