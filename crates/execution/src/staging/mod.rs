//! Files that are moved for jobs over HTTP: brought from addresses before a job's process starts, sent to addresses after it has
//! completed, both inside its slot.
//!
//! The lane of a resource asks how the files of a run stand, again and again, and has them moved by that: each order is a task. How
//! far each file has come is in the job's folder, so that the next process of the service goes on there. A fault of the other end, or
//! of the request, is the party's. One of this service is not: what it keeps from being done in its slot is lost.

mod stager;
mod transfer;
mod transfer_log;

pub use stager::Stager;
pub(crate) use stager::{Order, OrderState};
pub use transfer::TransferRules;
