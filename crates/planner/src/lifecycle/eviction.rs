//! Eviction: an operator ends an agreement of a party, says why, and the provider pays for it as for work that it has lost.

use domain::agreement::{Agreement, EventKind, Money, Note};
use domain::change::Change;
use domain::resources::{add_to_sums, penalties_of_provider};
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::plan::is_undecided;
use crate::request::Idempotency;

/// An order to end an agreement of a party.
#[derive(Debug, Clone)]
pub struct Eviction {
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

impl Decider<'_> {
    /// Ends an agreement by an operator's word.
    pub fn evict(&mut self, order: Eviction) -> Result<EvictedAgreement> {
        self.check_key_is_new(order.idempotency.as_ref())?;
        let mut agreement = self.live_agreement(order.id)?;
        if order
            .versions
            .is_some_and(|may| !may.contains(&agreement.version))
        {
            return Err(Error::Changed);
        }
        if is_undecided(&agreement) {
            return Err(Error::Conflict("not decided yet; it can be terminated"));
        }
        if agreement.state.terminating().is_none() {
            return Err(Error::Conflict("being ended already"));
        }
        let decided = self.batch.len();
        let (party, reason) = (&agreement.party, &order.reason);
        let paid = order
            .compensation
            .map_or_else(String::new, |compensation| format!(", with {compensation}"));
        let words = format!("evicted {} of {party}{paid}: {reason}", order.id);
        let note = Note::of_operator(self.now, &order.by, order.id, words);
        self.batch.push(Change::Note(note));
        if let Some(amount) = order.compensation {
            let event = self.compensate(&agreement, amount, &order.reason);
            agreement = self.update(agreement, vec![event]);
        }
        let why = format!(
            "the operator of {} has ended it: {}",
            agreement.resource, order.reason
        );
        let lost = self.lose_agreement_because(agreement, EventKind::Broken, why);
        let lost = lost.ok_or(Error::Unavailable)?;
        // Its place would be held for the party that has to leave it.
        self.plan
            .suggested
            .retain(|suggested| suggested.agreement.id != order.id);
        let mut penalties = Vec::new();
        for (_, amount) in penalties_of_provider(&self.batch[decided..]) {
            add_to_sums(&mut penalties, amount);
        }
        let evicted = EvictedAgreement {
            agreement: lost,
            penalties,
            compensation: order.compensation,
        };
        self.remember(order.idempotency, &evicted);
        Ok(evicted)
    }
}

#[cfg(test)]
mod tests;
