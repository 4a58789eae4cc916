//! The decisions that are not answered yet: a batch that is being stored, and another that is decided on top of it meanwhile. The
//! second is on its way only after the first is stored; where the first is not, both are given up.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

use super::Suggestion;
use super::decide::Remembered;
use crate::planner::metrics::DecisionRecord;
use crate::store::{self, Change, Store};

/// Gives the answer of one command, once it is known whether its batch is stored.
pub(super) type Answer = Box<dyn FnOnce(bool) + Send>;

/// The changes that are stored together, with the answers that are sent only then. Dropping it answers that nothing was
/// decided.
#[derive(Default)]
pub(super) struct Decided {
    pub(super) batch: Vec<Change>,
    pub(super) answers: Vec<Answer>,
    pub(super) decisions: Vec<DecisionRecord>,
    pub(super) suggested: Vec<Suggestion>,
    /// How many commands led to it.
    pub(super) commands: usize,
    /// The answers to the requests with idempotency keys, before this batch and in it.
    pub(super) remembered: Remembered,
}

/// The batches in doubt after the store failed to take one, until the plan has been read anew.
#[derive(Default)]
pub(super) struct Doubt {
    /// The batch of which it is not known whether it is stored.
    pub(super) batch: Option<Uuid>,
    /// Whether it is, once that is known.
    pub(super) is_stored: Option<bool>,
}

/// A batch on its way to the database.
pub(super) struct Storing {
    /// The answers that are sent once it is stored, without its changes.
    pub(super) decided: Decided,
    pub(super) batch: Arc<Vec<Change>>,
    pub(super) begun: Instant,
    task: JoinHandle<Result<(), store::Error>>,
}

impl Storing {
    /// Sends a batch, in a task of its own: deciding the next one takes a processor.
    pub(super) fn begin(store: &Store, epoch: i64, mut decided: Decided) -> Self {
        let batch = Arc::new(std::mem::take(&mut decided.batch));
        let (store, sent) = (store.clone(), Arc::clone(&batch));
        Self {
            decided,
            batch,
            begun: Instant::now(),
            task: tokio::spawn(async move { store.commit(epoch, &sent).await }),
        }
    }

    /// Waits for the end of a batch, for ever where none is on its way. May be given up and asked again until it has answered.
    pub(super) async fn end(of: &mut Option<Self>) -> Result<(), store::Error> {
        let Some(storing) = of else {
            return std::future::pending().await;
        };
        match (&mut storing.task).await {
            Ok(stored) => stored,
            // The task is never aborted.
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}
