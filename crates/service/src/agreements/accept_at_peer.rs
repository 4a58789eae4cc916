//! An offer that a peer holds is accepted there first. Ours is stored as Pending meanwhile, with the peer's offer; the peer's
//! agreement is made under a key that follows from ours, so that after any cut the question is asked again and answered the same.

use std::time::Duration;

use domain::agreement::{
    Agreement, AgreementState, AtPeer, EventKind, HeldAtPeer, NegotiationOffer, OfferTerms,
};
use planner::{
    CallBackTarget, CheckChangeAtPeer, DecidePending, HolderWord, MadeAtPeer, OfferLoss, PendingRequest,
    Request, SubmitPending,
};
use store::undecided_agreements::UndecidedAgreement;
use store::{agreements, negotiations, trail_lines};
use uuid::Uuid;

use crate::agreements::check_acceptance::request_of_checked_acceptance;
use crate::agreements::find::{find_why_agreement_was_rejected, view_found_agreement};
use crate::agreements::repeated_offers::answer_to_repeated_offer_acceptance;
use crate::call_backs::call_back_target;
use crate::codec::acceptance::AcceptanceInput;
use crate::codec::kept_offer::read_kept_offer_by_id;
use crate::idempotency::{answer_of_repeated_request, keep_answer};
use crate::negotiations::negotiation::agreement_replaced_by_negotiation;
use crate::peer_credit::take_peer_credit;
use crate::views::lost_offer::LostOffer;
use crate::{AcceptedView, Error, RequestKey, Result, Service};
use federation::client::{Peer, PeerError};
use federation::make_at_peer;

/// How often it is looked whether that has come, beside every change of the plan.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Accepts an offer that a peer holds: stores ours as Pending, has the peer asked, and waits for its word.
///
/// # Errors
/// [`Error::Lost`] where the peer refuses, [`Error::AskingPeer`] where its word has not come in time, and those of
/// accepting any offer.
pub(super) async fn accept_at_peer(
    service: &Service,
    party: &str,
    accepting: &AcceptanceInput,
    (offer, mut proposal): (NegotiationOffer, Request),
    key: Option<RequestKey>,
) -> Result<AcceptedView> {
    // The offer does not say that it was accepted until it is decided. A repeated acceptance gets the same agreement.
    let target = format!("the acceptance of {} at its peer", offer.id);
    let own = RequestKey::of_content(party, &target, "");
    proposal.idempotency = Some(own.of_acceptance());
    check_accepted_change_at_peer(service, &offer).await?;
    proposal.spender = service.spender;
    let lock = match (&service.federation, offer.terms.as_ref()) {
        (Some(federation), Some(terms)) => {
            let price = terms.peer.as_ref().and_then(|held| held.price);
            let replaces = terms.peer.as_ref().and_then(|held| held.replaces.as_deref());
            let at = (terms.resource.as_str(), replaces);
            Some(take_peer_credit(service, federation, at, offer.id, price).await?)
        }
        _ => None,
    };
    let taken = service
        .send(SubmitPending {
            proposal,
            acceptance: None,
            offer: Some(offer.id),
        })
        .await;
    drop(lock);
    let taken = answer_of_repeated_request(taken, |accepted| AcceptedView::of(&accepted))?;
    if service.options.is_dry {
        return Ok(taken);
    }
    let taken = keep_answer(service, key, taken).await?;
    service.undecided.notify_one();
    match word_of_accepting_peer(service, taken, accepting.within).await {
        Err(Error::Lost(lost)) => {
            let before = answer_to_repeated_offer_acceptance(service, party, accepting, false).await?;
            before.ok_or(Error::Lost(lost))
        }
        told => told,
    }
}

