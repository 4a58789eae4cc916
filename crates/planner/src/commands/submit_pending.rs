//! An agreement is stored that is decided later.

use domain::agreement::{Agreement, AgreementState, EventKind, PlacementConstraints, Slots};
use domain::change::{AcceptanceEndpoint, Change};
use scheduler::{Interval, Reason};
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::life::admission;
use crate::limits::{quotas, spending};
use crate::placement::places::Placement;
use crate::refusal::bare_refusal;
use crate::request::{AcceptedOffer, Idempotency, Request, Scope};

/// Agreements that may wait for their decision: they are decided within moments, so that more are a flood.
const PENDING_MAX: usize = 10_000;

/// An offer is to be decided later; `offer` is the counter offer that it accepts, which stays held until it is decided or lapses. Once
/// this is answered, the agreement is stored as Pending.
///
/// # Errors
/// [`Error::Repeated`] where its idempotency key has been used, [`Error::Unavailable`] where it could not be stored or too many wait.
#[derive(Debug)]
pub struct SubmitPending {
    /// The offer.
    pub proposal: Request,
    /// Where the decision is to be told.
    pub acceptance: Option<AcceptanceEndpoint>,
    /// The counter offer that it accepts, if any.
    pub offer: Option<Uuid>,
}

impl Command for SubmitPending {
    type Answer = AcceptedOffer;

    fn scope(&self) -> Option<Scope> {
        self.proposal.idempotency.as_ref().map(Idempotency::scope)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let proposal = self.proposal;
        decider.check_idempotency_key(proposal.idempotency.as_ref())?;
        let talks = self.offer.and_then(|offer| decider.state.table.of_offer(offer));
        let replaced = talks.and_then(|talks| talks.instance.agreement);
        let terms = self.offer.zip(talks);
        let terms = terms.and_then(|(offer, talks)| talks.offers.get(&offer)?.terms.as_ref());
        let at_price = terms.and_then(|terms| terms.price);
        let at_peer = terms
            .filter(|terms| terms.peer.is_some())
            .map(|terms| terms.resource.clone());
        admission::check_id_to_admit(decider.view(), &proposal, &[replaced])?;
        if replaced.is_none() {
            quotas::check_agreements_quota(decider.view(), &proposal.party, None)?;
        }
        // It is on the first resource until it is decided, or on that of the peer that is asked.
        if decider.state.schedules.get(0).is_none() {
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
        spending::check_spending_cap(
            decider.view(),
            proposal.spender.filter(|_| at_peer.is_some()),
            at_price,
        )?;
        if decider.state.pending_count() >= PENDING_MAX {
            return Err(Error::Unavailable);
        }
        let now = decider.present_second();
        let mut window = proposal.window(now, now + decider.settings.horizon);
        window.end = window.end.max(window.start);
        let nowhere = Slots::one((Interval::new(window.start, window.start), shape.nodes));
        let at = at_peer
            .as_ref()
            .and_then(|peer| decider.state.schedules.place_of(peer))
            .unwrap_or(0);
        let agreement = Agreement {
            duration: shape.duration,
            constraints: PlacementConstraints::default(),
            choices: Vec::new(),
            state: AgreementState::Pending,
            ..admission::make_admitted_agreement(
                &mut decider.search(),
                &proposal,
                window,
                &Placement::at(at, nowhere, None),
            )
        };
        // What a peer is to carry out was not asked to be decided later.
        let taken = match &at_peer {
            Some(peer) => decider.event(EventKind::Forwarded, format!("{peer} is asked to carry it out")),
            None => decider.event(EventKind::Offered, "to be decided".to_owned()),
        };
        decider.state.insert_unplaced(agreement.clone());
        decider.batch.push(Change::CreateAgreement {
            agreement: Box::new(agreement.clone()),
            document: proposal.document,
            events: vec![taken],
        });
        decider.batch.push(Change::AwaitDecision {
            agreement: agreement.id,
            acceptance: self.acceptance,
            offer: self.offer,
            spender: proposal.spender.map(|spender| spender.key),
        });
        let pending = AcceptedOffer::alone(agreement);
        decider.remember_idempotent_answer(proposal.idempotency, &pending);
        admission::note_admitted_booking(decider, &pending);
        Ok(DecisionStep::Done(pending))
    }
}
