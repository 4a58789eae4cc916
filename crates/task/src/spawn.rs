//! Spawning of tasks, and of work that blocks.
//!
//! A future is boxed before it is spawned. The runtime's code for a task then exists once for each type of result, and not once for
//! each of some sixty futures: every build of the service would wait for these copies.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::lock::lock;

/// How long a thread for work that blocks stays without work: longer than the pause between two looks at the folders of jobs. So there is
/// always one, and where the system has no more, work waits for it.
pub const THREAD_KEPT: Duration = Duration::from_mins(2);
/// How long to wait before a thread is asked for again where the system has none, at first and at most; it doubles in between.
const THREAD_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Spawns a task, as `tokio::spawn` does.
///
/// # Panics
/// Outside a runtime.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let future: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    tokio::spawn(future)
}

/// Work for a thread.
type Job = Box<dyn FnOnce() + Send>;

/// Runs work that blocks on a thread for such work, as `tokio::task::spawn_blocking` does. Where the system has no thread at the moment,
/// the work waits for one. It is done also where its handle is dropped.
///
/// # Panics
/// Outside a runtime.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let done = run_blocking(work);
    spawn(async move { done.await.unwrap_or_else(|panic| resume_unwind(panic)) })
}

/// Runs work as [`spawn_blocking`] does, without a task that waits for it: where the caller does not wait to the end, work that has no thread
/// yet may not be done. The error is what the work has panicked with.
///
/// # Panics
/// Outside a runtime.
pub fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = std::thread::Result<T>> + Send + 'static {
    let (tell, told) = oneshot::channel();
    let job = move || {
        // Nobody may wait for it any more.
        let _ = tell.send(catch_unwind(AssertUnwindSafe(work)));
    };
    let given = spawn_on_thread(Box::new(job), |job| drop(tokio::task::spawn_blocking(job)));
    async move {
        given.await;
        match told.await {
            Ok(done) => done,
            // The runtime ends, and the caller with it.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Gives work to a thread with `submit`, which panics where the system has none: at once, or else again and again until it succeeds or
/// the work was taken. Work that a failed try has left in the queue is done once all the same.
fn spawn_on_thread(
    job: Job,
    submit: impl Fn(Job) + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    let job = Arc::new(Mutex::new(Some(job)));
    let waits = |job: &Mutex<Option<Job>>| lock(job).is_some();
    let again = move || {
        let taken = Arc::clone(&job);
        let take = move || {
            let job = lock(&taken).take();
            if let Some(job) = job {
                job();
            }
        };
        let submitted = catch_unwind(AssertUnwindSafe(|| submit(Box::new(take))));
        submitted.is_ok() || !waits(&job)
    };
    let mut is_given = again();
    async move {
        let mut wait = THREAD_AGAIN.0;
        while !is_given {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(THREAD_AGAIN.1);
            is_given = again();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn work_that_blocks_waits_for_a_thread_where_there_is_none_and_is_done_once() {
        let (done, tries) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
        let counts = Arc::clone(&done);
        let (tell, told) = oneshot::channel();
        let job = move || {
            counts.fetch_add(1, Ordering::SeqCst);
            let _ = tell.send(());
        };
        // As the runtime does: it keeps the work in its queue, and panics.
        let queue = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&queue);
        let given = spawn_on_thread(Box::new(job), move |job| {
            if tries.fetch_add(1, Ordering::SeqCst) < 2 {
                kept.lock().unwrap().push(job);
                panic!("no thread");
            }
            drop(tokio::task::spawn_blocking(job));
        });
        given.await;
        told.await.unwrap();
        for left in queue.lock().unwrap().drain(..) {
            left();
        }
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn work_that_blocks_answers_and_tells_that_it_has_panicked() {
        assert_eq!(spawn_blocking(|| 7).await.unwrap(), 7);
        let panicked = spawn_blocking(|| panic!("a fault")).await;
        assert!(panicked.is_err_and(|why| why.is_panic()));
    }
}
