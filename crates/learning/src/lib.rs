//! The tasks around predictions: one makes new knowledge of the stored past when there is something to be learned, others sample this
//! machine, and one lets go of what neither predictions nor the provider's policy need.

mod learning;
mod machine_counters;
mod pruning;
mod samples;
#[cfg(test)]
mod tests;

pub use learning::{LearningPace, Setup, keep_knowledge, learn_for_machines, learn_from_store};
pub use pruning::{HistoryPolicy, prune_history};
pub use samples::{sample_machine, sample_resource};
