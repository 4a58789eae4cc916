//! How nodes stand that are not up.

use super::engine::{Dialect, execute};
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
    /// Who says so, in a word.
    pub reporter: String,
    /// How it stands, in a word.
    pub state: String,
    /// Since when.
    pub since: Micros,
    /// Why, where that is said.
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

/// Stores how a node stands.
pub(super) async fn put<D: Dialect>(connection: &mut D::Connection, of: &NodeRow) -> Result<(), sqlx::Error> {
    forget::<D>(connection, &of.resource, of.node, &of.reporter).await?;
    let values = [
        (&of.resource).into(),
        of.node.into(),
        (&of.reporter).into(),
        (&of.state).into(),
        of.since.into(),
        (&of.reason).into(),
    ];
    execute::<D>(connection, statements::PUT_NODE_STATE, &values).await?;
    Ok(())
}

/// Forgets what somebody has said of a node.
pub(super) async fn forget<D: Dialect>(
    connection: &mut D::Connection,
    resource: &str,
    node: u32,
    reporter: &str,
) -> Result<(), sqlx::Error> {
    let key = [resource.into(), node.into(), reporter.into()];
    execute::<D>(connection, statements::FORGET_NODE_STATE, &key).await?;
    Ok(())
}
