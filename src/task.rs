//! Tasks beside each other.
//!
//! A future is boxed before it is spawned. The runtime's code for a task then exists once for each type of result, and not once for
//! each of some sixty futures: every build of the service would wait for these copies.

use std::pin::Pin;

use tokio::task::JoinHandle;

/// A future on the heap whose type names its result alone.
pub(crate) type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A future as a [`BoxedFuture`], for a set of tasks.
pub(crate) fn boxed<T>(future: impl Future<Output = T> + Send + 'static) -> BoxedFuture<T> {
    Box::pin(future)
}

/// Spawns a task, as `tokio::spawn` does.
///
/// # Panics
/// Outside a runtime.
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(boxed(future))
}

/// Runs work that blocks on a thread for such work, as `tokio::task::spawn_blocking` does.
///
/// # Panics
/// Outside a runtime.
pub(crate) fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work)
}
