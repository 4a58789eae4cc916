//! The contents of the plan are counted.

use super::{Command, Decision};
use crate::census;
use crate::census::Census;
use crate::decider::{Decider, DecisionStep};

/// The answer is how the plan stands, in numbers: O(p + r log n) for p agreements in their slots and r resources.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct TakeCensus;

impl Command for TakeCensus {
    type Answer = Census;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(census::census(decider.view())))
    }
}
