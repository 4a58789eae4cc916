//! The past: past executions and samples, and how old rows become sums or move to the archive.

pub mod archive;
pub mod execution_hours;
pub mod past_executions;
pub mod pruning;
pub mod samples;
