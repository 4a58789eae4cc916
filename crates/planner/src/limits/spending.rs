//! What keys with a cap may spend: the prices of the agreements that are made with one stay together within its cap. What waits for its
//! cluster counts, so that it can be taken when the cluster has the nodes.

use domain::agreement::{Agreement, Money, Spender};
use domain::change::Change;
use scheduler::Reason;
use uuid::Uuid;

use crate::context::View;
use crate::decider::Decider;
use crate::error::{Refusal, quota_exceeded};
use crate::limits::budget::is_within_budget;
use crate::placement::refuse;
use crate::request::Request;
use crate::schedules::need::Need;

/// Holds a proposal within the cap of its key, as its budget; tells whether the cap is lower than its own.
pub(crate) fn limit_to_cap(view: View<'_>, request: &mut Request) -> bool {
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
pub(crate) fn check_cap(
    view: View<'_>,
    spender: Option<Spender>,
    price: Option<Money>,
) -> Result<(), Refusal> {
    match (spender, left_to_spend(view, spender), price) {
        (Some(spender), Some(left), Some(price)) if !is_within_budget(price, left) => {
            Err(cap_exceeded(view, spender))
        }
        _ => Ok(()),
    }
}

/// A refusal of a proposal that its key's cap has limited: where it is about the price, it is about the cap.
pub(crate) fn refusal_under_cap(
    view: View<'_>,
    spender: Option<Spender>,
    need: &Need<'_>,
    why: Refusal,
) -> Refusal {
    let is_about_price = match why.reason {
        Reason::BudgetTooLow => true,
        Reason::NoCapacityInWindow => spender.is_some() && refuse::is_too_dear(view, need),
        _ => false,
    };
    match spender.filter(|_| is_about_price) {
        Some(spender) => cap_exceeded(view, spender),
        None => why,
    }
}

fn cap_exceeded(view: View<'_>, Spender { key, cap }: Spender) -> Refusal {
    let charged = view.settings.pricing.as_ref().map(|pricing| pricing.currency);
    if let Some(charged) = charged.filter(|charged| *charged != cap.currency) {
        return quota_exceeded(format!(
            "search key may spend {cap}, and agreements are charged in {charged}"
        ));
    }
    let spent = Money::new(spent_by(view, key), cap.currency);
    quota_exceeded(format!("search key may spend {cap}, and has spent {spent}"))
}

fn left_to_spend(view: View<'_>, spender: Option<Spender>) -> Option<Money> {
    let Spender { key, cap } = spender?;
    let left = cap.micros.saturating_sub(spent_by(view, key));
    Some(Money::new(left, cap.currency))
}

/// What a key has spent, with what waits.
fn spent_by(view: View<'_>, key: Uuid) -> i64 {
    view.limits.spent_by(key, |id| view.waiting.has(*id))
}

/// Counts the price of an agreement that its command waits for.
pub(crate) fn note_waiting_price(decider: &mut Decider<'_>, spender: Option<Spender>, agreement: &Agreement) {
    let (limits, waiting) = (&mut decider.plan.limits, &decider.plan.waiting);
    limits.retain_waiting(|id| waiting.has(*id));
    if let (Some(spender), Some(price)) = (spender, agreement.price) {
        limits.spend_later(agreement.id, spender.key, price.micros);
    }
}

/// Counts the price of an agreement that was made.
pub(crate) fn spend(decider: &mut Decider<'_>, spender: Option<Spender>, agreement: &Agreement) {
    let Some((Spender { key, .. }, price)) = spender.zip(agreement.price) else {
        return;
    };
    decider.plan.limits.spend(key, price.micros);
    decider.batch.push(Change::Spend {
        agreement: agreement.id,
        key,
        micros: price.micros,
    });
}
