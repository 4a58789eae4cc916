//! Predictions of run times on the resources of this domain, from past executions and samples.
//!
//! [`Knowledge`] is made from them as a whole, apart from its readers: reading an offer takes the present one of [`Predictions`]. Who
//! reads the past, and when, is not known here.

mod cache;
mod candidates;
mod explain;
mod foreseen_work;
mod knowledge;
mod last_runs;
mod last_values;
mod machines;
mod predictions;
mod work;

pub use candidates::Source;
pub use explain::{EstimateExplanation, Explanation, STATED_RUNS_MIN};
pub use foreseen_work::{ForeseenWork, Ids};
pub use knowledge::{GivenDurations, Knowledge, ResourceWeights};
pub use machines::{Machine, Machines};
pub use predictions::Predictions;
pub use work::{Hold, Work};
