//! A picture of the plan, from which pages are drawn. Views of a page take no time of the planner's task.

use std::collections::HashMap;

use domain::agreement::{Agreement, Money};
use domain::resources::{NodeCounts, UnusedNodes};
use scheduler::{Interval, Seconds, Time};
use uuid::Uuid;

use crate::agreements::is_undecided_agreement;
use crate::context::View;
use crate::free_time::{free_time_in_whole_steps, join_free_time};
use crate::limits::allowance::Allowance;
use crate::prices::payer::Payer;
use crate::prices::pricing::{Priced, Pricing};
use crate::schedules::resource_plan::{NodeStatus, ResourcePlan};
use crate::settings::Policies;

/// The most nodes of a resource that are all on a picture. A longer list does not help to find the nodes that are not up.
const NODES_MAX: u32 = 64;

/// Seconds of an hour.
const HOUR: Seconds = 3_600;

/// The plan as it was at an instant. All of it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// When it was taken.
    pub taken: Time,
    /// The rules for parties.
    pub policies: Policies,
    /// Until when the provider plans.
    pub horizon: Time,
    /// Whether requesters are told when nodes are free.
    pub is_published: bool,
    /// Requesters are told of times in steps of this number of seconds.
    pub step: Seconds,
    /// In the provider's order, the retired ones among them that still have something.
    pub resources: Vec<PicturedResource>,
}

/// A resource on a [`Picture`].
#[derive(Debug, Clone, PartialEq)]
pub struct PicturedResource {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub capacity: u32,
    /// Whether something new is placed on it: it is neither retired nor frozen.
    pub takes_new: bool,
    /// The instants at which the number of free nodes changes, and the number from there on.
    pub free: Vec<(Time, u32)>,
    /// Its slots that are not over, by start.
    pub slots: Vec<PicturedSlot>,
    /// Its nodes that are not used for a time, as far as is known which nodes these are.
    pub unused: Vec<UnusedNodes>,
    /// How many of its nodes stand how.
    pub counts: NodeCounts,
    /// Its nodes, by their numbers; where they are many, only those with a report that they are not up.
    pub nodes: Vec<NodeStatus>,
}

/// Nodes of an agreement, or held, for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PicturedSlot {
    /// What it is planned for.
    pub of: PicturedSlotOf,
    /// The party that has it.
    pub party: String,
    /// From when until when.
    pub interval: Interval,
    /// How many nodes.
    pub nodes: u32,
    /// The answer whose offers it is held for at its party's request, of which one can be taken; none of an agreement, and of what the
    /// provider proposes, which no quota counts.
    pub choice: Option<Uuid>,
    /// Their numbers where these are known: they are bound when the slot begins, and on clusters kept some time before.
    pub numbers: Vec<u32>,
}

/// What a slot is planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PicturedSlotOf {
    /// An agreement, by its id.
    Agreement {
        /// Assigned by the service.
        id: Uuid,
        /// Whether the slot has begun.
        has_begun: bool,
    },
    /// Offers that are held, by the id of their negotiation.
    HeldOffers(Uuid),
}

impl PicturedSlotOf {
    /// The id of the agreement or the negotiation.
    pub fn id(self) -> Uuid {
        match self {
            Self::Agreement { id, .. } | Self::HeldOffers(id) => id,
        }
    }
}

impl Picture {
    /// How many slots are on it.
    pub fn slots(&self) -> usize {
        self.resources.iter().map(|resource| resource.slots.len()).sum()
    }

