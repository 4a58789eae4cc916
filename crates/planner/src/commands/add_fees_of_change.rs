//! The fees of a change where a peer has the agreement, or is to have it, are added to offers.

use domain::agreement::Money;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::placement::trial;
use crate::table::candidates::{Candidate, candidate_price_difference, candidate_price_with_fee};
use crate::table::quote::Quote;
use crate::table::{fees, holds, quote, replace};

/// Fees are to be added to offers in place of an agreement: ours by our prices, and at least the charge of the peer that has it now; at
/// most the agreement's price. Offers beyond the budget are taken away.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where the agreement is over, and those of a change.
#[derive(Debug, Clone)]
pub struct AddFeesOfChange {
    /// Which agreement.
    pub agreement: Uuid,
    /// The most that its party pays, where it says.
    pub budget: Option<Money>,
    /// The charge of the peer that has it now for each offer, in their order.
    pub charges: Vec<Option<Money>>,
    /// The offers.
    pub quote: Quote,
}

impl Command for AddFeesOfChange {
    type Answer = Quote;

    fn decide(mut self, decider: &mut Decider<'_>) -> Decision<Self> {
        trial::suppose_in_trial(&mut decider.search(), |search| {
            let old = replace::lift_replaced_agreement(search, self.agreement)?;
            holds::vacate_hold(search, self.agreement);
            let rebooking = fees::cheapest_rebooking_for_fee(search, &old);
            for (candidate, charge) in self.quote.candidates.iter_mut().zip(&self.charges) {
                let terms = &mut candidate.terms;
                terms.difference = candidate_price_difference(terms.price, old.price);
                let own = fees::change_fee(search.view(), &old, terms.price, rebooking.as_ref());
                let (own, why) = own.map_or((None, None), |own| (Some(own.amount), own.why));
                let charge = charge.filter(|charge| own.is_some_and(|own| charge.currency == own.currency));
                let is_charge =
                    charge.is_some_and(|charge| own.is_some_and(|own| charge.micros > own.micros));
                terms.fee = own.map(|own| {
                    let fee = charge.map_or(own.micros, |charge| charge.micros.max(own.micros));
                    let most = old.price.map_or(i64::MAX, |price| price.micros);
                    Money::new(fee.min(most), own.currency)
                });
                terms.fee_why = if is_charge {
                    Some(format!("{} charges that for the change", old.resource))
                } else {
                    why
                };
            }
            // A peer's fee that cannot be passed on would be ours.
            let is_passed_on = |candidate: &Candidate, charge: Option<Money>| {
                let fee = candidate.terms.fee.map_or(0, |fee| fee.micros);
                candidate.terms.peer.is_none() || charge.is_none_or(|charge| charge.micros <= fee)
            };
            let mut passed_on = self.charges.iter().copied();
            self.quote
                .candidates
                .retain(|candidate| is_passed_on(candidate, passed_on.next().flatten()));
            let is_affordable =
                |candidate: &Candidate| match (self.budget, candidate_price_with_fee(&candidate.terms)) {
                    (Some(budget), Some(costs)) => costs.micros <= budget.micros,
                    _ => true,
                };
            let dear = self
                .quote
                .candidates
                .extract_if(.., |candidate| !is_affordable(candidate));
            let cheapest =
                dear.min_by_key(|dear| candidate_price_with_fee(&dear.terms).map(|costs| costs.micros));
            if let Some(cheapest) = cheapest.filter(|_| self.quote.candidates.is_empty()) {
                self.quote.refusal = Some(quote::quote_beyond_budget(search.view(), &cheapest));
            }
            Ok(DecisionStep::Done(self.quote))
        })
    }
}
