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
            placed.constraints.keep_shape();
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

#[cfg(test)]
mod tests {
    use domain::agreement::{AgreementState, Shape, ShapeChanges};
    use domain::resources::{PEER, Resource, Scaling};
    use scheduler::{Interval, Time};
    use uuid::Uuid;

    use super::*;
    use crate::Request;
    use crate::tests::harness::{Domain, proposal};

    #[test]
    fn what_goes_to_a_peer_keeps_its_shape() {
        let mut domain = Domain::new(vec![
            Resource::new("here", "local", 4),
            Resource::new("there", PEER, 4),
        ]);
        let sizes = [(4, 100), (2, 200)].map(|(nodes, duration)| Shape { nodes, duration });
        let sized = Request {
            shapes: sizes.to_vec(),
            scaling: Scaling::ReferenceRate,
            ..proposal(4, 100, (100, 500))
        };
        let agreement = domain.place(sized).unwrap().agreement;
        let open = |agreement: &Agreement| agreement.constraints.open_shape_changes();
        assert_ne!(open(&agreement), Some(ShapeChanges::NONE));
        let asked = domain.decide(|decider| {
            decider.try_out(|tried| peer_places::find_peer_place_to_ask(&mut tried.search(), &agreement, 0))
        });
        assert_eq!(open(&asked.unwrap().unwrap()), Some(ShapeChanges::NONE));
        let row = AtPeer {
            id: Uuid::from_u128(7),
            agreement: agreement.id,
            peer: "there".into(),
            address: None,
            intent: None,
            price: None,
            made: 0,
            state: AgreementState::Observed.word().into(),
            charged: 0,
            paid_back: 0,
            lost: false,
            guarantees: Vec::new(),
            settled: None,
        };
        let slot = (Interval::new(Time(110), Time(210)), 4);
        domain
            .decide(|decider| decider.decide(MoveToPeer { row, slot }))
            .unwrap();
        let moved = domain.of(agreement.id);
        assert_eq!(
            (moved.resource.as_str(), open(moved)),
            ("there", Some(ShapeChanges::NONE))
        );
    }
}
