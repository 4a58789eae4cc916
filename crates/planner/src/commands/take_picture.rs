//! A picture of the plan is taken.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::picture;
use crate::picture::Picture;

/// The answer is a picture of the plan: O(n log n) for n slots.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct TakePicture;

impl Command for TakePicture {
    type Answer = Picture;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(picture::picture(decider.view())))
    }
}
