//! Files are being brought for a job.

use domain::agreement::{EventKind, Run};
use domain::clock::Micros;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::life::{billing, reports, update};

/// Files are being brought for an agreement's job since an instant: its slot is used from then on.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where that job does not run, or not any more,
/// [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored.
#[derive(Debug, Clone, Copy)]
pub struct ReportStaging {
    /// Which job.
    pub run: Run,
    /// Since when.
    pub since: Micros,
}

impl Command for ReportStaging {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let mut agreement = decider.live_agreement(reports::id_of_reported_run(decider.view(), self.run)?)?;
        if agreement.slot_started().is_some() || !agreement.is_being_brought() {
            return Ok(DecisionStep::Done(()));
        }
        let names: Vec<&str> = match &agreement.job {
            Some(job) => job.fetched().map(|(file, _)| file.name.as_str()).collect(),
            None => Vec::new(),
        };
        let detail = format!(
            "these files are brought before its process starts: {}",
            names.join(", ")
        );
        agreement.note_started(Some(self.since));
        let mut events = vec![decider.event(EventKind::Staging, detail)];
        events.extend(billing::assess_and_bill(decider, &mut agreement));
        update::update(decider, agreement, events);
        Ok(DecisionStep::Done(()))
    }
}
