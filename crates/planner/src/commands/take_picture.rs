//! A picture of a part of the plan is taken.

use scheduler::Interval;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::picture;
use crate::picture::Picture;

/// The answer is the plan of a resource in a time: O(k log n) for k slots that are shown.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct TakePicture {
    /// The name of the resource; the first where none is named.
    pub resource: Option<String>,
    /// The time that is shown.
    pub period: Interval,
    /// The most slots that are shown one by one.
    pub slots_max: usize,
}

impl Command for TakePicture {
    type Answer = Picture;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let resource = self.resource.as_deref();
        let picture = picture::picture(decider.view(), resource, self.period, self.slots_max);
        Ok(DecisionStep::Done(picture))
    }
}
