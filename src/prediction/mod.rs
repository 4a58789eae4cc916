//! Predictions of run times on the resources of this domain, from the stored past.
//!
//! [`Knowledge`] is made from the store as a whole, apart from its readers: reading an offer takes the present one. The keeper
//! makes a new one when executions have ended, and looks at the samples of resources every ten minutes.

mod keeper;
mod knowledge;
mod machine;
mod pruning;
mod samples;

pub use keeper::{LEARNED, Predictions, keep, learn};
pub use knowledge::{Explanation, Given, Knowledge, Slot, Work};
pub use machine::sample;
pub use pruning::{HistoryPolicy, prune};
pub use samples::sample_with;
