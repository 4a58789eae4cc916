//! How nodes stand, as operators see it and say it.

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::resources::resource_plan::NodeStatus;

impl Decider<'_> {
    /// The names of some nodes of a resource, for people.
    pub(crate) fn names_of(&self, resource: &str, nodes: &[u32]) -> String {
        let one_resource = self.plan.schedules.named(resource);
        one_resource.map_or_else(String::new, |each| each.resource.names_of(nodes))
    }

    /// How the nodes of a resource stand.
    pub(crate) fn nodes(&self, resource: &str) -> Result<Vec<NodeStatus>> {
        let Some(resource_plan) = self.plan.schedules.named(resource) else {
            let known = self.plan.schedules.named_or_gone(resource);
            return known.map(|_| Vec::new()).ok_or(Error::NotFound);
        };
        Ok(resource_plan.statuses(0..resource_plan.resource.capacity))
    }
}
