//! How nodes stand that are not up.

use super::engine::{Dialect, Value};
use super::rows::Columns;
use super::{Error, Store, on, statements};
use crate::clock::Micros;

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
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn node_states(&self) -> Result<Vec<NodeRow>, Error> {
        on!(self, database => database.read(statements::NODE_STATES, &[], read).await)
    }
}

fn read<D: Dialect>(row: &Columns<'_, D>) -> Result<NodeRow, Error> {
    Ok(NodeRow {
        resource: row.text("resource")?,
        node: row.count("node")?,
        reporter: row.text("reporter")?,
        state: row.text("state")?,
        since: row.integer("since_us")?,
        reason: row.maybe_text("reason")?,
    })
}

/// The columns of [`super::bulk::INSERT_NODE_STATES`].
pub(super) fn row(of: &NodeRow) -> [Value<'_>; 6] {
    [
        (&of.resource).into(),
        of.node.into(),
        (&of.reporter).into(),
        (&of.state).into(),
        of.since.into(),
        (&of.reason).into(),
    ]
}
