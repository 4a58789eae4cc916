//! From when on a party can name the reservation that its cluster hands over to it.

use scheduler::{Seconds, Time};
use uuid::Uuid;

use crate::decider::Decider;

impl Decider<'_> {
    /// Notes from how many seconds before their begin a resource reserves the slots that it hands over to their parties.
    pub fn note_handing_over(&mut self, resource: String, within: Seconds) {
        self.plan.reserving.handed_within.insert(resource, within);
    }

    /// From when on the cluster of an agreement has a reservation for it, as far as is foreseen; none where the cluster has it, or
    /// where the agreement is over.
    pub fn reservation_due(&self, id: Uuid) -> Option<Time> {
        let agreement = self.plan.get(id).filter(|plan| plan.is_placed())?;
        let resource = self.plan.resources.named(&agreement.resource)?;
        if resource.kept_for(agreement).is_some() {
            return None;
        }
        // A cluster that has not been seen yet reserves it by its begin at the latest.
        let within = self.plan.reserving.handed_within.get(&agreement.resource);
        let due = agreement.slot().start - within.copied().unwrap_or_default();
        Some(due.max(self.present_second()))
    }
}
