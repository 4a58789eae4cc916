//! A job has started.

use domain::agreement::Run;
use domain::clock::Micros;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::life::reports;

/// An agreement's process really started at an instant.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where that job does not run, or not any more,
/// [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored.
#[derive(Debug, Clone, Copy)]
pub struct ReportStarted {
    /// Which job.
    pub run: Run,
    /// When.
    pub at: Micros,
}

impl Command for ReportStarted {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let id = reports::id_of_reported_run(decider.view(), self.run)?;
        reports::record_reported_start(decider, id, self.at, None).map(DecisionStep::Done)
    }
}
