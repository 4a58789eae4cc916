//! What the tests stand on: a real PostgreSQL, real servers, offers, schemas.

pub(crate) mod postgres;
pub(crate) mod random;
pub(crate) mod stores;

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

/// Runs a future to its end from any test, also from inside another runtime.
pub(crate) fn block_on<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    thread::spawn(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made")
            .block_on(future)
    })
    .join()
    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Whether `done` holds before the deadline; asked again and again.
pub(crate) fn poll_until(deadline: Duration, mut done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if done() {
            return true;
        }
        if started.elapsed() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
