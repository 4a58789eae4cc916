//! createPendingAgreement: the offer is taken at once and decided afterwards. A call-back tells the decision where the
//! requester asked for one, and each look at the agreement shows it.

use std::collections::HashSet;
use std::time::Duration;

use domain::change::AcceptanceEndpoint;
use planner::{CallBackTarget, DecidePending, PendingRequest, Request, SubmitPending};
use store::UndecidedAgreement;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wsag::Fragment;
use wsag::endpoint::EndpointReference;
use wsag::operations::{accept_agreement_input, reason_fragment, reject_agreement_input};

use super::accept::AcceptanceCheck;
use crate::negotiation::codec::acceptance::AcceptanceInput;
use crate::negotiation::idempotency::answer_of_repeated_request;
use crate::negotiation::{AcceptedView, Error, RequestKey, Result, Service};

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
    async fn end_of_one(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(id)) => drop(self.ids.remove(&id)),
            // Its id stays, so that it is not tried without end.
            Some(Err(panicked)) => tracing::error!(%panicked, "a pending agreement cannot be decided"),
            None => std::future::pending().await,
        }
    }
}

impl Service {
    /// Takes the acceptance of a counter offer, to be decided later. It can be had as it stands by now, and stays held. The same words
    /// again have the same agreement, also where it was rejected, and under whatever key they come.
    pub(in crate::negotiation) async fn pend_offer(
        &self,
        party: &str,
        accepting: AcceptanceInput,
        acceptance: Option<AcceptanceEndpoint>,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView> {
        // Until it is decided, the offer does not say that it was accepted.
        let target = format!("the acceptance of {}", accepting.offer);
        let again = RequestKey::of_content(party, &target, &accepting.content(acceptance.as_ref()));
        let answer = match self.taken_before(&again).await? {
            Some(answer) => answer,
            None => match self.acceptable(party, &accepting, true, key.as_ref()).await? {
                AcceptanceCheck::Now(offer, instance, proposal) => {
                    self.check_new_id(&proposal, &instance).await?;
                    self.pend_proposal(*proposal, acceptance, Some(offer.id), Some(again))
                        .await?
                }
                AcceptanceCheck::Before(answer) => *answer,
            },
        };
        // A key that is used again must be that of the same request.
        self.keep_answer(key, answer).await
    }

    /// Takes an offer to be decided later. The proposal of its first way stands for it until then; or that of the counter offer
    /// that it accepts.
    pub(in crate::negotiation) async fn pend_proposal(
        &self,
        mut request: Request,
        acceptance: Option<AcceptanceEndpoint>,
        offer: Option<Uuid>,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView> {
        request.idempotency = key.map(RequestKey::of_acceptance);
        request.spender = self.spender;
        answer_of_repeated_request(
            self.send(SubmitPending {
                proposal: request,
                acceptance,
                offer,
            })
            .await,
            |accepted| {
                self.undecided.notify_one();
                AcceptedView::of(&accepted)
            },
        )
    }

    /// Decides pending agreements, first the ones that an earlier run has left, until it is told to stop. One that waits for
    /// its cluster does not keep others waiting.
    pub async fn decide_pending(self, stop: CancellationToken) {
        let mut deciding = PendingDecisions::default();
        loop {
            match self.decide_all(&mut deciding).await {
                Ok(()) => task::note_success(),
                Err(why) => tracing::warn!(error = %why, "pending agreements wait for their decision"),
            }
            let look_again = tokio::time::sleep(LOOK_AGAIN);
            tokio::pin!(look_again);
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.undecided.notified() => break,
                    () = &mut look_again => break,
                    () = deciding.end_of_one() => {}
                }
            }
        }
    }

    /// Begins to decide all that are not being decided.
    async fn decide_all(&self, deciding: &mut PendingDecisions) -> Result<(), store::Error> {
        let mut after = Uuid::nil();
        loop {
            let undecided = self.store.undecided_agreements(after, READ_AT_ONCE).await?;
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
                    deciding.end_of_one().await;
                }
                let this = self.clone();
                deciding.tasks.spawn(async move {
                    if let Err(why) = this.decide_undecided(one).await {
                        tracing::debug!(agreement = %id, error = %why, "a pending agreement was not decided");
                    }
                    id
                });
            }
        }
    }

    async fn decide_undecided(&self, undecided: UndecidedAgreement) -> Result<()> {
        if let Some(offer) = undecided.offer
            && let Some((row, _)) = self.store.offer(offer).await?
            && let Some(held) = row.terms.as_ref().and_then(|terms| terms.peer.clone())
        {
            return self.settle_at_peer(&undecided, row, &held).await;
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
                let drafts = match self.words(document).await {
                    Ok(words) => {
                        self.run_work_with_files(move |this| this.drafts_again(&words, &party))
                            .await?
                    }
                    Err(why) => Err(why),
                };
                drafts.map(|drafts| {
                    PendingRequest::New(drafts.into_iter().map(|draft| draft.proposal).collect())
                })
            }
            Some(offer) => {
                let found = self.still_acceptable(&party, offer).await;
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
                    self.note_barred_clusters(way, &[]).await;
                }
            }
            Ok(PendingRequest::Offered(acceptance)) => acceptance.proposal.spender = spender,
            Ok(PendingRequest::AtPeer(_)) | Err(_) => {}
        }
        let settlement = DecidePending {
            id: agreement,
            ways,
            telling: acceptance
                .map(|acceptance| call_back_target(self.agreement_address(agreement), acceptance)),
        };
        self.send(settlement).await?;
        Ok(())
    }
}

pub(super) fn call_back_target(agreement: String, endpoint: AcceptanceEndpoint) -> CallBackTarget {
    CallBackTarget {
        endpoint,
        agreement,
        accepted: |each| {
            accept_agreement_input(call_back_parameters(each).as_ref(), &call_back_reference(each))
        },
        rejected: |each, why| {
            reject_agreement_input(
                call_back_parameters(each).as_ref(),
                &call_back_reference(each),
                &[reason_fragment(why)],
            )
        },
    }
}

fn call_back_parameters(target: &CallBackTarget) -> Option<Fragment> {
    target.endpoint.parameters.as_deref().map(Fragment::of_kept)
}

fn call_back_reference(target: &CallBackTarget) -> EndpointReference {
    EndpointReference::new(&*target.agreement)
}
