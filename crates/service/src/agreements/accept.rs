//! createAgreement from a counter offer: it repeats the words of the counter offer and takes over its hold.

use planner::Accept;
use uuid::Uuid;

use crate::agreements::accept_at_peer::{accept_at_peer, word_of_accepting_peer};
use crate::agreements::check_acceptance::{
    AcceptanceCheck, check_acceptance, error_of_lost_acceptance, places_of_checked_acceptance,
};
use crate::agreements::pending::pend_offer;
use crate::agreements::repeated_offers::{answer_to_repeated_offer_acceptance, check_offer_is_not_repeated};
use crate::codec::acceptance::{ACCEPT_WITHIN, AcceptanceInput};
use crate::codec::request::DecisionTime;
use crate::idempotency::{answer_of_repeated_request, earlier_answer};
use crate::negotiations::negotiation::visible_negotiation;
use crate::request::cluster_policy::barred_by_clusters_now;
use crate::{AcceptedView, Error, RequestKey, Result, Scope, Service};

/// Accepts a counter offer as it stands, by its id. If it comes too late, the fresh offers are held. The same request under the
/// same key gets the same answer.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Lost`] where it cannot be accepted any more, [`Error::KeyReused`],
/// [`Error::Unavailable`].
pub async fn accept_offer(
    service: &Service,
    party: &str,
    offer: Uuid,
    key: Option<RequestKey>,
) -> Result<AcceptedView> {
    if let Some(answer) = earlier_answer(service, key.as_ref()).await? {
        return word_of_accepting_peer(service, answer, ACCEPT_WITHIN).await;
    }
    let accepting = AcceptanceInput {
        holds: true,
        ..AcceptanceInput::as_it_stands(offer)
    };
    Box::pin(accept(service, party, accepting, key)).await
}

/// Makes an agreement of a counter offer.
pub(crate) async fn accept(
    service: &Service,
    party: &str,
    accepting: AcceptanceInput,
    key: Option<RequestKey>,
) -> Result<AcceptedView> {
    let form = places_of_checked_acceptance(accepting.words.as_ref());
    let acceptable = check_acceptance(service, party, &accepting, false, key.as_ref()).await?;
    let (row, instance, mut proposal) = match acceptable {
        AcceptanceCheck::Now(row, instance, proposal) => (row, instance, *proposal),
        AcceptanceCheck::Before(answer) => return Ok(*answer),
    };
    check_offer_is_not_repeated(service, &proposal, &instance).await?;
    if row.terms.as_ref().is_some_and(|terms| terms.peer.is_some()) {
        return accept_at_peer(service, party, &accepting, (*row, proposal), key).await;
    }
    let again = key.as_ref().map(|key| key.step(0));
    proposal.idempotency = key.map(RequestKey::of_acceptance);
    proposal.spender = service.spender;
    let acceptance = Accept {
        negotiation: instance.id,
        offer: row.id,
        barred: barred_by_clusters_now(service, &row, &proposal).await,
        proposal,
    };
    match service.send(acceptance).await {
        Err(planner::Error::Lost(lost)) => {
            if let Some(answer) =
                answer_to_repeated_offer_acceptance(service, party, &accepting, false).await?
            {
                return Ok(answer);
            }
            let scope = Scope::Party(party.to_owned());
            let instance = visible_negotiation(service, &scope, instance.id).await?;
            Err(
                error_of_lost_acceptance(service, lost, (&row, &instance), accepting.holds, form, again)
                    .await,
            )
        }
        accepted => {
            if let Some(federation) = service.federation.as_ref().filter(|_| accepted.is_ok()) {
                // Peers held others beside it.
                federation.end_unused_at_asked_peers(instance.id, None, &[]);
            }
            answer_of_repeated_request(accepted, |accepted| AcceptedView::of(&accepted))
        }
    }
}

/// Accepts a counter offer now or later. The same acceptance again has the same agreement.
pub(super) async fn take_offer(
    service: &Service,
    party: &str,
    accepting: AcceptanceInput,
    decision: DecisionTime,
    key: Option<RequestKey>,
) -> Result<AcceptedView> {
    let (same, is_pending) = (accepting.clone(), matches!(decision, DecisionTime::Later(_)));
    let taken = match decision {
        DecisionTime::Now => Box::pin(accept(service, party, accepting, key)).await,
        DecisionTime::Later(acceptance) => {
            Box::pin(pend_offer(service, party, accepting, acceptance, key)).await
        }
    };
    match taken {
        // The same acceptance came at the same time, or its decision is still to come.
        Err(Error::IdTaken(id)) => {
            let before = answer_to_repeated_offer_acceptance(service, party, &same, is_pending).await?;
            before.ok_or(Error::IdTaken(id))
        }
        taken => taken,
    }
}
