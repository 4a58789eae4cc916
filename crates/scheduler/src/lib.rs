//! Planning in advance.

pub mod refusal;
pub mod time;

pub use refusal::Reason;
pub use time::{Interval, Seconds, Time};