    /// What its quotas leave a party, as far as the picture has what it has. They may leave it less: what waits to be decided or for its
    /// cluster, and slots of an agreement that are over, are not on the picture, and each held offer counts there by its largest slots.
    pub fn allowance(&self, party: &str) -> Allowance {
        let quotas = self.policies.quotas_of_parties.get(party);
        let slots = || {
            let resources = self.resources.iter();
            resources.flat_map(|resource| resource.slots.iter().map(|slot| (resource.name.as_str(), slot)))
        };
        let is_of_other =
            |slot: &PicturedSlot| slot.party != party && matches!(slot.of, PicturedSlotOf::Agreement { .. });
        let has_others = slots().any(|(_, slot)| is_of_other(slot));
        let counts = |slot: &PicturedSlot| {
            slot.choice.is_some() || matches!(slot.of, PicturedSlotOf::Agreement { .. })
        };
        let own = slots().filter(|(_, slot)| slot.party == party && counts(slot));
        Allowance::beside(
            quotas.unwrap_or(&self.policies.quotas),
            (self.taken, has_others),
            own.map(|(resource, slot)| (resource, slot.choice, (slot.interval, slot.nodes))),
        )
    }

    /// The resource with this name.
    pub fn named(&self, name: &str) -> Option<&PicturedResource> {
        self.resources.iter().find(|resource| resource.name == name)
    }
}

impl PicturedResource {
    /// The fewest and the most nodes that are free at a time in an interval; both 0 where it is empty. O(log n + k) for k changes.
    pub fn free_within(&self, interval: Interval) -> (u32, u32) {
        let found = self.pictured_steps_within(interval).map(|(_, free)| free);
        let extremes = found.fold(None, |seen: Option<(u32, u32)>, free| {
            let (least, most) = seen.unwrap_or((free, free));
            Some((least.min(free), most.max(free)))
        });
        extremes.unwrap_or_default()
    }

    /// The times in an interval in which so many nodes are free, in whole steps; at most `most` of them. O(log n + k).
    pub fn gaps(&self, interval: Interval, nodes: u32, step: Seconds, most: usize) -> Vec<Interval> {
        let enough = self
            .pictured_steps_within(interval)
            .filter(|(_, free)| *free >= nodes);
        let enough: Vec<Interval> = enough.map(|(enough, _)| enough).collect();
        let gaps = join_free_time(&enough).into_iter();
        let gaps = gaps.map(|gap| free_time_in_whole_steps(gap, step));
        gaps.filter(|gap| !gap.is_empty()).take(most).collect()
    }

    /// The resource with no more free nodes than an allowance leaves for a duration, of which a number of nodes is wanted; its slots
    /// and nodes are left out.
    #[must_use]
    pub fn limited_to(&self, allowance: &Allowance, wanted: (u32, Seconds), within: Interval) -> Self {
        let free = if allowance.is_unbounded() {
            self.free.clone()
        } else {
            allowance.limit_free(&self.free, (&self.name, self.capacity), wanted, within)
        };
        Self {
            name: self.name.clone(),
            capacity: self.capacity,
            takes_new: self.takes_new,
            free,
            slots: Vec::new(),
            unused: Vec::new(),
            counts: self.counts,
            nodes: Vec::new(),
        }
    }

    /// The price for a party of one node for an hour that is its whole window, where the nodes are as busy as they are in an interval.
    /// `None` where it is more than an amount can hold.
    pub fn node_hour(&self, pricing: &Pricing, party: &str, within: Interval, now: Time) -> Option<Money> {
        let taken = self.pictured_steps_within(within).map(|(steps_within, free)| {
            let seconds = u128::from(steps_within.duration().unsigned_abs());
            u128::from(self.capacity.saturating_sub(free)) * seconds
        });
        let whole = u128::from(self.capacity) * u128::from(within.duration().unsigned_abs());
        let load = scheduler::pricing::price_load_factor(pricing.busy, taken.sum(), whole);
        let payer = Payer {
            party,
            budget: None,
            fix_at: None,
        };
        let hour = Interval::of(within.start.max(now), HOUR);
        pricing.price(&self.name, load, now, Priced::of(payer, (hour, 1), hour))
    }

    /// The parts of an interval between changes, with the number of free nodes in each.
    fn pictured_steps_within(&self, interval: Interval) -> impl Iterator<Item = (Interval, u32)> {
        let after = self.free.partition_point(|(at, _)| *at <= interval.start);
        let first = after.saturating_sub(1);
        let ends = self.free[first..].iter().skip(1).map(|(at, _)| *at);
        let ends = ends.chain(std::iter::once(Time::MAX));
        let parts = self.free[first..].iter().zip(ends).map(move |((at, free), end)| {
            let part = Interval::new((*at).max(interval.start), end.min(interval.end));
            (part, *free)
        });
        parts.take_while(|(part, _)| !part.is_empty())
    }
}

