//! The nodes of an agreement are listed.

use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// The answer is the numbers of the nodes that an agreement has been given for its slot; none before that has begun.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct ListBoundNodes(pub Uuid);

impl Command for ListBoundNodes {
    type Answer = Vec<u32>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let nodes = decider.state.life.nodes_of(self.0).cloned();
        Ok(DecisionStep::Done(nodes.unwrap_or_default()))
    }
}
