//! A peer carries out an agreement that has lost its place here.

use domain::agreement::{Agreement, AtPeer, EventKind, Stretch};
use domain::change::Change;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::life::{place_at_peer, update};
use crate::placement::transaction;
use crate::words::time_difference_in_words;

/// A peer is to carry out an agreement without a place, in a slot that the peer has agreed to. Where it is over meanwhile, the peer's is
/// stored only.
///
/// # Errors
/// [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone)]
pub struct PlaceSought {
    /// The agreement of the peer.
    pub row: AtPeer,
    /// Its slot.
    pub slot: Stretch,
}

impl Command for PlaceSought {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let (row, (slot, nodes)) = (self.row, self.slot);
        let sought = decider
            .state
            .agreements
            .get(row.agreement)
            .filter(|plan| plan.is_waiting())
            .cloned();
        let at = decider.state.schedules.place_of(&row.peer);
        if let Some((agreement, at)) = sought.zip(at) {
            let now = decider.present_second();
            let before = agreement.slots[0].placement.start;
            let placed = transaction::run_trial(&mut decider.search(), |search| {
                search
                    .placement
                    .take_slot_out(search.schedules, &agreement, 0, now);
                let (_, number) = search.placement.planned_slot(search.schedules, &agreement, 0)?;
                let mut placed = Agreement {
                    resource: row.peer.clone(),
                    fixed: true,
                    ..agreement.clone()
                };
                placed.place_slot(0, (slot, nodes));
                place_at_peer::try_put_at_peer(search, &placed, number, at).then_some(placed)
            });
            let placed = placed.ok_or(Error::Unavailable)?;
            let moved = time_difference_in_words(slot.start - before);
            let event = decider.event(EventKind::Moved, format!("to {}, {moved}", row.peer));
            update::update(decider, placed, vec![event]);
        }
        decider.batch.push(Change::PutAtPeer(row));
        Ok(DecisionStep::Done(()))
    }
}
