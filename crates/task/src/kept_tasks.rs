//! Tasks that are to run for as long as their process does. One that panics is started again, with a back-off; each notes when it last
//! did its work, so that a task that does it no more is seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

use super::lock::lock;
use super::spawn;

/// How long to wait before a task is started again, at first and at most; it doubles in between. A task that has run for the longest
/// wait begins with the first one again.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

tokio::task_local! {
    /// The record of the kept task that runs.
    static OWN: Arc<TaskRecord>;
}

/// Notes that the kept task that calls this has just done its work. Elsewhere it does nothing: the same work may be done for a request.
pub fn note_success() {
    let _ = OWN.try_with(|own| lock(&own.progress).last = Some(Instant::now()));
}

/// The kept tasks of a process. Clones have the same.
#[derive(Debug, Clone, Default)]
pub struct KeptTasks(Arc<Mutex<BTreeMap<String, Arc<TaskRecord>>>>);

/// What is known of a task.
#[derive(Debug)]
struct TaskRecord {
    begun: Instant,
    /// A task is late that has not done its work for so long.
    within: Duration,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    last: Option<Instant>,
    restarts: u64,
}

/// How a kept task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// Its name.
    pub name: String,
    /// How long ago it last did its work; where it has not done it yet, how long ago it was begun.
    pub age: Duration,
    /// Whether it has done its work at all.
    pub has_succeeded: bool,
    /// Whether that is longer ago than is right.
    pub is_late: bool,
    /// How often it was started again.
    pub restarts: u64,
}

impl TaskState {
    /// The state in words, without the age of one that is in time: that changes with each look.
    pub fn words(&self) -> String {
        let Self { name, age, .. } = self;
        let since = match (self.has_succeeded, age.as_secs()) {
            (true, seconds) => format!("last success {seconds} s ago"),
            (false, seconds) => format!("no success yet, for {seconds} s"),
        };
        let late = if self.is_late { ", which is too long" } else { "" };
        let restarts = match self.restarts {
            0 => String::new(),
            1 => ", started again once".to_owned(),
            times => format!(", started again {times} times"),
        };
        format!("task {name}: {since}{late}{restarts}")
    }
}

impl TaskRecord {
    fn state(&self, name: &str) -> TaskState {
        let progress = lock(&self.progress);
        let age = progress.last.unwrap_or(self.begun).elapsed();
        TaskState {
            name: name.to_owned(),
            age,
            has_succeeded: progress.last.is_some(),
            is_late: age > self.within,
            restarts: progress.restarts,
        }
    }
}

impl KeptTasks {
    /// What has tasks kept among these until `stop`.
    pub fn until(&self, stop: &CancellationToken) -> Keeper {
        Keeper {
            tasks: self.clone(),
            stop: stop.clone(),
        }
    }

    /// Has a future run whose end somebody else waits for: it is not started again.
    pub async fn watch<T>(
        self,
        (name, within): (impl Into<String>, Duration),
        future: impl Future<Output = T>,
    ) -> T {
        let entry = self.enter(name.into(), within);
        OWN.scope(Arc::clone(&entry.record), future).await
    }

    /// How the tasks stand, by name.
    pub fn states(&self) -> Vec<TaskState> {
        lock(&self.0)
            .iter()
            .map(|(name, record)| record.state(name))
            .collect()
    }

    async fn run<F: Future<Output = ()> + Send + 'static>(
        self,
        (name, within): (String, Duration),
        stop: CancellationToken,
        (first, longest): (Duration, Duration),
        mut begin: impl FnMut(CancellationToken) -> F,
    ) {
        let entry = self.enter(name, within);
        let mut wait = first;
        loop {
            let began = Instant::now();
            let task = spawn(OWN.scope(Arc::clone(&entry.record), begin(stop.clone())));
            // A runtime that ends cancels it.
            let Err(why) = AbortOnDropHandle::new(task).await else {
                return;
            };
            if !why.is_panic() || stop.is_cancelled() {
                return;
            }
            if began.elapsed() >= longest {
                wait = first;
            }
            error!(task = entry.name, %why, "a task has failed, and is started again in {wait:?}");
            lock(&entry.record.progress).restarts += 1;
            if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return;
            }
            wait = (wait * 2).min(longest);
        }
    }

    /// Lists a task as long as the entry is there. Another one of its name, which ends, is listed no more.
    fn enter(&self, name: String, within: Duration) -> TaskEntry {
        let record = Arc::new(TaskRecord {
            begun: Instant::now(),
            within,
            progress: Mutex::default(),
        });
        lock(&self.0).insert(name.clone(), Arc::clone(&record));
        TaskEntry {
            tasks: self.clone(),
            name,
            record,
        }
    }
}

