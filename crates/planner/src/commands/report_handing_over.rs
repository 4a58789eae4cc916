//! A cluster hands slots over.

use scheduler::Seconds;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// From how many seconds before their begin a resource reserves the slots that it hands over to their parties.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct ReportHandingOver {
    /// The name of the resource.
    pub resource: String,
    /// How many seconds.
    pub within: Seconds,
}

impl Command for ReportHandingOver {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let waiting = &mut decider.state.elsewhere;
        waiting.set_handed_within(self.resource, self.within);
        Ok(DecisionStep::Done(()))
    }
}
