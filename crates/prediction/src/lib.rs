//! Predictions of run times on the resources of this domain, from past executions and samples.
//!
//! [`Knowledge`] is made from them as a whole, apart from its readers: reading an offer takes the present one of [`Predictions`]. Who
//! reads the past, and when, is not known here.

mod cache;
mod candidates;
mod explain;
mod knowledge;
mod machines;
mod predictions;
mod statements;
mod windows;
mod work;

pub use cache::{ForeseenWork, Ids};
pub use candidates::Source;
pub use explain::{EstimateExplanation, Explanation, STATED_RUNS_MIN};
pub use knowledge::{GivenDurations, Knowledge};
pub use machines::{Machine, Machines};
pub use predictions::Predictions;
pub use statements::ResourceWeights;
pub use work::{Hold, Work};
