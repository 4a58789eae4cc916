//! A job has started with the files that were brought for it.

use domain::agreement::{BroughtFiles, Run};
use domain::clock::Micros;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::life::reports;

/// An agreement's process has started, with the files that were brought for it, and since when they were.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where that job does not run, or not any more,
/// [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored.
#[derive(Debug, Clone)]
pub struct ReportBrought {
    /// Which job.
    pub run: Run,
    /// Since when files were brought.
    pub since: Micros,
    /// The files.
    pub brought: BroughtFiles,
}

impl Command for ReportBrought {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let id = reports::id_of_reported_run(decider.view(), self.run)?;
        reports::record_reported_start(decider, id, self.since, Some(self.brought)).map(DecisionStep::Done)
    }
}
