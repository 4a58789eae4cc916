//! An agreement is ended before its time.

use domain::agreement::{
    Agreement, AgreementState, Event, EventKind, Money, PostingKind, RunOutcome, ServiceState,
};
use domain::change::Change;
use domain::clock::second_after;
use uuid::Uuid;

use super::{Command, Decision};
use crate::agreements::is_undecided_agreement;
use crate::decider::{Decider, DecisionStep};
use crate::error::{Error, Result};
use crate::life::{awaited_words, billing, lost_work, settle_moves, update};
use crate::request::{Idempotency, Scope};
use crate::table::{fees, holds};

/// An agreement is to be ended before its time: at once when nothing of it runs, else as soon as its job has been stopped.
///
/// # Errors
/// [`Error::NotFound`] also when it has ended already, [`Error::Changed`] when it is in another version, [`Error::Repeated`] where its
/// idempotency key has been used, [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone)]
pub struct Terminate {
    /// Which agreement.
    pub id: Uuid,
    /// The party that it must be of; none for any.
    pub party: Option<String>,
    /// Whether the provider takes its time back, and not its party ends it.
    pub by_provider: bool,
    /// The versions that it may have, where the caller names some.
    pub versions: Option<Vec<i64>>,
    /// The charge of the peer that has it for its end, where that is known.
    pub charge_of_peer: Option<Money>,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<Agreement>>,
}

impl Terminate {
    /// Of an agreement in any version. It must be `party`'s where a party is named.
    pub fn of(id: Uuid, party: Option<String>) -> Self {
        Self {
            id,
            party,
            by_provider: false,
            versions: None,
            charge_of_peer: None,
            idempotency: None,
        }
    }
}

impl Command for Terminate {
    type Answer = Agreement;

    const COUNTED_AS: Option<&'static str> = Some("termination");

    fn scope(&self) -> Option<Scope> {
        self.idempotency.as_ref().map(Idempotency::scope)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        decider.check_idempotency_key(self.idempotency.as_ref())?;
        let agreement = decider.live_agreement(self.id)?;
        if self.party.is_some_and(|party| party != agreement.party) {
            return Err(Error::NotFound);
        }
        if self.versions.is_some_and(|may| !may.contains(&agreement.version)) {
            return Err(Error::Changed);
        }
        if is_undecided_agreement(&agreement)
            && decider.state.schedules.is_at_peer(&agreement)
            && !self.by_provider
        {
            return Err(Error::Conflict(
                "being agreed with another domain; try again in a moment",
            ));
        }
        let ending = if self.by_provider && !is_undecided_agreement(&agreement) {
            lost_work::end_taken_back(decider, agreement)?
        } else {
            terminate_or_stop_job(decider, agreement, self.by_provider, self.charge_of_peer)?
        };
        decider.remember_idempotent_answer(self.idempotency, &ending);
        Ok(DecisionStep::Done(ending))
    }
}

/// Ends an agreement at once, or has its job stopped first.
fn terminate_or_stop_job(
    decider: &mut Decider<'_>,
    mut agreement: Agreement,
    by_provider: bool,
    charge_of_peer: Option<Money>,
) -> Result<Agreement> {
    // Asked before: its job is being stopped.
    let Some(terminating) = agreement.state.terminating() else {
        return Ok(agreement);
    };
    agreement.state = terminating;
    let by = if by_provider { "the operator" } else { "its party" };
    let mut events = vec![decider.event(EventKind::Terminating, format!("asked for by {by}"))];
    match agreement.service {
        ServiceState::NotReady => return terminate_before_begin(decider, agreement, events, charge_of_peer),
        // Its nodes may be its party's. What it owes is known when its peer tells.
        ServiceState::Idle if awaited_words::awaits_word_of_peer(decider.view(), &agreement) => {}
        ServiceState::Idle => {
            agreement.outcome = Some(RunOutcome::Terminated);
            events.extend(update::update_to_closed(
                decider,
                &mut agreement,
                AgreementState::Terminated,
                decider.now,
            )?);
        }
        ServiceState::Processing | ServiceState::Completed => {}
    }
    Ok(update::update(decider, agreement, events))
}

/// Ends an agreement before its slot begins, for its fee. The present price of the same request is known only after
/// the agreement has left the plan.
fn terminate_before_begin(
    decider: &mut Decider<'_>,
    mut agreement: Agreement,
    mut events: Vec<Event>,
    charge_of_peer: Option<Money>,
) -> Result<Agreement> {
    let mut closed =
        update::update_to_closed(decider, &mut agreement, AgreementState::Terminated, decider.now)?;
    settle_moves::settle_moves(decider, agreement.id);
    agreement.version += 1;
    decider
        .state
        .replace(agreement.clone(), second_after(decider.now));
    let last = closed.pop();
    events.extend(closed);
    let fee = fees::cancellation_fee(&mut decider.search(), &agreement, charge_of_peer);
    events.extend(fee.and_then(|fee| {
        let why = fee.why.map_or_else(String::new, |why| format!(": {why}"));
        let what = format!("fee for ending it before its slot{why}");
        billing::charge(decider, &agreement, PostingKind::Cancellation, fee.amount, &what)
    }));
    events.extend(last);
    decider.batch.push(Change::UpdateAgreement {
        agreement: Box::new(agreement.clone()),
        events,
    });
    holds::release_holds_about(&mut decider.bargaining(), agreement.id);
    Ok(agreement)
}
