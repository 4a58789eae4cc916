//! The single writer of a domain. It owns the plan: one slot tree a resource and every agreement that still occupies
//! one. Commands come in by a bounded queue and are decided one after another, by `planner`. They are answered only after their
//! batch is stored (group commit), so that every answer to a client survives a crash.
//!
//! The database is the truth. When a commit fails, or its outcome is unknown, or something is found in the plan that must
//! never happen, the plan is read anew before anything else is decided.

mod batches;
mod command;
mod error;
mod metrics;
mod planner;
mod signals;
mod stored_plan;
mod trial;
mod writer;

pub use command::Question;
pub use error::StartError;
pub use planner::Planner;
pub use trial::try_proposal;

#[cfg(test)]
mod tests;
