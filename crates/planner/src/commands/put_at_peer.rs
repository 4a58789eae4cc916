//! An agreement at a peer is stored.

use domain::agreement::AtPeer;
use domain::change::Change;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// An agreement at a peer is to be stored, or that one is to be made there.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored.
#[derive(Debug, Clone)]
pub struct PutAtPeer(pub AtPeer);

impl Command for PutAtPeer {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        decider.batch.push(Change::PutAtPeer(self.0));
        Ok(DecisionStep::Done(()))
    }
}
