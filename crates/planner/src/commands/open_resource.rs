//! A resource is opened for new promises.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;

/// A resource is to be opened for new promises, where it was configured as closed.
///
/// # Errors
/// [`Error::NotFound`] where there is no such resource, [`Error::Unavailable`] when the planner has stopped.
#[derive(Debug, Clone)]
pub struct OpenResource {
    /// Its name.
    pub resource: String,
}

impl Command for OpenResource {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let at = decider.state.schedules.place_of(&self.resource);
        decider.state.schedules.open(at.ok_or(Error::NotFound)?);
        Ok(DecisionStep::Done(()))
    }
}
