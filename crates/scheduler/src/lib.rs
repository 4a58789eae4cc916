//! Planning in advance.

pub mod alternatives;
mod counts_in_words;
pub mod domain;
mod enum_words;
mod fraction;
pub mod measure;
pub mod moldable;
pub mod prediction;
pub mod preemptive;
pub mod pricing;
pub mod queue;
pub mod rate;
pub mod refusal;
pub mod request;
pub mod schedule;
pub mod slot_tree;
mod starts;
pub mod time;

pub use alternatives::Alternative;
pub use counts_in_words::counted;
pub use fraction::Fraction;
pub use queue::Order;
pub use rate::Rate;
pub use refusal::Reason;
pub use request::{Placement, Request};
pub use schedule::{Decision, Fault, Move, Schedule};
pub use slot_tree::{SlotError, SlotTree};
pub use starts::Starts;
pub use time::{Interval, Seconds, Time};
