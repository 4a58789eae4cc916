//! How nodes stand that are not up.

use domain::clock::Micros;

use crate::database::Store;
use crate::engine::{Record, Result, record, statements};

/// A node that is not up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// Name of the resource.
    pub resource: String,
    /// Number of the node.
    pub node: u32,
    /// The reporter, in a word.
    pub reporter: String,
    /// How it stands, in a word.
    pub state: String,
    /// Since when.
    pub since: Micros,
    /// The reason, where one is given.
    pub reason: Option<String>,
}

impl Store {
    /// The nodes that are not up, by resource and number.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn node_states(&self) -> Result<Vec<NodeRow>> {
        self.read(statements::NODE_STATES, &[], NodeRow::of).await
    }
}

record! { NodeRow: resource, node, reporter, state, since "since_us", reason }
