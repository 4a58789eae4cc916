//! The agreements with a running job are listed.

use domain::agreement::Agreement;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// The answer is the agreements with a job that runs or is about to run, including the agreements that are being terminated.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct ListRunning;

impl Command for ListRunning {
    type Answer = Vec<Agreement>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(
            decider.state.life.running(&decider.state.agreements),
        ))
    }
}
