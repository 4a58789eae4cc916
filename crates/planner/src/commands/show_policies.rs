//! The rules for parties are told.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::settings::Policies;

/// The answer is the rules for parties that are in force.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct ShowPolicies;

impl Command for ShowPolicies {
    type Answer = Policies;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(decider.settings.policies()))
    }
}