/// Has tasks kept until a stop. Clones do the same.
#[derive(Debug, Clone)]
pub struct Keeper {
    tasks: KeptTasks,
    stop: CancellationToken,
}

impl Keeper {
    /// Has a task run until the stop, which it is handed, or until it ends by itself because there is nothing more for it to do. `begin`
    /// makes it, and makes it again when it has panicked. It is late when it has not called [`note_success`] for longer than `within`.
    pub fn keep<F: Future<Output = ()> + Send + 'static>(
        &self,
        (name, within): (impl Into<String>, Duration),
        begin: impl FnMut(CancellationToken) -> F + Send + 'static,
    ) -> JoinHandle<()> {
        let (tasks, stop) = (self.tasks.clone(), self.stop.clone());
        spawn(tasks.run((name.into(), within), stop, BACK_OFF, begin))
    }

    /// The stop.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// A keeper of the same tasks, until another stop.
    #[must_use]
    pub fn until(&self, stop: &CancellationToken) -> Self {
        self.tasks.until(stop)
    }

    /// The tasks.
    pub fn tasks(&self) -> &KeptTasks {
        &self.tasks
    }
}

/// A task in the list.
struct TaskEntry {
    tasks: KeptTasks,
    name: String,
    record: Arc<TaskRecord>,
}

impl Drop for TaskEntry {
    fn drop(&mut self) {
        let mut tasks = lock(&self.tasks.0);
        if tasks
            .get(&self.name)
            .is_some_and(|task| Arc::ptr_eq(task, &self.record))
        {
            tasks.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const SHORT: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(2));

    #[tokio::test]
    async fn a_task_that_panics_is_started_again_and_tells_its_success() {
        let (tasks, stop) = (KeptTasks::default(), CancellationToken::new());
        let starts = Arc::new(AtomicU64::new(0));
        let done = Arc::new(tokio::sync::Notify::new());
        let tells = Arc::clone(&done);
        let begin = move |stop: CancellationToken| {
            let (number, tells) = (starts.fetch_add(1, Ordering::SeqCst), Arc::clone(&tells));
            async move {
                assert!(number >= 3, "it fails at first");
                note_success();
                tells.notify_one();
                stop.cancelled().await;
            }
        };
        let running = tasks.clone().run(
            ("signs".to_owned(), Duration::from_mins(1)),
            stop.clone(),
            SHORT,
            begin,
        );
        let running = spawn(running);
        done.notified().await;
        let states = tasks.states();
        let [state] = states.as_slice() else {
            panic!("{states:?}")
        };
        assert_eq!(
            (state.restarts, state.has_succeeded, state.is_late),
            (3, true, false)
        );
        assert!(
            state
                .words()
                .starts_with("task signs: last success 0 s ago, started again 3 times")
        );
        stop.cancel();
        running.await.unwrap();
        assert_eq!(tasks.states(), [], "it has ended");
    }

    #[tokio::test]
    async fn a_task_that_does_its_work_no_more_is_late() {
        let (tasks, stop) = (KeptTasks::default(), CancellationToken::new());
        let running = tasks
            .until(&stop)
            .keep(("hangs", Duration::ZERO), |_| std::future::pending());
        while tasks.states().is_empty() {
            tokio::task::yield_now().await;
        }
        let state = tasks.states().remove(0);
        assert!(state.is_late && !state.has_succeeded);
        assert!(state.words().ends_with("which is too long"), "{}", state.words());
        running.abort();
    }

    #[tokio::test]
    async fn a_task_that_has_nothing_more_to_do_ends() {
        let (tasks, stop) = (KeptTasks::default(), CancellationToken::new());
        tasks
            .until(&stop)
            .keep(("once", Duration::ZERO), |_| async {})
            .await
            .unwrap();
        assert_eq!(tasks.states(), []);
    }
}
