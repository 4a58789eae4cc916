//! A request is placed.

use domain::agreement::Agreement;
use domain::change::Change;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::elsewhere::cluster;
use crate::error::Result;
use crate::life::{admission, update};
use crate::limits::quotas;
use crate::placement::places::Placement;
use crate::placement::refuse;
use crate::refusal::Refusal;
use crate::request::{AcceptedOffer, Idempotency, Request, Scope};

/// A request is to be placed inside its window, where accepted agreements that may still move make room for it. Once this is answered,
/// the agreement is stored, and every move with it.
///
/// # Errors
/// [`Error::Refused`](crate::Error::Refused) where there is no place, [`Error::Repeated`](crate::Error::Repeated) where its
/// idempotency key has been used, [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored.
#[derive(Debug, Clone)]
pub struct Place(pub Request);

impl Command for Place {
    type Answer = AcceptedOffer;

    const COUNTED_AS: Option<&'static str> = Some("offer");

    fn scope(&self) -> Option<Scope> {
        self.0.idempotency.as_ref().map(Idempotency::scope)
    }

    fn awaited_agreement(&self) -> Option<Uuid> {
        Some(self.0.id)
    }

    fn noted_for(&self) -> Option<(String, Uuid)> {
        Some((self.0.party.clone(), self.0.id))
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let Self(request) = self;
        decider.check_idempotency_key(request.idempotency.as_ref())?;
        admission::check_id_to_admit(decider.view(), &request, &[])?;
        quotas::check_agreements_quota(decider.view(), &request.party, Some(request.id))?;
        let mut moved = decider.state.elsewhere.take_moved(request.id);
        let Some((agreement, admitted, number)) = place_or_refuse(decider, &request)? else {
            return Ok(DecisionStep::Wait(Self(request)));
        };
        decider.state.insert(agreement.clone(), number);
        let event = admission::admission_event(decider, &agreement, &admitted, request.spender);
        decider.batch.push(Change::CreateAgreement {
            agreement: Box::new(agreement.clone()),
            document: request.document,
            events: vec![event],
        });
        moved.extend(update::update_moved_and_transferred(
            decider,
            &admitted,
            agreement.id,
        ));
        moved.retain(|other| other.party == agreement.party);
        let moved_count = moved.len();
        moved.truncate(AcceptedOffer::MOVED_NAMED);
        let accepted = AcceptedOffer {
            agreement,
            moved,
            moved_count,
        };
        decider.remember_idempotent_answer(request.idempotency, &accepted);
        admission::note_admitted_booking(decider, &accepted);
        Ok(DecisionStep::Done(accepted))
    }
}

/// Finds the place of an offer, and the number that its agreement is known by; none where its cluster has to hold it first.
fn place_or_refuse(
    decider: &mut Decider<'_>,
    request: &Request,
) -> Result<Option<(Agreement, Placement, u64)>, Refusal> {
    cluster::admit_or_wait_for_cluster(decider, request, |search, need, reason| {
        // A refusal reveals something about the agreements of others, as a quote does.
        match quotas::count_quota_question(search, need.payer.party) {
            Ok(()) => refuse::make_refusal(search, need, reason),
            Err(exceeded) => exceeded,
        }
    })
}
