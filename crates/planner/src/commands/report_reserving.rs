//! A cluster reserves slots.

use scheduler::{Seconds, Time};
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

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
        let waiting = &mut decider.state.elsewhere;
        waiting.note_refused(&resource, &refused);
        waiting.set_within(resource, within);
        Ok(DecisionStep::Done(()))
    }
}
