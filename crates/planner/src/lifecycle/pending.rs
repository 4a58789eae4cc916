//! Agreements that are answered for at once and decided afterwards: Pending, and stored as such, until they are
//! Observed or Rejected. The call-back about the decision is stored with the decision.

use domain::agreement::{Agreement, AgreementState, EventKind, PlacementConstraints, Slots};
use domain::change::{AcceptanceEndpoint, CallBack, Change};
use scheduler::{Interval, Reason};
use uuid::Uuid;

use crate::decider::{Decider, DecisionStep};
use crate::error::{Error, Result, bare_refusal};
use crate::lifecycle::at_peer::MadeAtPeer;
use crate::offers::messages::Acceptance;
use crate::request::{AcceptedOffer, Request};
use crate::resources::need::Placement;

/// Agreements that may wait for their decision: they are decided within moments, so that more are a flood.
const PENDING_MAX: usize = 10_000;

/// Where and how a decision is told.
#[derive(Debug, Clone)]
pub struct CallBackTarget {
    /// Where.
    pub endpoint: AcceptanceEndpoint,
    /// The address of the agreement.
    pub agreement: String,
    /// The words for an acceptance.
    pub accepted: fn(&Self) -> String,
    /// The words for a rejection with its reason.
    pub rejected: fn(&Self, &str) -> String,
}

/// An offer that is to be decided later.
#[derive(Debug)]
pub struct Pending {
    /// The offer.
    pub proposal: Request,
    /// Where the decision is to be told.
    pub acceptance: Option<AcceptanceEndpoint>,
    /// The counter offer that it accepts, if any.
    pub offer: Option<Uuid>,
}

/// The possible outcomes of a pending agreement.
#[derive(Debug)]
pub enum PendingRequest {
    /// One of the ways in which its offer can be read, in its party's order.
    New(Vec<Request>),
    /// The words of a counter offer that is held for it.
    Offered(Box<Acceptance>),
    /// The agreement of a peer that carries it out.
    AtPeer(Box<MadeAtPeer>),
}

/// The data that decide a pending agreement.
#[derive(Debug)]
pub struct Settlement {
    /// Which agreement.
    pub id: Uuid,
    /// Its possible outcome, or the reason why it has none any more.
    pub ways: Result<PendingRequest, String>,
    /// The receiver of the call-back, if there is one.
    pub telling: Option<CallBackTarget>,
}

