//! The decisions that are not answered yet: a batch that is being stored, and another that is decided on top of it meanwhile. The
//! second is on its way only after the first is stored; where the first is not, both are given up.

use std::sync::Arc;

use domain::change::Change;
use planner::{Command, Error, Outcome, RememberedAnswers, Result, Settings, Suggestion};
use scheduler::Reason;
use store::Store;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

/// Gives the answer of one command, once it is known whether its batch is stored.
pub(super) type DeferredAnswer = Box<dyn FnOnce(bool) + Send>;

/// A decision that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecisionRecord {
    pub(super) request: &'static str,
    pub(super) outcome: &'static str,
    pub(super) reason: Option<Reason>,
    pub(super) cut_short: bool,
}

impl DecisionRecord {
    /// The decision about a command, where those of its kind are counted.
    pub(super) fn of<C: Command>(decision: &Result<C::Answer>) -> Option<Self> {
        let (outcome, refusal) = match decision {
            Ok(answer) => match C::outcome(answer) {
                Outcome::Granted => ("granted", None),
                Outcome::Refused(refusal) => ("refused", refusal),
            },
            Err(Error::Refused(refusal)) => ("refused", Some(&**refusal)),
            Err(Error::Lost(_)) => ("lost", None),
            Err(Error::Repeated(_) | Error::KeyReused) => ("repeated", None),
            Err(Error::Unavailable) => ("unavailable", None),
            Err(
                Error::NotFound
                | Error::Conflict(_)
                | Error::Changed
                | Error::IdTaken(_)
                | Error::Stale(_)
                | Error::Unfit(_),
            ) => ("invalid", None),
        };
        Some(Self {
            request: C::COUNTED_AS?,
            outcome,
            reason: refusal.map(|refusal| refusal.reason),
            cut_short: refusal.is_some_and(|refusal| refusal.cut_short),
        })
    }
}

/// The changes that are stored together, with the answers that are sent only then. Dropping it answers that nothing was
/// decided.
#[derive(Default)]
pub(super) struct DecidedBatch {
    pub(super) batch: Vec<Change>,
    pub(super) answers: Vec<DeferredAnswer>,
    pub(super) decisions: Vec<DecisionRecord>,
    pub(super) suggested: Vec<Suggestion>,
    /// How many commands led to it.
    pub(super) commands: usize,
    /// The answers to the requests with idempotency keys, before this batch and in it.
    pub(super) remembered: RememberedAnswers,
    /// The settings before it, where it has changed them: where it is not stored, they hold again.
    pub(super) settings_before: Option<Settings>,
}

/// The batches in doubt after the store failed to take one, until the plan has been read anew.
#[derive(Default)]
pub(super) struct DoubtfulBatches {
    /// The batch of which it is not known whether it is stored.
    pub(super) batch: Option<Uuid>,
    /// Whether it is, once that is known.
    pub(super) is_stored: Option<bool>,
    /// The settings that hold where it is not, if these are others.
    pub(super) settings_before: Option<Settings>,
}

/// A batch on its way to the database.
pub(super) struct StoringBatch {
    /// The answers that are sent once it is stored, without its changes.
    pub(super) decided: DecidedBatch,
    pub(super) batch: Arc<Vec<Change>>,
    pub(super) begun: Instant,
    task: JoinHandle<Result<(), store::Error>>,
}

impl StoringBatch {
    /// Sends a batch, in a task of its own: deciding the next one takes a processor.
    pub(super) fn begin(store: &Store, epoch: i64, mut decided: DecidedBatch) -> Self {
        let batch = Arc::new(std::mem::take(&mut decided.batch));
        let (store, sent) = (store.clone(), Arc::clone(&batch));
        Self {
            decided,
            batch,
            begun: Instant::now(),
            task: task::spawn(async move { store.commit(epoch, &sent).await }),
        }
    }

    /// Waits for the end of a batch, for ever where none is on its way. May be given up and asked again until it has answered.
    pub(super) async fn end(batch: &mut Option<Self>) -> Result<(), store::Error> {
        let Some(storing) = batch else {
            return std::future::pending().await;
        };
        match (&mut storing.task).await {
            Ok(stored) => stored,
            // The task is never aborted.
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}
