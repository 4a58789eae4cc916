//! How nodes stand, as operators see it and say it.

use crate::context::View;
use crate::error::{Error, Result};
use crate::schedules::resource_plan::NodeStatus;

/// How the nodes of a resource stand.
pub(crate) fn statuses_of_nodes(view: View<'_>, resource: &str) -> Result<Vec<NodeStatus>> {
    let Some(resource_plan) = view.schedules.named(resource) else {
        let known = view.schedules.named_or_gone(resource);
        return known.map(|_| Vec::new()).ok_or(Error::NotFound);
    };
    Ok(resource_plan.statuses(0..resource_plan.resource.capacity))
}