/// Makes sure that a change that a peer is to make has room here: it cannot be taken back there.
async fn check_accepted_change_at_peer(service: &Service, offer: &NegotiationOffer) -> Result<()> {
    let changes = |terms: &&OfferTerms| terms.peer.as_ref().is_some_and(|held| held.replaces.is_some());
    let Some(terms) = offer.terms.as_ref().filter(changes) else {
        return Ok(());
    };
    let instance = negotiations::negotiation(&service.store, offer.negotiation).await?;
    match instance.and_then(|instance| instance.agreement) {
        // Where it is over, the acceptance was decided before, or is refused as any other.
        Some(old) => match service
            .send(CheckChangeAtPeer {
                agreement: old,
                slots: terms.slots.clone(),
                answer: offer.parent,
            })
            .await
        {
            Err(planner::Error::NotFound) => Ok(()),
            checked => Ok(checked?),
        },
        None => Ok(()),
    }
}

/// The present answer to an acceptance that a peer was asked about, once its word has come. Any other answer stays as it is.
///
/// # Errors
/// The errors of [`accept_at_peer`].
pub(crate) async fn word_of_accepting_peer(
    service: &Service,
    taken: AcceptedView,
    within: Duration,
) -> Result<AcceptedView> {
    if taken.agreement.state != AgreementState::Pending.word() {
        return Ok(taken);
    }
    let id = taken.agreement.id;
    if !was_accepted_at_forwarding_peer(service, id).await? {
        return Ok(taken);
    }
    let mut changes = service.planner.subscribe_changes();
    let told = async {
        loop {
            changes.borrow_and_update();
            let agreement = agreements::agreement(&service.store, id)
                .await?
                .ok_or(Error::NotFound)?;
            if agreement.state != AgreementState::Pending {
                return told_by_accepting_peer(service, &agreement).await;
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await;
        }
    };
    let told = tokio::time::timeout(within, told).await;
    told.unwrap_or(Err(Error::AskingPeer))
}

/// The answer about an agreement after its peer's word.
async fn told_by_accepting_peer(service: &Service, agreement: &Agreement) -> Result<AcceptedView> {
    match find_why_agreement_was_rejected(service, agreement).await? {
        Some(why) => Err(Error::Lost(Box::new(LostOffer {
            lost: OfferLoss::AtPeer(why),
            fresh: Vec::new(),
        }))),
        None => Ok(AcceptedView::alone(view_found_agreement(service, agreement))),
    }
}

/// Whether a peer was asked to carry an agreement out when it was accepted.
async fn was_accepted_at_forwarding_peer(service: &Service, id: Uuid) -> Result<bool> {
    let lines = trail_lines::trail_lines_of_agreement(&service.store, id).await?;
    Ok(lines.iter().any(|line| line.kind == EventKind::Forwarded.word()))
}

/// Asks the peer that holds the offer behind a pending agreement for its agreement, and decides ours by its word.
///
/// # Errors
/// [`Error::Unavailable`] where the peer's word is not known: it has to be asked again.
pub(super) async fn settle_acceptance_at_peer(
    service: &Service,
    undecided: &UndecidedAgreement,
    offer: NegotiationOffer,
    held: &HeldAtPeer,
) -> Result<()> {
    let id = undecided.agreement;
    let name = offer.terms.as_ref().map_or("", |terms| terms.resource.as_str());
    let Some((federation, peer)) = service
        .federation
        .as_ref()
        .and_then(|federation| Some((federation, federation.peer(name)?)))
    else {
        tracing::error!(agreement = %id, peer = name, "it waits for a peer that the configuration has no more");
        return Err(Error::Unavailable);
    };
    let intended = AtPeer::intended(id, id, name.to_owned(), held.clone(), service.clock.micros());
    let row = match make_at_peer(&peer, intended, &service.clock).await {
        HolderWord::Held(row) => row,
        HolderWord::Refused((_, words)) => return reject_acceptance_at_peer(service, undecided, words).await,
        HolderWord::Silent => return Err(Error::Unavailable),
    };
    let negotiation = offer.negotiation;
    let address = row.address.clone().unwrap_or_default();
    if federation.followed().is_of_another(name, &address, id) {
        return reject_acceptance_at_peer(
            service,
            undecided,
            "the peer has given its agreement to another one".to_owned(),
        )
        .await;
    }
    let made = match agreement_accepted_at_peer(service, undecided, offer, row.clone()).await {
        Err(why @ (Error::Unavailable | Error::Short(_))) => return Err(why),
        Err(why) => {
            return undo_acceptance_at_peer(service, &peer, undecided, &address, why.to_string()).await;
        }
        Ok(made) => made,
    };
    let settlement = DecidePending {
        id,
        ways: Ok(PendingRequest::AtPeer(Box::new(made))),
        telling: call_back_of_accepted_at_peer(service, undecided),
    };
    let lock = federation.credit_lock().await;
    let decided = service.send(settlement).await;
    match decided {
        Ok(agreement) => {
            federation.followed().add(row.clone(), agreement.execution_id());
            drop(lock);
            federation.end_unused_at_asked_peers(negotiation, None, &[&held.negotiation]);
        }
        Err(planner::Error::Unfit(why)) => {
            drop(lock);
            return undo_acceptance_at_peer(service, &peer, undecided, &address, why).await;
        }
        Err(why) => return Err(why.into()),
    }
    Ok(())
}

async fn agreement_accepted_at_peer(
    service: &Service,
    undecided: &UndecidedAgreement,
    offer: NegotiationOffer,
    row: AtPeer,
) -> Result<MadeAtPeer> {
    let said = read_kept_offer_by_id(service, offer.id).await?;
    let instance = negotiations::negotiation(&service.store, offer.negotiation).await?;
    let instance = instance.ok_or(Error::NotFound)?;
    let party = undecided.party.clone();
    let replaced = agreement_replaced_by_negotiation(service, &instance).await?;
    let (proposal, replaced) = service
        .run_work_with_files(move |service| {
            let drafted = request_of_checked_acceptance(service, &said, None, &party, replaced.as_ref());
            drafted.map(|proposal| (proposal, replaced.as_ref().map(|old| old.id)))
        })
        .await??;
    Ok(MadeAtPeer {
        proposal: Request {
            spender: undecided.spender,
            ..proposal
        },
        offer,
        replaced,
        row,
    })
}

/// Where the decision about a pending agreement is told, if it is.
fn call_back_of_accepted_at_peer(
    service: &Service,
    undecided: &UndecidedAgreement,
) -> Option<CallBackTarget> {
    let address = service.agreement_address(undecided.agreement);
    let acceptance = undecided.acceptance.clone();
    acceptance.map(|acceptance| call_back_target(address, acceptance))
}

async fn reject_acceptance_at_peer(
    service: &Service,
    undecided: &UndecidedAgreement,
    why: String,
) -> Result<()> {
    let settlement = DecidePending {
        id: undecided.agreement,
        ways: Err(why),
        telling: call_back_of_accepted_at_peer(service, undecided),
    };
    service.send(settlement).await?;
    Ok(())
}

/// Ends the peer's agreement where ours cannot come into force, and rejects ours once theirs is known to be over.
async fn undo_acceptance_at_peer(
    service: &Service,
    peer: &Peer,
    undecided: &UndecidedAgreement,
    address: &str,
    why: String,
) -> Result<()> {
    let ended = match peer.terminate(address, "there is no room for it").await {
        Ok(()) => true,
        // It may be over already: an earlier answer was lost.
        Err(PeerError::Refused { .. }) => match peer.status(address).await {
            Ok(status) => status.state.is_final(),
            Err(PeerError::Refused { .. }) => true,
            Err(_) => false,
        },
        Err(_) => false,
    };
    if !ended {
        tracing::warn!(agreement = %undecided.agreement, "the peer's agreement is to be ended");
        return Err(Error::Unavailable);
    }
    reject_acceptance_at_peer(service, undecided, why).await
}
