//! How nodes stand that are not up.

use domain::resources::NodeRow;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// The nodes that are not up, by resource and number.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn node_states(store: &Store) -> Result<Vec<NodeRow>> {
    store.read(statements::NODE_STATES, &[], NodeRow::of).await
}

record! { NodeRow: resource, node, reporter, state, since "since_us", reason }
