//! The news between the writer and the handles to it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use domain::resources::Resource;
use planner::{Foresight, State, Suggestion};
use scheduler::Time;
use tokio::sync::{broadcast, watch};

use crate::metrics::PlannerMetrics;

/// The channels that listeners follow.
pub(super) struct Signals {
    /// Why nothing is decided any more, once that is so.
    pub(super) distrusted: Arc<OnceLock<String>>,
    /// The suggestions of the provider.
    pub(super) suggested: broadcast::Sender<Suggestion>,
    /// The next instant with something due.
    pub(super) due: watch::Sender<Option<Time>>,
    /// The changes of the plan that executors follow: the batches stored, and the commands that wait for clusters.
    pub(super) stored: watch::Sender<u64>,
    /// Whether the plan is in step with the store.
    pub(super) ready: watch::Sender<bool>,
    /// All resources.
    pub(super) resources: watch::Sender<Arc<[Resource]>>,
    /// What foresees.
    pub(super) foresight: watch::Sender<Arc<Foresight>>,
    /// The counts.
    pub(super) measured: Arc<Mutex<PlannerMetrics>>,
}

impl Signals {
    /// Tells all listeners when something is due next.
    pub(super) fn publish_next_due(&self, plan: &State) {
        self.due
            .send_if_modified(|due| std::mem::replace(due, plan.next_due()) != *due);
    }

    /// Tells all listeners which resources there are.
    pub(super) fn publish_resources(&self, plan: &State) {
        self.resources.send_replace(plan.resources().into());
    }

    /// Tells all listeners what foresees, where that is another one.
    pub(super) fn publish_foresight(&self, plan: &State) {
        let now = plan.foresight();
        self.foresight.send_if_modified(|known| {
            let is_other = !Arc::ptr_eq(known, now);
            known.clone_from(now);
            is_other
        });
    }

    /// Counts something.
    pub(super) fn measure(&self, count: impl FnOnce(&mut PlannerMetrics)) {
        let measured = &self.measured;
        count(&mut measured.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
