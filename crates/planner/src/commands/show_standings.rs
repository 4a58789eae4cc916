//! It is told how the resources stand.

use domain::resources::NodeCounts;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::schedules::resource_plan::{NodeStatus, ResourcePlan};

/// The most nodes of a resource of which all are told. A longer list does not help to find the nodes that are not up.
const NODES_MAX: u32 = 64;

/// How a resource stands.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceStanding {
    /// Its name.
    pub name: String,
    /// Whether something is planned on it.
    pub has_work: bool,
    /// How many of its nodes stand how.
    pub counts: NodeCounts,
    /// Its nodes, by their numbers; where they are many, only those with a report that they are not up.
    pub nodes: Vec<NodeStatus>,
}

/// The answer is how the resources stand, without the retired ones that have nothing any more.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct ShowStandings;

impl Command for ShowStandings {
    type Answer = Vec<ResourceStanding>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let plans = decider.state.schedules.plans();
        Ok(DecisionStep::Done(plans.map(standing_of_resource).collect()))
    }
}

fn standing_of_resource(resource_plan: &ResourcePlan) -> ResourceStanding {
    let (resource, nodes) = (&resource_plan.resource, &resource_plan.nodes);
    ResourceStanding {
        name: resource.name.clone(),
        has_work: !resource_plan.schedule.is_empty(),
        counts: nodes.counts(resource.capacity),
        nodes: if resource.capacity <= NODES_MAX {
            resource_plan.statuses(0..resource.capacity)
        } else {
            resource_plan.statuses(nodes.reported(resource.capacity))
        },
    }
}
