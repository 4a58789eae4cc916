//! An agreement ends that has lost its place here and that no peer carries out.

use domain::agreement::EventKind;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::life::lost_work;

/// An agreement without a place that no peer carries out is to be ended.
///
/// # Errors
/// [`Error::NotFound`] where it is over already, [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone, Copy)]
pub struct EndWithoutPeer(pub Uuid);

impl Command for EndWithoutPeer {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let agreement = decider.live_agreement(self.0)?;
        if !decider.state.schedules.is_at_peer(&agreement) {
            return Err(Error::NotFound);
        }
        let why = "its place is gone, and no other domain carries it out";
        if agreement.is_waiting() {
            let now = decider.present_second();
            decider
                .state
                .placement
                .take_slot_out(&mut decider.state.schedules, &agreement, 0, now);
            lost_work::break_lost_without_place(decider, agreement, 0, why);
        } else {
            lost_work::lose_agreement_because(decider, agreement, EventKind::Broken, why.to_owned());
        }
        Ok(DecisionStep::Done(()))
    }
}
