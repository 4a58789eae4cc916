//! How nodes stand that are not up.

use crate::clock::Micros;
use crate::store::database::Store;
use crate::store::engine::{Columns, Error, Value, statements};

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
        self.read(statements::NODE_STATES, &[], read).await
    }
}

fn read(row: &Columns<'_>) -> Result<NodeRow, Error> {
    Ok(NodeRow {
        resource: row.text("resource")?,
        node: row.count("node")?,
        reporter: row.text("reporter")?,
        state: row.text("state")?,
        since: row.integer("since_us")?,
        reason: row.maybe_text("reason")?,
    })
}

/// The columns of [`crate::store::engine::bulk::INSERT_NODE_STATES`].
pub(in crate::store) fn row(of: &NodeRow) -> [Value<'_>; 6] {
    [
        (&of.resource).into(),
        of.node.into(),
        (&of.reporter).into(),
        (&of.state).into(),
        of.since.into(),
        (&of.reason).into(),
    ]
}
