//! The past: past executions and samples, and how old rows become sums or move to the archive.

pub(super) mod archive;
pub(super) mod past_executions;
pub(super) mod pruning;