/// The plan as it is.
pub(crate) fn picture(view: View<'_>) -> Picture {
    let now = view.present_second();
    let plans = view.schedules.plans();
    let mut resources: Vec<PicturedResource> =
        plans.map(|plan| picture_of_resource(view, plan, now)).collect();
    let places: HashMap<String, usize> = resources
        .iter()
        .map(|resource| resource.name.clone())
        .zip(0..)
        .collect();
    let mut add = |resource: &str, slot: PicturedSlot| {
        if let Some(pictured) = places.get(resource).and_then(|at| resources.get_mut(*at)) {
            pictured.slots.push(slot);
        }
    };
    for agreement in view
        .agreements
        .iter()
        .filter(|live| !is_undecided_agreement(live))
    {
        for slot in pictured_slots(view, agreement) {
            add(&agreement.resource, slot);
        }
    }
    for (choice, held) in &view.table.holds().by_choice {
        let offer = view.table.held_offers_of(*choice).next();
        let Some(negotiation) = offer.and_then(|offer| view.table.get(offer.negotiation)) else {
            continue;
        };
        for stretch in held {
            let (interval, nodes) = stretch.stretch;
            let slot = PicturedSlot {
                of: PicturedSlotOf::HeldOffers(negotiation.instance.id),
                party: negotiation.instance.party.clone(),
                interval,
                nodes,
                choice: negotiation.instance.proposed.is_none().then_some(*choice),
                numbers: Vec::new(),
            };
            add(&stretch.resource, slot);
        }
    }
    for resource in &mut resources {
        resource
            .slots
            .sort_by_key(|slot| (slot.interval.start, slot.of.id(), slot.interval.end));
    }
    Picture {
        taken: now,
        policies: view.settings.policies(),
        horizon: now + view.settings.horizon,
        is_published: view.settings.refusals.availability,
        step: view.settings.refusals.coarsen,
        resources,
    }
}

fn picture_of_resource(view: View<'_>, resource_plan: &ResourcePlan, now: Time) -> PicturedResource {
    let resource = &resource_plan.resource;
    PicturedResource {
        name: resource.name.clone(),
        capacity: resource.capacity,
        takes_new: resource.takes_new(),
        free: resource_plan.schedule.tree().steps_from(now).collect(),
        slots: Vec::new(),
        unused: resource_plan
            .nodes
            .unused(resource.capacity, now, &view.settings.failures),
        counts: resource_plan.nodes.counts(resource.capacity),
        nodes: if resource.capacity <= NODES_MAX {
            resource_plan.statuses(0..resource.capacity)
        } else {
            resource_plan.statuses(resource_plan.nodes.reported(resource.capacity))
        },
    }
}

/// The slots of an agreement that are not over.
fn pictured_slots<'a>(view: View<'a>, agreement: &'a Agreement) -> impl Iterator<Item = PicturedSlot> + 'a {
    let present = agreement.slots_over();
    let open = agreement.slots.iter().enumerate().skip(present);
    open.filter(|(_, slot)| !slot.taken_over)
        .map(move |(index, slot)| {
            let has_begun = index == present && agreement.has_nodes();
            let bound = view.life.nodes_of(agreement.id).filter(|_| has_begun);
            let kept = || view.schedules.named(&agreement.resource)?.kept_for(agreement);
            let kept = || kept().filter(|_| index == present).map(|kept| &kept.nodes);
            PicturedSlot {
                of: PicturedSlotOf::Agreement {
                    id: agreement.id,
                    has_begun,
                },
                party: agreement.party.clone(),
                interval: slot.placement,
                nodes: slot.nodes,
                choice: None,
                numbers: bound.or_else(kept).cloned().unwrap_or_default(),
            }
        })
}
