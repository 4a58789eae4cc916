//! Tasks beside each other.

mod lasting_tasks;
pub mod lock;
mod spawn;

pub use lasting_tasks::{Keeper, KeptTasks, TaskState, note_success};
pub use spawn::{THREAD_KEPT, spawn, spawn_blocking};
