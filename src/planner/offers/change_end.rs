//! The end of a slot that has begun is moved: the possible offers, with their prices.
//!
//! Running work stays where it is and goes on. So no place is searched for: its own nodes are free for longer, or others
//! can make room on as many, or the slot can be made as long as there is room.

use scheduler::refusal::Relaxation;
use scheduler::{Interval, Reason, Request, Seconds, Time};

use super::quote::{HOLD_MIN, PHI_EPSILON, difference_of, ratio};
use super::replace::Lifted;
use crate::agreement::{Agreement, Money, OfferKind, OfferTerms, Shape, Slots, part};
use crate::clock::second_of;
use crate::planner::admission::budget::Payer;
use crate::planner::admission::pricing::Priced;
use crate::planner::admission::refuse::bare;
use crate::planner::decide::Decider;
use crate::planner::plan::request_of;
use crate::planner::{Ask, Candidate, Error, Proposal, Quote, Refusal};

/// How long before its end running work has to be told of a new end: a supervisor looks five times a second, and a
/// cluster's reservation is changed within seconds.
pub(in crate::planner) const TOLD_BEFORE: Seconds = 5;

/// The parts that may not change any more.
const GOES_ON: &str = "being carried out: only its end and its deadline can change";

impl Decider<'_> {
    /// The possible offers in place of an agreement with a slot that has begun. The agreement is out of the plan
    /// meanwhile.
    pub(in crate::planner) fn quote_begun(
        &mut self,
        ask: &Ask,
        expires: Time,
        lifted: &Lifted,
    ) -> Result<Result<Quote, Refusal>, Error> {
        if !lifted.goes_on_in(&ask.proposal) {
            return Err(Error::Conflict(GOES_ON));
        }
        Ok(self.changed_end(ask, expires, lifted))
    }

    fn changed_end(&mut self, ask: &Ask, expires: Time, lifted: &Lifted) -> Result<Quote, Refusal> {
        let now = second_of(self.now);
        let old = &lifted.agreement;
        let mut proposal = ask.proposal.clone();
        self.within_quota(&mut proposal, now, Some(lifted))?;
        let shape = proposal.shapes.iter().find(|shape| shape.nodes == old.nodes());
        let place = self.plan.resources.place(&old.resource);
        let of = place.and_then(|at| Some((at, self.plan.resources.get(at)?.resource.rate)));
        let Some((shape, (at, rate))) = shape.zip(of) else {
            return Err(bare(
                Reason::QuotaExceeded,
                "its size is beyond what its party may have".to_owned(),
            ));
        };
        let start = old.placement().start;
        let duration = proposal.scaling.shape(*shape, rate).duration;
        let end = start + duration;
        let until = (now + self.settings.negotiation.hold)
            .min(expires)
            .min(old.placement().end.min(end) - TOLD_BEFORE);
        if until - now < HOLD_MIN {
            return Err(bare(
                Reason::WindowInThePast,
                "its slot is, or would be, over before what runs could be told".to_owned(),
            ));
        }
        // The rest of it is treated as a new request: it has to lie inside the window and the horizon.
        let rest = Proposal {
            shapes: vec![Shape {
                nodes: old.nodes(),
                duration: end - now,
            }],
            scaling: crate::planner::Scaling::Contract,
            ready: None,
            ..proposal.clone()
        };
        let deadline = self.window(&rest, now)?.end;
        let reached = self.reached(at, old, end, now);
        let fits = reached >= end;
        let told = self.settings.refusals;
        let reached = if fits { end } else { coarse(reached, told.coarsen) };
        let deviation = ratio(end - reached, duration);
        let most = proposal
            .deviation_max
            .map_or(told.alternatives_phi, |own| own.min(told.alternatives_phi));
        let phi_max = f64::from(most.numerator) / f64::from(most.denominator);
        // Longer than it is, or it is no offer.
        let worth_offering = told.relaxations && reached > old.placement().end;
        let near = deviation <= phi_max + PHI_EPSILON;
        if !(fits || worth_offering && near) {
            let mut refusal = bare(
                Reason::NoCapacityInWindow,
                "its nodes are promised to others after its slot".to_owned(),
            );
            if worth_offering {
                refusal.relaxations = vec![Relaxation::Duration(reached - start)];
            }
            return Err(refusal);
        }
        let price = self.price_of_change(at, old, reached);
        let fee = price.and_then(|price| self.change_fee(old, price));
        let costs = price.map(|price| with_fee(price, fee));
        if let (Some(budget), Some(price)) = (proposal.budget, costs)
            && (budget.currency != price.currency || price.micros > budget.micros)
        {
            let mut refusal = bare(
                Reason::BudgetTooLow,
                "it would cost more than its budget".to_owned(),
            );
            refusal.lowest_budget = Some(price);
            return Err(refusal);
        }
        let terms = OfferTerms {
            resource: old.resource.clone(),
            slots: Slots::one((Interval::new(start, reached), old.nodes())),
            ready: proposal.ready.unwrap_or(old.ready).min(start),
            deadline,
            kept_until: reached,
            deviation,
            kind: if fits {
                OfferKind::Exact
            } else {
                OfferKind::Shorter
            },
            confidence: None,
            price,
            difference: price
                .zip(old.price)
                .and_then(|(price, old)| difference_of(price, old)),
            fee,
            promise: None,
        };
        Ok(Quote {
            candidates: vec![Candidate {
                terms,
                expires: until,
            }],
            refusal: None,
        })
    }

    /// How far towards `end` the slot of an agreement that is out of the plan can reach: with others moving inside their
    /// windows all the way, or else as long as there is room as the plan stands.
    pub(in crate::planner) fn reached(&mut self, at: usize, old: &Agreement, end: Time, now: Time) -> Time {
        if end <= old.placement().end {
            return end;
        }
        let now = match self.plan.resources.get(at) {
            Some(of) => of.schedule.now().max(now),
            None => return old.placement().end,
        };
        let more = |end: Time| Interval::new(old.placement().end, end);
        let rest = Request {
            ready: now,
            deadline: end,
            duration: end - now,
            nodes: old.slot_nodes(),
            ..request_of(old, self.plan.next_number())
        };
        if self.plan.may_keep(old, more(end)) && self.plan.resources.would_start(at, now, &rest).is_some() {
            return end;
        }
        let Some(of) = self.plan.resources.get(at) else {
            return old.placement().end;
        };
        let tree = of.schedule.tree();
        let free =
            |end: Time| tree.min_free(more(end)) >= old.slot_nodes() && self.plan.may_keep(old, more(end));
        let (mut least, mut most) = (old.placement().end, end);
        while most - least > 1 {
            let middle = Time(i64::midpoint(least.seconds(), most.seconds()));
            if free(middle) {
                least = middle;
            } else {
                most = middle;
            }
        }
        least
    }

    /// The price, with another end, of an agreement that is out of the plan. Where it is longer, the added time costs the
    /// present price of such a slot. Where it is shorter, the price falls in proportion, but never by more than that
    /// present price: else it would pay to make a slot longer and shorter again.
    fn price_of_change(&self, at: usize, old: &Agreement, end: Time) -> Option<Money> {
        let price = old.price?;
        // Overrun is charged by its use, or bought by this change.
        let before = old.placement().start + old.duration;
        let slot = Interval::new(before.min(end), before.max(end));
        let request = Request {
            ready: slot.start,
            deadline: slot.end,
            duration: slot.duration(),
            ..request_of(old, 0)
        };
        let priced = Priced::of(Payer::of_agreement(old), &request, slot, slot);
        let more = self.price(at, priced)?;
        let micros = if end <= before {
            let share = part(price, end - old.placement().start, old.duration);
            share.micros.max(price.micros.checked_sub(more.micros)?)
        } else {
            price.micros.checked_add(more.micros)?
        };
        (more.currency == price.currency).then_some(Money { micros, ..price })
    }
}

