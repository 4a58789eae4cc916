//! Nothing is left of a lost job.

use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// Nothing is left of the job that an agreement had when its work was lost, which waits to be run again.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct ReportStopped(pub Uuid);

impl Command for ReportStopped {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        decider.state.life.forget_lost_work(self.0);
        Ok(DecisionStep::Done(()))
    }
}
