//! A party can name the reservation that its cluster hands over to it.

use scheduler::Time;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// The answer is from when on the cluster of an agreement has a reservation for it, as far as is foreseen; none where the cluster has it, or
/// where the agreement is over.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct ForeseeReservation(pub Uuid);

impl Command for ForeseeReservation {
    type Answer = Option<Time>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(reservation_foreseen_at(decider, self.0)))
    }
}

/// From when on the cluster has it.
fn reservation_foreseen_at(decider: &Decider<'_>, id: Uuid) -> Option<Time> {
    let agreement = decider.state.agreements.get(id).filter(|plan| plan.is_placed())?;
    let resource = decider.state.schedules.named(&agreement.resource)?;
    if resource.kept_for(agreement).is_some() {
        return None;
    }
    // A cluster that has not been seen yet reserves it by its begin at the latest.
    let within = decider.state.elsewhere.handed_within(&agreement.resource);
    let due = agreement.slot().start - within;
    Some(due.max(decider.present_second()))
}
