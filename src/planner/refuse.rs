//! Refusals: why an offer has no place, and what it could have instead.
//!
//! A requester learns of its own possibilities only. What stands in the way is not told, and a provider that does not
//! want to show how busy it is can tell less, or nothing.

use std::collections::BTreeSet;

use scheduler::alternatives::Limits;
use scheduler::refusal::{Bounds, Relaxation};
use scheduler::{Interval, Reason, Request, Time};

use super::budget::Payer;
use super::decide::Decider;
use super::{Proposal, Refusal};
use crate::agreement::Money;

/// The most alternatives that a refusal names: a list that a person can choose from.
const ALTERNATIVES_MAX: usize = 6;

impl Decider<'_> {
    /// The window that an offer asks for, from now on and within the horizon.
    pub(super) fn window(&self, proposal: &Proposal, now: Time) -> Result<Interval, Refusal> {
        let horizon = now + self.settings.horizon;
        let ready = proposal.ready.unwrap_or(now).max(now);
        let deadline = proposal.deadline.unwrap_or(horizon);
        let capacity = self
            .plan
            .resources
            .iter()
            .map(|of| of.resource.capacity)
            .max()
            .unwrap_or(0);
        let (reason, binding) = if proposal.nodes > capacity {
            (
                Reason::SizeExceedsCapacity,
                format!(
                    "{} nodes are asked for, and the largest resource has {capacity}",
                    proposal.nodes
                ),
            )
        } else if deadline > horizon || ready + proposal.duration > horizon {
            let days = self.settings.horizon / 86_400;
            (
                Reason::HorizonExceeded,
                format!("the provider plans {days} days ahead"),
            )
        } else if deadline - proposal.duration < now {
            (
                Reason::WindowInThePast,
                "the window ends too soon from now for the duration".to_owned(),
            )
        } else if deadline - ready < proposal.duration {
            (
                Reason::WindowContradictory,
                "the window is shorter than the duration".to_owned(),
            )
        } else {
            return Ok(Interval::new(ready, deadline));
        };
        Err(Refusal {
            reason,
            binding,
            alternatives: Vec::new(),
            relaxations: Vec::new(),
            lowest_budget: None,
        })
    }

    /// The refusal of an offer that has no place: because of what it would cost, or because no resource has room for it.
    pub(super) fn no_place(&mut self, payer: Payer<'_>, request: &Request, now: Time) -> Refusal {
        let lowest = self.lowest_budget(payer, request, now);
        if lowest.is_some() || !self.could_pay(payer, request, now) {
            return self.too_dear(payer, lowest, request, now);
        }
        Refusal {
            reason: Reason::NoCapacityInWindow,
            binding: format!(
                "no resource has {} nodes free for {} seconds anywhere in the window, whatever moves inside its own",
                request.nodes, request.duration
            ),
            alternatives: self.alternatives(payer, request, now),
            relaxations: self.relaxations(payer, request, now),
            lowest_budget: None,
        }
    }

    /// The refusal of an offer whose budget is too low for every place that it could have.
    fn too_dear(&mut self, payer: Payer<'_>, lowest: Option<Money>, request: &Request, now: Time) -> Refusal {
        let binding = match payer.budget {
            Some(budget) => format!("every placement in the window costs more than {budget}"),
            None => "it would cost more than any amount that can be written".to_owned(),
        };
        Refusal {
            reason: Reason::BudgetTooLow,
            binding,
            alternatives: self.alternatives(payer, request, now),
            relaxations: Vec::new(),
            lowest_budget: lowest.filter(|_| self.settings.refusals.relaxations),
        }
    }

    /// Slots outside the window that the offer could have, the nearest first: those for which others would move as they
    /// would have inside, and the nearest ones that are free as the plan stands.
    fn alternatives(&mut self, payer: Payer<'_>, request: &Request, now: Time) -> Vec<Interval> {
        let (duration, horizon) = (request.duration, now + self.settings.horizon);
        // A slot that starts before the window's start ends before `start + duration`; one that ends after the
        // window's end starts after `end − duration`.
        let before = Interval::new(now, request.ready + duration - 1);
        let after = Interval::new(request.deadline - duration + 1, horizon);
        let limits = Limits {
            phi_max: self.settings.refusals.alternatives_phi,
            count_max: ALTERNATIVES_MAX,
        };
        let mut starts = BTreeSet::new();
        for of in &mut self.plan.resources {
            let found = of.schedule.alternatives(now, request, limits);
            starts.extend(found.into_iter().map(|alternative| alternative.start));
            let tree = of.schedule.tree();
            starts.extend(tree.latest_fit(request.nodes, duration, before));
            starts.extend(tree.earliest_fit(request.nodes, duration, after));
        }
        let step = self.settings.refusals.coarsen;
        starts.retain(|start| *start + duration <= horizon && start.seconds() % step == 0);
        let outside = |start: &Time| {
            let deviation = (request.ready - *start).max(*start + duration - request.deadline);
            (deviation, *start)
        };
        let mut starts: Vec<Time> = starts
            .into_iter()
            .filter(|start| self.could_pay(payer, &request.fixed_to(*start), now))
            .collect();
        starts.sort_unstable_by_key(outside);
        starts.truncate(ALTERNATIVES_MAX);
        starts
            .into_iter()
            .map(|start| Interval::of(start, duration))
            .collect()
    }

    /// The smallest changes that would have let the offer in, on the resource where there are most of them.
    fn relaxations(&self, payer: Payer<'_>, request: &Request, now: Time) -> Vec<Relaxation> {
        let told = &self.settings.refusals;
        if !told.relaxations {
            return Vec::new();
        }
        let bounds = Bounds {
            times: Interval::new(now, now + self.settings.horizon),
            nodes_min: 1,
            duration_min: 1,
        };
        let coarsened = |of: &super::plan::ResourcePlan| -> Vec<Relaxation> {
            let found = of.schedule.relaxations(request, &bounds);
            found
                .into_iter()
                .filter_map(|relaxation| relaxation.coarsened(told.coarsen, 1, &bounds))
                .filter(|relaxation| self.is_payable(payer, &relaxation.applied(request), now))
                .collect()
        };
        let each = self.plan.resources.iter().map(coarsened);
        each.max_by_key(Vec::len).unwrap_or_default()
    }
}
