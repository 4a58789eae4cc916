//! What keys with a cap may spend: the prices of the agreements that are made with one stay together within its cap. What waits for its
//! cluster counts, so that it can be taken when the cluster has the nodes.

use domain::agreement::{Agreement, Money, Spender};
use domain::change::Change;
use scheduler::Reason;
use uuid::Uuid;

use crate::admission::budget::is_within_budget;
use crate::decider::Decider;
use crate::error::{Refusal, quota_exceeded};
use crate::request::Request;
use crate::resources::need::Need;

impl Decider<'_> {
    /// Holds a proposal within the cap of its key, as its budget; tells whether the cap is lower than its own.
    pub(crate) fn limit_to_cap(&self, request: &mut Request) -> bool {
        let Some(left) = self.left_to_spend(request.spender) else {
            return false;
        };
        let lowers = request
            .budget
            .is_none_or(|budget| !is_within_budget(budget, left));
        if lowers {
            request.budget = Some(left);
        }
        lowers
    }

    /// Why a price is too much for a key, if it is.
    pub(crate) fn check_cap(&self, spender: Option<Spender>, price: Option<Money>) -> Result<(), Refusal> {
        match (spender, self.left_to_spend(spender), price) {
            (Some(spender), Some(left), Some(price)) if !is_within_budget(price, left) => {
                Err(self.cap_exceeded(spender))
            }
            _ => Ok(()),
        }
    }

    /// A refusal of a proposal that its key's cap has limited: where it is about the price, it is about the cap.
    pub(crate) fn refusal_under_cap(
        &self,
        spender: Option<Spender>,
        need: &Need<'_>,
        why: Refusal,
    ) -> Refusal {
        let is_about_price = match why.reason {
            Reason::BudgetTooLow => true,
            Reason::NoCapacityInWindow => spender.is_some() && self.is_too_dear(need),
            _ => false,
        };
        match spender.filter(|_| is_about_price) {
            Some(spender) => self.cap_exceeded(spender),
            None => why,
        }
    }

    fn cap_exceeded(&self, Spender { key, cap }: Spender) -> Refusal {
        let charged = self.settings.pricing.as_ref().map(|pricing| pricing.currency);
        if let Some(charged) = charged.filter(|charged| *charged != cap.currency) {
            return quota_exceeded(format!(
                "this key may spend {cap}, and agreements are charged in {charged}"
            ));
        }
        let spent = Money::new(self.spent_by(key), cap.currency);
        quota_exceeded(format!("this key may spend {cap}, and has spent {spent}"))
    }

    fn left_to_spend(&self, spender: Option<Spender>) -> Option<Money> {
        let Spender { key, cap } = spender?;
        let left = cap.micros.saturating_sub(self.spent_by(key));
        Some(Money::new(left, cap.currency))
    }

    /// What a key has spent, with what waits.
    fn spent_by(&self, key: Uuid) -> i64 {
        self.plan.limits.spent_by(key, |id| self.plan.waiting.has(*id))
    }

    /// Counts the price of an agreement that its command waits for.
    pub(crate) fn note_waiting_price(&mut self, spender: Option<Spender>, agreement: &Agreement) {
        let (limits, waiting) = (&mut self.plan.limits, &self.plan.waiting);
        limits.retain_waiting(|id| waiting.has(*id));
        if let (Some(spender), Some(price)) = (spender, agreement.price) {
            limits.spend_later(agreement.id, spender.key, price.micros);
        }
    }

    /// Counts the price of an agreement that was made.
    pub(crate) fn spend(&mut self, spender: Option<Spender>, agreement: &Agreement) {
        let Some((Spender { key, .. }, price)) = spender.zip(agreement.price) else {
            return;
        };
        self.plan.limits.spend(key, price.micros);
        self.batch.push(Change::Spend {
            agreement: agreement.id,
            key,
            micros: price.micros,
        });
    }
}
