//! The nodes of a resource are listed.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::resources::node_status;
use crate::schedules::resource_plan::NodeStatus;

/// The answer is how the nodes of a resource stand, by their numbers; none of a retired resource on which nothing is planned.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where there is no such resource, [`Error::Unavailable`](crate::Error::Unavailable) when the
/// planner has stopped.
#[derive(Debug, Clone)]
pub struct ListNodes {
    /// Its name.
    pub resource: String,
}

impl Command for ListNodes {
    type Answer = Vec<NodeStatus>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        node_status::statuses_of_nodes(decider.view(), &self.resource).map(DecisionStep::Done)
    }
}
