//! createPendingAgreement: the offer is taken at once and decided afterwards. A call-back tells the decision where the
//! requester asked for one, and each look at the agreement shows it.

use std::collections::HashSet;
use std::time::Duration;

use domain::change::AcceptanceEndpoint;
use planner::{DecidePending, PendingRequest, Request, SubmitPending};
use store::negotiations;
use store::undecided_agreements::{self, UndecidedAgreement};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agreements::accept_at_peer::settle_acceptance_at_peer;
use crate::agreements::check_acceptance::{AcceptanceCheck, check_acceptance, check_acceptance_again};
use crate::agreements::repeated_offers::{check_offer_is_not_repeated, repeated_offer_taken_before};
use crate::call_backs::call_back_target;
use crate::codec::acceptance::AcceptanceInput;
use crate::codec::kept_offer::{kept_offer_of_wording, requests_of_kept_offer};
use crate::idempotency::{answer_of_repeated_request, keep_answer};
use crate::request::cluster_policy::note_barred_clusters;
use crate::{AcceptedView, Error, RequestKey, Result, Service};

/// Pending agreements that are read at a time.
const READ_AT_ONCE: u32 = 100;
/// How long to wait before the next search for undecided agreements, where no signal says that there are some: after a
/// failure of the store.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Pending agreements that are decided at a time.
const DECIDED_AT_ONCE: usize = 32;

/// The pending agreements that are being decided.
#[derive(Default)]
struct PendingDecisions {
    ids: HashSet<Uuid>,
    tasks: JoinSet<Uuid>,
}

impl PendingDecisions {
    /// Waits until one is decided, for ever where none is being decided.
    async fn end_of_pending_decision(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(id)) => drop(self.ids.remove(&id)),
            // Its id stays, so that it is not tried without end.
            Some(Err(panicked)) => tracing::error!(%panicked, "a pending agreement cannot be decided"),
            None => std::future::pending().await,
        }
    }
}

/// Takes the acceptance of a counter offer, to be decided later. It can be had as it stands by now, and stays held. The same words
/// again have the same agreement, also where it was rejected, and under whatever key they come.
pub(crate) async fn pend_offer(
    service: &Service,
    party: &str,
    accepting: AcceptanceInput,
    acceptance: Option<AcceptanceEndpoint>,
    key: Option<RequestKey>,
) -> Result<AcceptedView> {
    // Until it is decided, the offer does not say that it was accepted.
    let target = format!("the acceptance of {}", accepting.offer);
    let again = RequestKey::of_content(party, &target, &accepting.content(acceptance.as_ref()));
    let answer = match repeated_offer_taken_before(service, &again).await? {
        Some(answer) => answer,
        None => match check_acceptance(service, party, &accepting, true, key.as_ref()).await? {
            AcceptanceCheck::Now(offer, instance, proposal) => {
                check_offer_is_not_repeated(service, &proposal, &instance).await?;
                pend_proposal(service, *proposal, acceptance, Some(offer.id), Some(again)).await?
            }
            AcceptanceCheck::Before(answer) => *answer,
        },
    };
    // A key that is used again must be that of the same request.
    keep_answer(service, key, answer).await
}

/// Takes an offer to be decided later. The proposal of its first way stands for it until then; or that of the counter offer
/// that it accepts.
pub(crate) async fn pend_proposal(
    service: &Service,
    mut request: Request,
    acceptance: Option<AcceptanceEndpoint>,
    offer: Option<Uuid>,
    key: Option<RequestKey>,
) -> Result<AcceptedView> {
    request.idempotency = key.map(RequestKey::of_acceptance);
    request.spender = service.spender;
    answer_of_repeated_request(
        service
            .send(SubmitPending {
                proposal: request,
                acceptance,
                offer,
            })
            .await,
        |accepted| {
            service.undecided.notify_one();
            AcceptedView::of(&accepted)
        },
    )
}

