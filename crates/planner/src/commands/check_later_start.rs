//! A job may start later in another slot.

use domain::agreement::Agreement;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::life::lost_work;
use crate::life::lost_work::MISSES_MAX;
use crate::placement::find::RESTART;
use crate::placement::{find, trial};

/// The answer is whether there is another slot for the job of an agreement. Its slot has begun, and the job has not been started.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone, Copy)]
pub struct CheckLaterStart(pub Uuid);

impl Command for CheckLaterStart {
    type Answer = bool;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let Some(agreement) = decider.state.agreements.get(self.0).cloned() else {
            return Ok(DecisionStep::Done(false));
        };
        if !lost_work::may_retry_lost_slot(decider.view(), &agreement, |job| job.missed < MISSES_MAX) {
            return Ok(DecisionStep::Done(false));
        }
        let (index, next) = (
            agreement.slots_over(),
            lost_work::second_after_loss(decider.view()),
        );
        let waits = Agreement {
            ready: agreement.ready.max(next),
            ..agreement.clone()
        };
        let found = trial::suppose_in_trial(&mut decider.search(), |search| {
            search
                .placement
                .take_slot_out(search.schedules, &agreement, index, next);
            find::find_place(search, &waits, index, RESTART, next).is_some()
        });
        Ok(DecisionStep::Done(found))
    }
}
