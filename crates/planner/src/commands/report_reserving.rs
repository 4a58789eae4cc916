//! A cluster reserves slots.

use scheduler::{Interval, Seconds, Time};
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::waiting::ReservationState;

/// The agreements that a resource could not reserve nodes for, with the begins of their slots, and from how many seconds before their
/// begin it reserves slots: slots that begin within that time are promised from now on when their nodes are held.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct ReportReserving {
    /// The name of the resource.
    pub resource: String,
    /// The agreements, with the begins of their slots.
    pub refused: Vec<(Uuid, Time)>,
    /// From how many seconds before their begin on slots are reserved.
    pub within: Seconds,
}

impl Command for ReportReserving {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let Self {
            resource,
            refused,
            within,
        } = self;
        let reserving = &mut decider.state.waiting;
        reserving.within.insert(resource.clone(), within);
        for waiting in reserving.waiting.values_mut() {
            // A slot that was tried before says nothing of this one.
            let is_refused =
                |(slot, _): &(Interval, u32)| refused.contains(&(waiting.agreement.id, slot.start));
            let is_its =
                waiting.agreement.resource == resource && waiting.agreement.loads().iter().any(is_refused);
            let is_moved = waiting.moved.iter().any(|moved| {
                moved.resource == resource && refused.contains(&(moved.execution_id(), moved.slot().start))
            });
            if (is_its || is_moved) && waiting.outcome == ReservationState::Unknown {
                waiting.outcome = ReservationState::Refused;
            }
        }
        Ok(DecisionStep::Done(()))
    }
}
