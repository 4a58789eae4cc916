//! The charges of peers for ends and changes of the agreements that they have.

use domain::agreement::{Agreement, AtPeer, Money};
use planner::{AddFeesOfChange, Candidate, Quote};

use crate::{Result, Service};

/// A peer's charge to us for ending one of its agreements now; none where it does not tell it in time.
pub(crate) async fn charge_at_peer(service: &Service, there: &AtPeer) -> Option<Money> {
    let federation = service.federation.as_ref()?;
    let (peer, address) = (federation.peer(&there.peer)?, there.address.as_deref()?);
    if peer.health().not_asked_for.is_some() {
        return None;
    }
    let within = federation.settings().ask_within;
    match tokio::time::timeout(within, peer.charge_of_ending(address)).await {
        Ok(Ok(charge)) => charge,
        Ok(Err(why)) => {
            tracing::debug!(peer = peer.name(), error = %why, "a peer does not say what an end costs");
            None
        }
        Err(_) => None,
    }
}

/// Adds the fees to offers in place of an agreement where peers are concerned: at least the cost of the change
/// at the peer that has it now.
///
/// # Errors
/// Those of [`AddFeesOfChange`].
pub(crate) async fn add_charges_at_peer(
    service: &Service,
    (old, there): (&Agreement, Option<&AtPeer>),
    budget: Option<Money>,
    quote: Quote,
) -> Result<Quote> {
    if quote.candidates.is_empty() {
        return Ok(quote);
    }
    let is_of_peer = |candidate: &Candidate| candidate.terms.peer.is_some();
    if there.is_none() && !quote.candidates.iter().any(is_of_peer) {
        return Ok(quote);
    }
    let ending = match there {
        Some(there) if old.is_waiting() => charge_at_peer(service, there).await,
        _ => None,
    };
    let charge = |candidate: &Candidate| {
        let held = candidate.terms.peer.as_ref();
        let changes = held.is_some_and(|held| held.replaces.is_some());
        if changes { candidate.terms.fee } else { ending }
    };
    let charges = quote.candidates.iter().map(charge).collect();
    let with_fees = service.send(AddFeesOfChange {
        agreement: old.id,
        budget,
        charges,
        quote,
    });
    Ok(with_fees.await?)
}
