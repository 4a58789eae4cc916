//! Tasks beside each other.

mod kept_tasks;
pub mod lock;
mod spawn;

pub use kept_tasks::{Keeper, KeptTasks, TaskState, note_success};
pub use spawn::{THREAD_KEPT, run_blocking, spawn, spawn_blocking};
