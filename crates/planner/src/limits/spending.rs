//! What keys with a cap may spend, and what they have spent: the cap is a budget of every request that is made with the key.

use std::collections::HashMap;

use domain::agreement::{Agreement, Money, Spender};
use domain::change::Change;
use uuid::Uuid;

use crate::context::View;
use crate::limits::Limits;
use crate::prices::budgets::is_within_budget;
use crate::refusal::{Refusal, quota_exceeded};
use crate::request::Request;

/// Holds a proposal within the cap of its key, as its budget; tells whether the cap is lower than its own.
pub(crate) fn limit_to_spending_cap(view: View<'_>, request: &mut Request) -> bool {
    let Some(left) = left_to_spend(view, request.spender) else {
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
pub(crate) fn check_spending_cap(
    view: View<'_>,
    spender: Option<Spender>,
    price: Option<Money>,
) -> Result<(), Refusal> {
    match (spender, left_to_spend(view, spender), price) {
        (Some(spender), Some(left), Some(price)) if !is_within_budget(price, left) => {
            Err(spending_cap_exceeded(view, spender))
        }
        _ => Ok(()),
    }
}

pub(crate) fn spending_cap_exceeded(view: View<'_>, Spender { key, cap }: Spender) -> Refusal {
    let charged = view.settings.pricing.as_ref().map(|pricing| pricing.currency);
    if let Some(charged) = charged.filter(|charged| *charged != cap.currency) {
        return quota_exceeded(format!(
            "this key may spend {cap}, and agreements are charged in {charged}"
        ));
    }
    let spent = Money::new(spent_by(view, key), cap.currency);
    quota_exceeded(format!("this key may spend {cap}, and has spent {spent}"))
}

fn left_to_spend(view: View<'_>, spender: Option<Spender>) -> Option<Money> {
    let Spender { key, cap } = spender?;
    let left = cap.micros.saturating_sub(spent_by(view, key));
    Some(Money::new(left, cap.currency))
}

/// What a key has spent, with what waits.
fn spent_by(view: View<'_>, key: Uuid) -> i64 {
    view.limits.spent_by(key, |id| view.elsewhere.has(*id))
}

/// Counts the price of an agreement that its command waits for; `waits` says of an agreement whether one still does.
pub(crate) fn note_spending_that_waits(
    limits: &mut Limits,
    waits: impl Fn(Uuid) -> bool,
    spender: Option<Spender>,
    agreement: &Agreement,
) {
    limits.retain_waiting(|id| waits(*id));
    if let (Some(spender), Some(price)) = (spender, agreement.price) {
        limits.spend_later(agreement.id, spender.key, price.micros);
    }
}

/// Counts the price of an agreement that was made. Returns what is to be stored, if something was spent.
pub(crate) fn note_spending(
    limits: &mut Limits,
    spender: Option<Spender>,
    agreement: &Agreement,
) -> Option<Change> {
    let (Spender { key, .. }, price) = spender.zip(agreement.price)?;
    limits.add_spending(key, price.micros);
    Some(Change::Spend {
        agreement: agreement.id,
        key,
        micros: price.micros,
    })
}

impl Limits {
    /// Takes back what keys with a cap have spent.
    pub(crate) fn recall_spent(&mut self, spent: HashMap<Uuid, i64>) {
        self.spent = spent.into();
    }

    /// Counts what was spent with a key.
    pub(crate) fn add_spending(&mut self, key: Uuid, micros: i64) {
        let spent = self.spent.get(&key).copied().unwrap_or(0);
        self.spent.insert(key, spent.saturating_add(micros));
    }

    /// Counts what would be spent with a key once the cluster of an agreement holds its nodes.
    fn spend_later(&mut self, agreement: Uuid, key: Uuid, micros: i64) {
        self.spent_by_waiting.insert(agreement, (key, micros));
    }

    /// Counts only those agreements for later that still wait.
    fn retain_waiting(&mut self, waits: impl Fn(&Uuid) -> bool) {
        self.spent_by_waiting.retain(|id, _| waits(id));
    }

    /// What a key has spent, with what those agreements cost that still wait.
    fn spent_by(&self, key: Uuid, waits: impl Fn(&Uuid) -> bool) -> i64 {
        let waiting = self.spent_by_waiting.iter();
        let own = waiting.filter(|(id, (by, _))| *by == key && waits(id));
        let spent = self.spent.get(&key).copied().unwrap_or(0);
        own.fold(spent, |sum, (_, (_, micros))| sum.saturating_add(*micros))
    }
}
