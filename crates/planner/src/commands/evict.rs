//! Eviction: an operator ends an agreement of a party, says why, and the provider pays for it as for work that it has lost.

use domain::agreement::{Agreement, EventKind, Money, Note, add_to_sums};
use domain::change::Change;
use domain::resources::penalties_of_provider;
use uuid::Uuid;

use super::{Command, Decision};
use crate::agreements::is_undecided_agreement;
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::life::{billing, lost_work, update};
use crate::request::{Idempotency, Scope};

/// An agreement of a party is to be ended at once. Its work is lost, and its job is stopped; its guarantees are judged as after any loss,
/// and pay.
///
/// # Errors
/// [`Error::NotFound`] also when it has ended already, [`Error::Conflict`] where it is being ended or not decided yet,
/// [`Error::Changed`] when it is in another version, [`Error::Repeated`] where its idempotency key has been used,
/// [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone)]
pub struct Evict {
    /// Which agreement.
    pub id: Uuid,
    /// The party of the operator.
    pub by: String,
    /// Why, in words for the party of the agreement.
    pub reason: String,
    /// What its party gets beside the penalties of its guarantees; none, or more than nothing.
    pub compensation: Option<Money>,
    /// The versions that it may have, where the caller names some.
    pub versions: Option<Vec<i64>>,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<EvictedAgreement>>,
}

/// An agreement that was ended by an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct EvictedAgreement {
    /// As it is now.
    pub agreement: Agreement,
    /// The penalties that the provider pays: a sum for each currency.
    pub penalties: Vec<Money>,
    /// What it pays beside these.
    pub compensation: Option<Money>,
}

impl Command for Evict {
    type Answer = EvictedAgreement;

    const COUNTED_AS: Option<&'static str> = Some("termination");

    fn scope(&self) -> Option<Scope> {
        self.idempotency.as_ref().map(Idempotency::scope)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        decider.check_idempotency_key(self.idempotency.as_ref())?;
        let mut agreement = decider.live_agreement(self.id)?;
        if self.versions.is_some_and(|may| !may.contains(&agreement.version)) {
            return Err(Error::Changed);
        }
        if is_undecided_agreement(&agreement) {
            return Err(Error::Conflict("not decided yet; it can be terminated"));
        }
        if agreement.state.terminating().is_none() {
            return Err(Error::Conflict("being ended already"));
        }
        let decided = decider.batch.len();
        let (party, reason) = (&agreement.party, &self.reason);
        let paid = self
            .compensation
            .map_or_else(String::new, |compensation| format!(", with {compensation}"));
        let words = format!("evicted {} of {party}{paid}: {reason}", self.id);
        let note = Note::of_operator(decider.now, &self.by, self.id, words);
        decider.batch.push(Change::Note(note));
        if let Some(amount) = self.compensation {
            let event = billing::bill_compensation(decider, &agreement, amount, &self.reason);
            agreement = update::update(decider, agreement, vec![event]);
        }
        let why = format!(
            "the operator of {} has ended it: {}",
            agreement.resource, self.reason
        );
        let lost = lost_work::lose_agreement_because(decider, agreement, EventKind::Broken, why);
        let lost = lost.ok_or(Error::Unavailable)?;
        // Its place would be held for the party that has to leave it.
        decider.state.table.forget_suggestions_about(self.id);
        let mut penalties = Vec::new();
        for (_, amount) in penalties_of_provider(&decider.batch[decided..]) {
            add_to_sums(&mut penalties, amount);
        }
        let evicted = EvictedAgreement {
            agreement: lost,
            penalties,
            compensation: self.compensation,
        };
        decider.remember_idempotent_answer(self.idempotency, &evicted);
        Ok(DecisionStep::Done(evicted))
    }
}

#[cfg(test)]
mod tests;