impl Decider<'_> {
    /// Stores an offer that waits for its decision.
    pub fn store_pending(&mut self, pending: Pending) -> Result<AcceptedOffer> {
        let proposal = pending.proposal;
        self.check_key_is_new(proposal.idempotency.as_ref())?;
        let talks = pending.offer.and_then(|offer| self.plan.table.of_offer(offer));
        let replaced = talks.and_then(|talks| talks.instance.agreement);
        let terms = pending.offer.zip(talks);
        let terms = terms.and_then(|(offer, talks)| talks.offers.get(&offer)?.terms.as_ref());
        let at_price = terms.and_then(|terms| terms.price);
        let at_peer = terms
            .filter(|terms| terms.peer.is_some())
            .map(|terms| terms.resource.clone());
        self.check_new_id(&proposal, &[replaced])?;
        if replaced.is_none() {
            self.check_agreements_quota(&proposal.party, None)?;
        }
        // It is on the first resource until it is decided, or on that of the peer that is asked.
        if self.plan.resources.get(0).is_none() {
            let why = "no resource is in service";
            return Err(bare_refusal(Reason::ResourceNotOffered, why).into());
        }
        let shape = *proposal.shapes.first().ok_or(Error::Unavailable)?;
        // The store takes no other, and would refuse the whole batch.
        if shape.nodes < 1 || shape.duration < 1 {
            return Err(Error::Unfit(
                "at least one node for one second is expected".to_owned(),
            ));
        }
        self.check_cap(proposal.spender.filter(|_| at_peer.is_some()), at_price)?;
        if self.plan.pending_count() >= PENDING_MAX {
            return Err(Error::Unavailable);
        }
        let now = self.present_second();
        let ready = proposal.ready.unwrap_or(now).max(now);
        let deadline = proposal.deadline_within(now + self.settings.horizon);
        let window = Interval::new(ready, deadline.max(ready));
        let nowhere = Slots::one((Interval::new(ready, ready), shape.nodes));
        let at = at_peer
            .as_ref()
            .and_then(|peer| self.plan.resources.place_of(peer))
            .unwrap_or(0);
        let agreement = Agreement {
            duration: shape.duration,
            constraints: PlacementConstraints::default(),
            choices: Vec::new(),
            state: AgreementState::Pending,
            ..self.make_agreement(&proposal, window, &Placement::at(at, nowhere, None))
        };
        // What a peer is to carry out was not asked to be decided later.
        let taken = match &at_peer {
            Some(peer) => self.event(EventKind::Forwarded, format!("{peer} is asked to carry it out")),
            None => self.event(EventKind::Offered, "to be decided".to_owned()),
        };
        self.plan.insert_unplaced(agreement.clone());
        self.batch.push(Change::CreateAgreement {
            agreement: Box::new(agreement.clone()),
            document: proposal.document,
            events: vec![taken],
        });
        self.batch.push(Change::AwaitDecision {
            agreement: agreement.id,
            acceptance: pending.acceptance,
            offer: pending.offer,
            spender: proposal.spender.map(|spender| spender.key),
        });
        let pending = AcceptedOffer::alone(agreement);
        self.remember(proposal.idempotency, &pending);
        Ok(pending)
    }

    /// Decides a pending agreement.
    pub fn decide_pending(
        &mut self,
        mut settlement: Settlement,
    ) -> Result<DecisionStep<Agreement, Settlement>> {
        let pending = self.live_agreement(settlement.id)?;
        if pending.state != AgreementState::Pending {
            return Err(Error::Conflict(pending.state.word()));
        }
        let placed = match settlement.ways {
            Ok(PendingRequest::New(ways)) => self
                .place_first_way(&pending, ways)
                .map(|step| step.map_request(PendingRequest::New)),
            Ok(PendingRequest::Offered(acceptance)) => {
                match self.make_accepted_agreement(*acceptance, Some(&pending)) {
                    // It is decided later.
                    Err(Error::Unavailable) => return Err(Error::Unavailable),
                    accepted => accepted
                        .map(|step| step.map_request(|again| PendingRequest::Offered(Box::new(again))))
                        .map_err(|why| why.to_string()),
                }
            }
            Ok(PendingRequest::AtPeer(made)) => match self.make_agreement_at_peer(&pending, *made) {
                Err(why @ (Error::Unavailable | Error::Unfit(_))) => return Err(why),
                made => made.map(DecisionStep::Done).map_err(|why| why.to_string()),
            },
            Err(why) => Err(why),
        };
        let (decided, words) = match placed {
            Ok(DecisionStep::Wait(ways)) => {
                settlement.ways = Ok(ways);
                return Ok(DecisionStep::Wait(settlement));
            }
            Ok(DecisionStep::Done(decided)) => (decided, None),
            Err(why) => (self.reject_pending(pending, &why)?, Some(why)),
        };
        self.batch.push(Change::DecideAgreement(decided.id));
        if let Some(telling) = settlement.telling {
            self.batch.push(Change::QueueCallBack(CallBack {
                id: Uuid::now_v7(),
                agreement: decided.id,
                body: match words {
                    None => (telling.accepted)(&telling),
                    Some(why) => (telling.rejected)(&telling, &why),
                },
                address: telling.endpoint.address,
                attempts: 0,
                due: self.now,
                since: self.now,
            }));
        }
        Ok(DecisionStep::Done(decided))
    }

    /// The agreement in the first of its ways that has a place; or why the first of them has none.
    fn place_first_way(
        &mut self,
        pending: &Agreement,
        ways: Vec<Request>,
    ) -> Result<DecisionStep<Agreement, Vec<Request>>, String> {
        let mut refusal = None;
        let mut ways = ways.into_iter();
        while let Some(mut way) = ways.next() {
            way.id = pending.id;
            // In words only: its alternatives are not sent anywhere.
            match self.admit_reserved_or(&way, Self::refuse_briefly) {
                Ok(None) => return Ok(DecisionStep::Wait([way].into_iter().chain(ways).collect())),
                Ok(Some((agreement, admitted, number))) => {
                    let agreement = Agreement {
                        created: pending.created,
                        version: pending.version,
                        ..agreement
                    };
                    self.plan.insert(agreement.clone(), number);
                    let event = self.acceptance_event(&agreement, &admitted, way.spender);
                    let agreement = self.update(agreement, vec![event]);
                    self.apply_admission_moves(&admitted);
                    return Ok(DecisionStep::Done(agreement));
                }
                Err(why) => refusal = refusal.or(Some(why.to_string())),
            }
        }
        Err(refusal.unwrap_or_else(|| "it can be read in no way".to_owned()))
    }

    fn reject_pending(&mut self, mut pending: Agreement, why: &str) -> Result<Agreement> {
        let rejected = pending.state.to(AgreementState::Rejected);
        pending.state = rejected.ok_or(Error::Conflict(pending.state.word()))?;
        let event = self.event(EventKind::Closed, format!("Rejected: {why}"));
        Ok(self.update(pending, vec![event]))
    }
}
