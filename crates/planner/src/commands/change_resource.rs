//! Something is done with a resource.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::resources::change;
use crate::resources::orders::{ResourceChanges, ResourceVerb};
use uuid::Uuid;

/// An operator's word about a resource: something is to be done with it. The answer is what follows.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where there is no such resource to retire, restore, freeze or thaw,
/// [`Error::Unfit`](crate::Error::Unfit) where it cannot be so, [`Error::Unavailable`](crate::Error::Unavailable) where it could not be
/// stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeResource {
    /// Its own, in the audit trail.
    pub id: Uuid,
    /// Who gives it.
    pub party: String,
    /// Name of the resource.
    pub name: String,
    /// What is to be done.
    pub verb: ResourceVerb,
}

impl Command for ChangeResource {
    type Answer = ResourceChanges;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let next = change::changed_resource(decider.view(), &self.name, self.verb)?;
        let mut changes = change::set_resources(decider, vec![next.clone()], (self.id, Some(self.party)));
        if changes.resources.is_empty() {
            // It was so before.
            changes.resources.push((next, String::new()));
        }
        Ok(DecisionStep::Done(changes))
    }
}
