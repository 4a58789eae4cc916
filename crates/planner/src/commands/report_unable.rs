//! A job can never be started.

use domain::agreement::{CannotStart, EventKind, Run, ServiceState};

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::life::{lost_work, reports};

/// An agreement with a job that can never be started, now or later, is to be ended: it is lost, and there is no restart.
///
/// # Errors
/// [`Error::NotFound`] where that job does not run, or not any more,
/// [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone)]
pub struct ReportUnable {
    /// Which job.
    pub run: Run,
    /// Why.
    pub why: CannotStart,
}

impl Command for ReportUnable {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let agreement = decider.live_agreement(reports::id_of_reported_run(decider.view(), self.run)?)?;
        if agreement.service != ServiceState::Processing {
            return Err(Error::NotFound);
        }
        let why = format!("its work cannot go on: {}", self.why.words());
        lost_work::lose_agreement_because(decider, agreement, EventKind::Ended, why);
        Ok(DecisionStep::Done(()))
    }
}
