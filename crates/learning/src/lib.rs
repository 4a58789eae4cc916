//! The tasks around predictions: one makes new knowledge of the stored past when there is something to be learned, others sample this
//! machine, and one lets go of what neither predictions nor the provider's policy need.

mod keeper;
mod machine;
mod pruning;
mod samples;
#[cfg(test)]
mod tests;

pub use keeper::{LearningPace, Setup, keep_knowledge, learn_for_machines, learn_from_store};
pub use machine::sample_machine;
pub use pruning::{HistoryPolicy, prune_history};
pub use samples::sample_resource;
