//! A resource keeps nodes.

use domain::resources::KeptNodes;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::elsewhere::cluster;
use crate::life::held_nodes;

/// The nodes that a resource keeps for its agreements, all of them: those are bound when their slots begin.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct KeepNodes {
    /// The name of the resource.
    pub resource: String,
    /// The nodes.
    pub kept: Vec<KeptNodes>,
}

impl Command for KeepNodes {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let Self { resource, kept } = self;
        decider
            .state
            .schedules
            .note_nodes_kept_out_of_use(&resource, kept);
        cluster::note_reserved_on_cluster(decider, &resource);
        held_nodes::bind_as_held(decider, &resource);
        for agreement in decider
            .state
            .life
            .nodes_not_handed_over(&decider.state.agreements, &resource)
        {
            if let Some(since) = held_nodes::nodes_handed_over_since(decider.view(), &agreement) {
                held_nodes::note_nodes_handed_over(decider, agreement, since);
            }
        }
        Ok(DecisionStep::Done(()))
    }
}
