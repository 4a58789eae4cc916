//! The agreements on a resource are listed.

use domain::resources::ResourceAgreements;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::life::held_nodes;

/// The answer is the agreements that are not over and have their place on a resource, in order of start, with their nodes. The agreements
/// that commands wait for are among them.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct ListPlanned {
    /// The name of the resource.
    pub resource: String,
}

impl Command for ListPlanned {
    type Answer = ResourceAgreements;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(held_nodes::nodes_held_on(
            decider.view(),
            &self.resource,
        )))
    }
}
