//! Work that is lost while it may still run: its agreement is over, and its job is to be stopped.

use domain::agreement::{Agreement, EventKind};

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::life::pieces;
use crate::plan::Plan;
use crate::table::negotiate;

/// Ends an agreement at once because the provider takes its time back. Its work is lost, and nothing is charged. Its
/// guarantees are judged as they are; where the provider has excused itself in general, they pay nothing.
///
/// # Errors
/// [`Error::Unavailable`] where it cannot be closed.
pub(crate) fn end_taken_back(decider: &mut Decider<'_>, mut agreement: Agreement) -> Result<Agreement> {
    if agreement.state.terminating().is_none() {
        // Its party has ended it already.
        return Ok(agreement);
    }
    if !decider.settings.failures.taken_back_pays {
        for guarantee in &mut agreement.guarantees {
            guarantee.values.penalties.clear();
        }
    }
    let detail = format!("the operator of {} has taken its time back", agreement.resource);
    let lost = pieces::lose_agreement_because(decider, agreement, EventKind::Broken, detail);
    let lost = lost.ok_or(Error::Unavailable)?;
    negotiate::release_holds_about(decider, lost.id);
    Ok(lost)
}

impl Plan {
    /// Takes back the agreements with lost work. It checks again whether anything of the work still runs, because it is not
    /// known whether that was told to stop and has recorded its end. A slot that was lost within this second, begun or not, counts
    /// until the second is over.
    pub fn recall_lost(&mut self, lost: Vec<Agreement>) {
        let loads = lost.iter().flat_map(Agreement::loads);
        let kept = loads.filter(|(time, _)| (time.start..time.end).contains(&self.life.made()));
        if let Some(until) = kept.map(|(time, _)| time.end).max() {
            self.schedules.advance(until);
        }
        for agreement in lost {
            // A resource that is not known has no executor to ask; one that is retired has.
            if self.schedules.named_or_gone(&agreement.resource).is_some() {
                self.life.stop_lost_work_later(agreement);
            }
        }
    }
}
