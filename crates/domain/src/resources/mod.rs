//! The resources of a domain and their nodes.

mod rows;

pub use rows::{Binding, NodeRow, ResourceRow};
