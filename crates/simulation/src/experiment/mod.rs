//! The papers' experiments, by name.

pub mod flexible;
