//! A peer may change an agreement that it has.

use domain::agreement::{Agreement, Slots};
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::elsewhere::peer;
use crate::error::{Error, OfferLoss};
use crate::placement::trial;
use crate::table::{holds, replace};

/// Makes sure that there is room here for a change of an agreement at its peer, before the peer is asked for that. What is held for the
/// answer in which the change was offered is free for it.
///
/// # Errors
/// [`Error::Lost`] where there is none, [`Error::NotFound`] where it is over.
#[derive(Debug, Clone)]
pub struct CheckChangeAtPeer {
    /// Which agreement.
    pub agreement: Uuid,
    /// What the peer is to make of its slots.
    pub slots: Slots,
    /// The answer in which the change was offered.
    pub answer: Option<Uuid>,
}

impl Command for CheckChangeAtPeer {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let old = decider.live_agreement(self.agreement)?;
        let at = decider.state.schedules.required_place_of(&old.resource);
        let at = at.ok_or(Error::Unavailable)?;
        let goes_on = old.is_being_carried_out();
        let slots = if goes_on {
            old.slots.ending(self.slots.placement().end)
        } else {
            self.slots
        };
        let (next, number) = (
            Agreement { slots, ..old.clone() },
            decider.state.placement.next_number(),
        );
        let fits = trial::suppose_in_trial(&mut decider.search(), |search| {
            if self.answer.is_some() {
                holds::vacate_hold(search, self.agreement);
            }
            if goes_on {
                replace::lift_replaced_agreement(search, old.id).is_ok()
                    && peer::try_put_rest_at_peer(search, (&next, number), at)
            } else {
                peer::try_replace_at_peer(search, Some(&old), (&next, number), at)
            }
        });
        if fits {
            Ok(DecisionStep::Done(()))
        } else {
            Err(Error::Lost(OfferLoss::Withdrawn))
        }
    }
}
