//! An agreement that has lost its place here moves to the peer that carries it out.

use domain::agreement::{Agreement, AtPeer, EventKind, Stretch};
use domain::change::Change;

use super::{Command, Decision};
use domain::clock::time_difference_in_words;

use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::life::update;
use crate::placement::peer_places;

/// A peer is to carry out an agreement without a place, in a slot that the peer has agreed to. Where it is over meanwhile, the peer's is
/// stored only.
///
/// # Errors
/// [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone)]
pub struct MoveToPeer {
    /// The agreement of the peer.
    pub row: AtPeer,
    /// Its slot.
    pub slot: Stretch,
}

impl Command for MoveToPeer {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let (row, (slot, nodes)) = (self.row, self.slot);
        let waits = decider.state.agreements.get(row.agreement);
        let waits = waits.filter(|agreement| agreement.is_waiting()).cloned();
        let has_place = decider.state.schedules.place_of(&row.peer).is_some();
        if let Some(agreement) = waits.filter(|_| has_place) {
            let before = agreement.slots[0].placement.start;
            let mut placed = Agreement {
                resource: row.peer.clone(),
                fixed: true,
                ..agreement.clone()
            };
            placed.place_slot(0, (slot, nodes));
            if !peer_places::try_move_to_peer_place(&mut decider.search(), &agreement, &placed) {
                return Err(Error::Unavailable);
            }
            let moved = time_difference_in_words(slot.start - before);
            let event = decider.event(EventKind::Moved, format!("to {}, {moved}", row.peer));
            update::update(decider, placed, vec![event]);
        }
        decider.batch.push(Change::PutAtPeer(row));
        Ok(DecisionStep::Done(()))
    }
}
