//! Planning in advance.

pub mod time;

pub use time::{Interval, Seconds, Time};
