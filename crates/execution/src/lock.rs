//! Locks with data that are whole also after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it, whatever has become of other threads.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
