//! An executor with the calls that it is at, for all that ask it. Each call is made off the async threads, under a time-out, and only
//! a limited number at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::past::Condition;
use metrics::Histogram;
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use uuid::Uuid;

use crate::files::job_folders::JobFolders;
use crate::job::limits::AllowedLimits;
use crate::{Executor, ProspectiveJob};

/// Calls of one executor at a time, those among them that were given up on and have not returned: enough for the reports of
/// agreements to share transactions, few enough that many executors that hang leave threads to the others.
pub(super) const CALLS_MAX: usize = 16;
/// Jobs that may be promised and that an executor judges at a time: a controller has better things to do.
const JUDGED_AT_ONCE: usize = 2;
/// Upper bounds for the delay of a start, in seconds: from the delay of a scheduler to a delay that uses up a short
/// slot.
const DELAYS: &[f64] = &[0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0];
/// How long a request waits for such a judgement: that of a slower executor counts for the next request.
const JUDGED_WITHIN: Duration = Duration::from_secs(10);

/// The object of a call: a resource, and the agreement where it is about one.
pub(super) type CallSubject = (String, Option<Uuid>);

/// An executor with the calls that it is at.
#[derive(Clone)]
pub struct SharedExecutor {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) calls: Arc<Semaphore>,
    /// Likewise for jobs that may be promised.
    judging: Arc<Semaphore>,
    /// The objects of calls that have not returned.
    pub(super) asked: Arc<Mutex<HashSet<CallSubject>>>,
    /// The limits of jobs.
    pub(super) allowance: AllowedLimits,
    /// The folders of all jobs, where parties have a quota of them.
    pub(super) folders: Option<JobFolders>,
    /// How long after the begin of their slots jobs began.
    pub(super) delays: Arc<Mutex<Histogram>>,
}

impl SharedExecutor {
    /// The condition of the resource, from [`Executor::condition`].
    pub fn condition(&self) -> Option<Condition> {
        self.executor.condition()
    }

    /// Whether it is a cluster, as [`Executor::is_cluster`] tells.
    pub(crate) fn is_cluster(&self) -> bool {
        self.executor.is_cluster()
    }

    /// Whether it judges jobs before they are promised, as [`Executor::judges_jobs`] tells.
    pub fn judges_jobs(&self) -> bool {
        self.executor.judges_jobs()
    }

    /// Why it would refuse a job, as [`Executor::refusal_of`] tells; `None` also where it does not answer in time. Requests wait
    /// for this, so that only some ask at a time, and none takes the place of a call about a job that runs.
    pub async fn refusal_of(&self, job: ProspectiveJob) -> Option<String> {
        let call = move |executor: &dyn Executor| executor.refusal_of(&job);
        let asked = self.answer_within(JUDGED_WITHIN, &self.judging, (), call);
        asked.await?.ok().flatten()
    }

    /// Makes a call off the async threads; none where it does not return in time. The number of calls at a time is bounded. A call
    /// gives its place back when it returns, however long that takes.
    pub(super) async fn answer_within<T: Send + 'static>(
        &self,
        time: Duration,
        at_a_time: &Arc<Semaphore>,
        held: impl Send + 'static,
        call: impl FnOnce(&dyn Executor) -> T + Send + 'static,
    ) -> Option<Result<T, JoinError>> {
        let answer = async {
            // The semaphore is never closed.
            let permit = Arc::clone(at_a_time).acquire_owned().await.ok();
            let executor = Arc::clone(&self.executor);
            let call = move || {
                let _held = (permit, held);
                call(executor.as_ref())
            };
            task::spawn_blocking(call).await
        };
        tokio::time::timeout(time, answer).await.ok()
    }

    /// An executor for one resource or, cloned, for several.
    pub fn new(executor: impl Executor + 'static) -> Self {
        Self {
            executor: Arc::new(executor),
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            judging: Arc::new(Semaphore::new(JUDGED_AT_ONCE)),
            asked: Arc::default(),
            allowance: AllowedLimits::default(),
            folders: None,
            delays: Arc::new(Mutex::new(Histogram::new(DELAYS))),
        }
    }

    /// Takes over from another executor of the resource: its calls that have not returned are under way still.
    #[must_use]
    pub(super) fn in_place_of(self, before: &Self) -> Self {
        let before = before.clone();
        Self {
            executor: self.executor,
            allowance: self.allowance,
            folders: self.folders,
            ..before
        }
    }

    /// Has no job of a party start while these folders have more than its quota.
    #[must_use]
    pub fn among(self, folders: JobFolders) -> Self {
        Self {
            folders: Some(folders),
            ..self
        }
    }

    /// Gives the jobs of the resource these limits.
    #[must_use]
    pub fn allowing(self, allowance: AllowedLimits) -> Self {
        Self { allowance, ..self }
    }
}
