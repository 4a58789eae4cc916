//! Credit at peers: what is agreed with one may cost no more than its settings say.

use domain::agreement::Money;
use planner::OfferLoss;
use store::negotiations;
use tokio::sync::MutexGuard;
use uuid::Uuid;

use crate::views::lost_offer::LostOffer;
use crate::{Error, Result, Service};
use federation::Federation;
use federation::client::Peer;

/// Makes sure that what is agreed at a peer may cost this much more, beside what is agreed there and what it is still to be asked
/// about, for the offer or agreement `id`, which takes the place of the peer's at the address `replaces`. Until the lock is given back, nothing else is agreed there.
///
/// # Errors
/// [`Error::Lost`] where it may not.
pub(crate) async fn take_peer_credit<'a>(
    service: &Service,
    federation: &'a Federation,
    (peer, replaces): (&str, Option<&str>),
    id: Uuid,
    price: Option<Money>,
) -> Result<MutexGuard<'a, ()>> {
    let lock = federation.credit_lock().await;
    let found_peer = federation
        .peer(peer)
        .filter(|found_peer| found_peer.settings().credit.is_some());
    let (Some(peer_with_credit), Some(price)) = (found_peer, price) else {
        return Ok(lock);
    };
    let mut open = federation.followed().cost(peer, replaces);
    for (other, terms) in negotiations::negotiation_offers_being_accepted(&service.store).await? {
        let held = terms.peer.filter(|_| other != id && terms.resource == peer);
        let price = held.and_then(|held| held.price);
        open = open.saturating_add(price.map_or(0, |price| price.micros));
    }
    if peer_has_credit(&peer_with_credit, price.micros, open) {
        return Ok(lock);
    }
    Err(Error::Lost(Box::new(LostOffer {
        lost: OfferLoss::AtPeer(format!("what is agreed with {peer} may cost no more")),
        fresh: Vec::new(),
    })))
}

/// Whether what costs `more` may be agreed at a peer where agreements cost `open` together, both in millionths.
pub(crate) fn peer_has_credit(peer: &Peer, more: i64, open: i64) -> bool {
    let credit = peer.settings().credit;
    credit.is_none_or(|credit| open.saturating_add(more) <= credit)
}
