//! An agreement is made at a peer, under a key that is stored here before the peer is asked. So the question can be repeated after any cut,
//! until the word of the peer is known.

use domain::agreement::AtPeer;
use domain::clock::Clock;
use planner::HolderWord;

use super::client::{Peer, PeerError};

/// Asks a peer for an agreement that is intended there. Answers how the agreement stands by the word of the peer, and the reasons of a refusal.
pub async fn make_at_peer(peer: &Peer, row: AtPeer, clock: &Clock) -> HolderWord<AtPeer, (AtPeer, String)> {
    let Some(intent) = &row.intent else {
        return HolderWord::Silent;
    };
    let replaces = intent.replaces.as_deref();
    let made = peer
        .create(&intent.negotiation, &intent.document, replaces, row.id)
        .await;
    match made {
        Ok(address) => HolderWord::Held(row.made_at(address)),
        Err(PeerError::Refused { words, .. }) => HolderWord::Refused((row.refused(clock.micros()), words)),
        Err(why) => {
            tracing::info!(agreement = %row.agreement, peer = row.peer, error = %why, "the peer's word is not known; it is asked again");
            HolderWord::Silent
        }
    }
}