/// Decides pending agreements, first the ones that an earlier run has left, until it is told to stop. One that waits for
/// its cluster does not keep others waiting.
pub async fn decide_pending(service: Service, stop: CancellationToken) {
    let mut deciding = PendingDecisions::default();
    loop {
        match decide_all_pending(&service, &mut deciding).await {
            Ok(()) => task::note_success(),
            Err(why) => tracing::warn!(error = %why, "pending agreements wait for their decision"),
        }
        let look_again = tokio::time::sleep(LOOK_AGAIN);
        tokio::pin!(look_again);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = service.undecided.notified() => break,
                () = &mut look_again => break,
                () = deciding.end_of_pending_decision() => {}
            }
        }
    }
}

/// Begins to decide all that are not being decided.
async fn decide_all_pending(service: &Service, deciding: &mut PendingDecisions) -> Result<(), store::Error> {
    let mut after = Uuid::nil();
    loop {
        let undecided =
            undecided_agreements::undecided_agreements(&service.store, after, READ_AT_ONCE).await?;
        let Some(last) = undecided.last() else {
            return Ok(());
        };
        after = last.agreement;
        for one in undecided {
            let id = one.agreement;
            if !deciding.ids.insert(id) {
                continue;
            }
            while deciding.tasks.len() >= DECIDED_AT_ONCE {
                deciding.end_of_pending_decision().await;
            }
            let service = service.clone();
            deciding.tasks.spawn(async move {
                if let Err(why) = decide_pending_agreement(&service, one).await {
                    tracing::debug!(agreement = %id, error = %why, "a pending agreement was not decided");
                }
                id
            });
        }
    }
}

async fn decide_pending_agreement(service: &Service, undecided: UndecidedAgreement) -> Result<()> {
    if let Some(offer) = undecided.offer
        && let Some((row, _)) = negotiations::negotiation_offer(&service.store, offer).await?
        && let Some(held) = row.terms.as_ref().and_then(|terms| terms.peer.clone())
    {
        return settle_acceptance_at_peer(service, &undecided, row, &held).await;
    }
    let UndecidedAgreement {
        agreement,
        party,
        document,
        acceptance,
        offer,
        spender,
    } = undecided;
    let ways = match offer {
        None => {
            let requests = match kept_offer_of_wording(service, document).await {
                Ok(kept) => {
                    service
                        .run_work_with_files(move |service| requests_of_kept_offer(service, &kept, &party))
                        .await?
                }
                Err(why) => Err(why),
            };
            requests.map(PendingRequest::New)
        }
        Some(offer) => {
            let found = check_acceptance_again(service, &party, offer).await;
            found.map(|acceptance| PendingRequest::Offered(Box::new(acceptance)))
        }
    };
    let mut ways = match ways {
        Err(why @ (Error::Unavailable | Error::Short(_))) => return Err(why),
        // Its requester would wait for ever; the next try would find the same.
        Err(Error::Internal(why)) => {
            tracing::error!(%agreement, why, "a pending agreement is rejected, since it cannot be read");
            Err("the service cannot read the request any more".to_owned())
        }
        // A request that was valid when it came may be so no longer: its window may have passed, or its hold has
        // lapsed.
        ways => ways.map_err(|why| why.to_string()),
    };
    match &mut ways {
        Ok(PendingRequest::New(ways)) => {
            for way in ways {
                way.spender = spender;
                note_barred_clusters(service, way, &[]).await;
            }
        }
        Ok(PendingRequest::Offered(acceptance)) => acceptance.proposal.spender = spender,
        Ok(PendingRequest::AtPeer(_)) | Err(_) => {}
    }
    let settlement = DecidePending {
        id: agreement,
        ways,
        telling: acceptance
            .map(|acceptance| call_back_target(service.agreement_address(agreement), acceptance)),
    };
    service.send(settlement).await?;
    Ok(())
}
