//! The work of an agreement has ended.

use domain::agreement::{JobEnd, Run};

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::life::reports;

/// An agreement's work ended: its guarantees are assessed, it is complete, the rest of its slot is free, and its execution is kept, in
/// one transaction.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where that job does not run, or not any more,
/// [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored.
#[derive(Debug, Clone)]
pub struct ReportEnded {
    /// Which job.
    pub run: Run,
    /// How it ended.
    pub end: JobEnd,
}

impl Command for ReportEnded {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let id = reports::id_of_reported_run(decider.view(), self.run)?;
        reports::record_reported_end(decider, id, &self.end).map(DecisionStep::Done)
    }
}
