//! The nodes of resources are counted.

use domain::resources::{NodeCounts, Resource};

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// The answer is the resources, the retired ones among them, and how many nodes of each stand how at one moment; none where it is retired
/// and nothing is planned on it.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct CountNodes;

impl Command for CountNodes {
    type Answer = Vec<(Resource, Option<NodeCounts>)>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let resources = decider.state.schedules.list().into_iter();
        let count = |resource: Resource| {
            let one_resource = decider.state.schedules.named(&resource.name);
            let counts = one_resource.map(|there| there.nodes.counts(resource.capacity));
            (resource, counts)
        };
        Ok(DecisionStep::Done(resources.map(count).collect()))
    }
}
