//! Predictions of run times on the resources of this domain, from the stored past.
//!
//! [`Knowledge`] is made from the store as a whole, apart from its readers: reading an offer takes the present one. The keeper
//! makes a new one when executions have ended, and looks at the samples of resources every ten minutes.

mod cache;
mod candidates;
mod explain;
mod keeper;
mod knowledge;
mod machine;
mod machines;
mod pruning;
mod samples;
mod statements;
#[cfg(test)]
mod tests;
mod windows;
mod work;

pub use cache::{ForeseenWork, Ids};
pub use candidates::Source;
pub use explain::{EstimateExplanation, Explanation, STATED_RUNS_MIN};
pub use keeper::{LEARNED, Pace, Predictions, Setup, keep_knowledge, learn_for_machines, learn_from_store};
pub use knowledge::{GivenDurations, Knowledge};
pub use machine::sample_machine;
pub use machines::{Machine, Machines};
pub use pruning::{HistoryPolicy, prune_history};
pub use samples::sample_resource;
pub use statements::ResourceWeights;
pub use work::{Hold, Work};
