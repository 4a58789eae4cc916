//! Agreements that are answered for at once and decided afterwards: Pending, and stored as such, until they are
//! Observed or Rejected. The call-back about the decision is stored with the decision.

use domain::agreement::{Agreement, AgreementState, EventKind};
use domain::change::{AcceptanceEndpoint, CallBack, Change};
use uuid::Uuid;

use super::accept::{Accept, make_accepted_agreement};
use super::{Command, Decision, Outcome};
use crate::decider::{Decider, DecisionStep};
use crate::elsewhere::peer::MadeAtPeer;
use crate::elsewhere::{cluster, peer};
use crate::error::{Error, Result};
use crate::life::{admission, update};
use crate::placement::refuse;
use crate::request::Request;

/// A pending agreement is to be decided: it becomes Observed, with the first of its ways that has a place, or Rejected.
///
/// # Errors
/// [`Error::NotFound`] and [`Error::Conflict`] where it is not Pending any more, [`Error::Unavailable`] where the decision could not be
/// stored.
#[derive(Debug)]
pub struct DecidePending {
    /// Which agreement.
    pub id: Uuid,
    /// Its possible outcome, or the reason why it has none any more.
    pub ways: Result<PendingRequest, String>,
    /// The receiver of the call-back, if there is one.
    pub telling: Option<CallBackTarget>,
}

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

/// The possible outcomes of a pending agreement.
#[derive(Debug)]
pub enum PendingRequest {
    /// One of the ways in which its offer can be read, in its party's order.
    New(Vec<Request>),
    /// The words of a counter offer that is held for it.
    Offered(Box<Accept>),
    /// The agreement of a peer that carries it out.
    AtPeer(Box<MadeAtPeer>),
}

impl Command for DecidePending {
    type Answer = Agreement;

    const COUNTED_AS: Option<&'static str> = Some("pending");

    fn awaited_agreement(&self) -> Option<Uuid> {
        Some(self.id)
    }

    /// The reason of a rejection is given in words only.
    fn outcome(agreement: &Agreement) -> Outcome<'_> {
        match agreement.state {
            AgreementState::Rejected => Outcome::Refused(None),
            _ => Outcome::Granted,
        }
    }

    fn decide(mut self, decider: &mut Decider<'_>) -> Decision<Self> {
        let pending = decider.live_agreement(self.id)?;
        if pending.state != AgreementState::Pending {
            return Err(Error::Conflict(pending.state.word()));
        }
        let placed = match self.ways {
            Ok(PendingRequest::New(ways)) => place_pending_first_way(decider, &pending, ways)
                .map(|step| step.map_request(PendingRequest::New)),
            Ok(PendingRequest::Offered(acceptance)) => {
                match make_accepted_agreement(decider, *acceptance, Some(&pending)) {
                    // It is decided later.
                    Err(Error::Unavailable) => return Err(Error::Unavailable),
                    accepted => accepted
                        .map(|step| step.map_request(|again| PendingRequest::Offered(Box::new(again))))
                        .map_err(|why| why.to_string()),
                }
            }
            Ok(PendingRequest::AtPeer(made)) => {
                match peer::make_agreement_at_peer(decider, &pending, *made) {
                    Err(why @ (Error::Unavailable | Error::Unfit(_))) => return Err(why),
                    made => made.map(DecisionStep::Done).map_err(|why| why.to_string()),
                }
            }
            Err(why) => Err(why),
        };
        let (decided, words) = match placed {
            Ok(DecisionStep::Wait(ways)) => {
                self.ways = Ok(ways);
                return Ok(DecisionStep::Wait(self));
            }
            Ok(DecisionStep::Done(decided)) => (decided, None),
            Err(why) => (reject_pending(decider, pending, &why)?, Some(why)),
        };
        decider.batch.push(Change::DecideAgreement(decided.id));
        if let Some(telling) = self.telling {
            decider.batch.push(Change::QueueCallBack(CallBack {
                id: (decider.make_id)(),
                agreement: decided.id,
                body: match words {
                    None => (telling.accepted)(&telling),
                    Some(why) => (telling.rejected)(&telling, &why),
                },
                address: telling.endpoint.address,
                attempts: 0,
                due: decider.now,
                since: decider.now,
            }));
        }
        Ok(DecisionStep::Done(decided))
    }
}

/// The agreement in the first of its ways that has a place; or why the first of them has none.
fn place_pending_first_way(
    decider: &mut Decider<'_>,
    pending: &Agreement,
    ways: Vec<Request>,
) -> Result<DecisionStep<Agreement, Vec<Request>>, String> {
    let mut refusal = None;
    let mut ways = ways.into_iter();
    while let Some(mut way) = ways.next() {
        way.id = pending.id;
        // In words only: its alternatives are not sent anywhere.
        match cluster::admit_or_wait_for_cluster(decider, &way, refuse::refuse_briefly) {
            Ok(None) => return Ok(DecisionStep::Wait([way].into_iter().chain(ways).collect())),
            Ok(Some((agreement, admitted, number))) => {
                let agreement = Agreement {
                    created: pending.created,
                    version: pending.version,
                    ..agreement
                };
                decider.state.insert(agreement.clone(), number);
                let event = admission::admission_event(decider, &agreement, &admitted, way.spender);
                let agreement = update::update(decider, agreement, vec![event]);
                update::update_moved_and_transferred(decider, &admitted, agreement.id);
                return Ok(DecisionStep::Done(agreement));
            }
            Err(why) => refusal = refusal.or(Some(why.to_string())),
        }
    }
    Err(refusal.unwrap_or_else(|| "it can be read in no way".to_owned()))
}

fn reject_pending(decider: &mut Decider<'_>, mut pending: Agreement, why: &str) -> Result<Agreement> {
    let rejected = pending.state.to(AgreementState::Rejected);
    pending.state = rejected.ok_or(Error::Conflict(pending.state.word()))?;
    let event = decider.event(EventKind::Closed, format!("Rejected: {why}"));
    Ok(update::update(decider, pending, vec![event]))
}
