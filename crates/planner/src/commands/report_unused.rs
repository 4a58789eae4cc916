//! Nodes are not used.

use domain::agreement::{AgreementState, EventKind, RunOutcome, ServiceState};
use domain::resources::Unused;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::life::update;

/// A party does not use the nodes that its agreement without a job has been given: it is warned, or they are taken back.
///
/// # Errors
/// [`Error::NotFound`] where no such agreement has its slot now, [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone, Copy)]
pub struct ReportUnused {
    /// Which agreement.
    pub agreement: Uuid,
    /// What is to be done.
    pub unused: Unused,
}

impl Command for ReportUnused {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let mut agreement = decider.live_agreement(self.agreement)?;
        if agreement.service != ServiceState::Idle || agreement.never_had_nodes() {
            return Err(Error::NotFound);
        }
        let events = match self.unused {
            Unused::Warn => vec![decider.event(EventKind::Unused, "nobody uses its nodes")],
            Unused::Reclaim => {
                let taken = "nobody has used its nodes: they are given to others".to_owned();
                let mut events = vec![decider.event(EventKind::Unused, taken)];
                agreement.outcome = Some(RunOutcome::Completed);
                events.extend(update::update_to_closed(
                    decider,
                    &mut agreement,
                    AgreementState::Complete,
                    decider.now,
                )?);
                events
            }
        };
        update::update(decider, agreement, events);
        Ok(DecisionStep::Done(()))
    }
}
