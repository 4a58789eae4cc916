//! Planning in advance.

pub mod measure;
pub mod moldable;
pub mod refusal;
pub mod slot_tree;
pub mod time;

pub use refusal::Reason;
pub use slot_tree::{SlotError, SlotTree};
pub use time::{Interval, Seconds, Time};