/// A price with its fee.
pub(in crate::planner) fn with_fee(price: Money, fee: Option<Money>) -> Money {
    Money {
        micros: price.micros.saturating_add(fee.map_or(0, |fee| fee.micros)),
        ..price
    }
}

/// The last step at or before an instant, with steps of a given number of seconds.
pub(in crate::planner) fn coarse(at: Time, step: Seconds) -> Time {
    let step = step.max(1);
    Time(at.seconds().div_euclid(step) * step)
}

#[cfg(test)]
mod tests {
    use scheduler::Fraction;

    use super::*;
    use crate::agreement::Currency;
    use crate::planner::tests::domain::{Domain, proposal};
    use crate::planner::{Pricing, Resource};

    #[test]
    fn a_slot_that_is_made_longer_and_shorter_again_costs_no_less() {
        let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
        let mut pricing = Pricing::flat(100_000_000, Currency::parse("EUR").unwrap());
        pricing.late = Fraction::percent(60);
        domain.settings.pricing = Some(pricing);
        let old = domain.place(proposal(2, 1_000, (0, 1_000))).unwrap().agreement;
        let mut cost =
            |of: &Agreement, end| domain.decide(|decider| decider.price_of_change(0, of, Time(end)));
        let longer = cost(&old, 2_000).unwrap();
        let more = longer.micros - old.price.unwrap().micros;
        assert!(more < old.price.unwrap().micros, "what is later is cheaper");
        let prolonged = Agreement {
            slots: Slots::one((Interval::new(Time(0), Time(2_000)), 2)),
            duration: 2_000,
            price: Some(longer),
            ..old.clone()
        };
        assert_eq!(cost(&prolonged, 1_000), old.price);
        let half = cost(&old, 500).unwrap();
        assert!(half.micros * 2 >= old.price.unwrap().micros, "{half}");
        assert!(half.micros < old.price.unwrap().micros, "{half}");
    }
}
