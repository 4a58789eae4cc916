//! A resource may be closed for new promises.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// The answer is whether nothing new is promised on a resource before it has been checked.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct CheckClosed {
    /// Its name.
    pub resource: String,
}

impl Command for CheckClosed {
    type Answer = bool;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let is_closed = decider
            .state
            .schedules
            .closed()
            .any(|closed| closed == self.resource);
        Ok(DecisionStep::Done(is_closed))
    }
}
