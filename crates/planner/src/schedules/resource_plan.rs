//! The plan of one resource, with how its nodes stand and which are kept or bound.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::agreement::{Agreement, Run};
use domain::resources::{KeptNodes, NodeState, ReportedState, Reporter, Resource};
use scheduler::domain::HasPlan;
use scheduler::schedule::TRIES;
use scheduler::{Interval, Schedule, SlotTree, Time};

use crate::schedules::failures::Failures;
use crate::schedules::need::needed_shape_of_agreement;
use crate::schedules::needed_sizes::may_take_needed_shape;
use crate::schedules::nodes::Nodes;
use crate::settings::Settings;

/// How one node stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its number in the resource, from 0.
    pub node: u32,
    /// Its name; its number where it has no name.
    pub name: String,
    /// The worst that is said of it.
    pub state: NodeState,
    /// The reports that it is not up.
    pub said: Vec<(Reporter, ReportedState)>,
}

/// One resource's share of the plan.
#[derive(Clone)]
pub(crate) struct ResourcePlan {
    pub(crate) resource: Resource,
    pub(crate) schedule: Schedule,
    /// Until when each node is bound, by its number.
    pub(super) bound_until: BTreeMap<u32, Time>,
    /// The nodes that are kept for runs.
    pub(crate) kept: HashMap<Run, KeptNodes>,
    /// Whether its executor has told which these are, since the start of the service.
    pub(crate) has_told_kept: bool,
    /// How its nodes stand.
    pub(crate) nodes: Nodes,
}

/// What a resource has beside its schedule.
#[derive(Debug, Clone)]
pub(crate) struct NodesOfPlan {
    resource: Resource,
    bound_until: BTreeMap<u32, Time>,
    kept: HashMap<Run, KeptNodes>,
    has_told_kept: bool,
    nodes: Nodes,
}

impl HasPlan for ResourcePlan {
    fn plan(&self) -> &SlotTree {
        self.schedule.tree()
    }
}

impl ResourcePlan {
    /// What it has beside its schedule.
    pub(crate) fn nodes_of_plan(&self) -> NodesOfPlan {
        NodesOfPlan {
            resource: self.resource.clone(),
            bound_until: self.bound_until.clone(),
            kept: self.kept.clone(),
            has_told_kept: self.has_told_kept,
            nodes: self.nodes.clone(),
        }
    }

    /// Takes back what it had beside its schedule.
    pub(super) fn put_nodes_back(&mut self, before: NodesOfPlan) {
        let NodesOfPlan {
            resource,
            bound_until,
            kept,
            has_told_kept,
            nodes,
        } = before;
        (self.resource, self.nodes) = (resource, nodes);
        (self.bound_until, self.kept, self.has_told_kept) = (bound_until, kept, has_told_kept);
    }

    /// Whether it has all of its nodes, no others, and will.
    pub(crate) fn is_plain(&self) -> bool {
        self.nodes.is_plain() && self.schedule.tree().capacity() == self.resource.capacity
    }

    /// The node-seconds of an interval that are planned for something. O(log n), and a step for each time with nodes out of use.
    pub(crate) fn booked_within(&self, interval: Interval) -> u64 {
        let out_of_use = self.nodes.blocks.iter().map(|(block, nodes)| {
            let (start, end) = (block.start.max(interval.start), block.end.min(interval.end));
            u64::from(*nodes) * (end - start).max(0).unsigned_abs()
        });
        let busy = self.schedule.tree().busy_area(interval);
        busy.saturating_sub(out_of_use.sum())
    }

    /// How many nodes executors and operators may speak of: those that the resource has, had, or may have again.
    pub(crate) fn extent(&self) -> u32 {
        let named = u32::try_from(self.resource.node_names.len()).unwrap_or(u32::MAX);
        let bound = self.bound_until.last_key_value().map_or(0, |(node, _)| node + 1);
        self.resource.capacity.max(named).max(bound)
    }

    /// How some of its nodes stand.
    pub(crate) fn statuses(&self, nodes: impl IntoIterator<Item = u32>) -> Vec<NodeStatus> {
        let said = |node| {
            [Reporter::Executor, Reporter::Operator]
                .into_iter()
                .filter_map(move |by| Some((by, self.nodes.report_on(node, by)?.clone())))
        };
        let standing = |node| NodeStatus {
            node,
            name: self.resource.names_of(&[node]),
            state: self.nodes.state(node),
            said: said(node).collect(),
        };
        nodes.into_iter().map(standing).collect()
    }

    /// Until when the nodes from this number on are bound.
    pub(crate) fn last_binding(&self, first: u32) -> Option<Time> {
        self.bound_until.range(first..).map(|(_, until)| *until).max()
    }

    /// Until when each node is bound that is to leave the resource then, from `now` on.
    pub(crate) fn leaving(&self, now: Time) -> Vec<Time> {
        let beyond = self.bound_until.range(self.resource.capacity..);
        beyond
            .map(|(_, until)| *until)
            .filter(|until| *until > now)
            .collect()
    }

    /// Whether it may have an agreement on it that is to have a place there. Saved work stays where it is.
    pub(crate) fn may_have(&self, agreement: &Agreement) -> bool {
        if agreement.slots.is_split() && agreement.slots_begun() > 0 {
            return true;
        }
        let (shape, _) = needed_shape_of_agreement(agreement);
        let constraints = &agreement.constraints;
        let is_here = self.resource.name == agreement.resource;
        !self.resource.is_retired()
            && (is_here && !self.resource.is_peer() || self.resource.takes_new())
            && may_take_needed_shape(&self.resource, shape, &constraints.filters, &constraints.barred)
    }

    /// As many nodes as an agreement has that are up and free from `now` on: first the ones kept for it, then the
    /// lowest-numbered, and last the ones that are kept for others or are others' before it ends.
    pub(crate) fn free_nodes(&self, agreement: &Agreement, now: Time) -> Vec<u32> {
        let is_up = |node: &u32| self.nodes.state(*node) == NodeState::Up;
        let mut free: Vec<u32> = (0..self.resource.capacity)
            .filter(|node| self.is_free(*node, now))
            .filter(is_up)
            .collect();
        if !self.kept.is_empty() || !self.nodes.is_plain() {
            let own = self.kept_for(agreement);
            let own = own.map_or(&[][..], |kept| kept.nodes.as_slice());
            let kept: BTreeSet<u32> = self.kept.values().flat_map(|kept| &kept.nodes).copied().collect();
            let busy = self.nodes.busy_in(Interval::new(now, agreement.slot().end));
            free.sort_by_cached_key(|node| {
                let others = kept.contains(node) || busy.contains(node);
                (!own.contains(node), others, *node)
            });
        }
        free.truncate(agreement.slot_nodes() as usize);
        free.sort_unstable();
        free
    }

    /// The nodes that are kept for the slot that an agreement has now, or has next.
    pub(crate) fn kept_for(&self, agreement: &Agreement) -> Option<&KeptNodes> {
        self.kept.get(&Run::from(agreement))
    }

    /// Whether nodes are kept for a slot of an agreement, by its index: as many as it needs, from its start.
    pub(crate) fn holds_slot(&self, agreement: &Agreement, index: usize, now: Time) -> bool {
        let run = Run {
            slot: u32::try_from(index + 1).unwrap_or(u32::MAX),
            ..Run::from(agreement)
        };
        let (Some(slot), Some(kept)) = (agreement.slots.get(index), self.kept.get(&run)) else {
            return false;
        };
        // Nodes that are kept for an earlier try of the slot have another start.
        let start = slot.placement.start;
        let begins = kept.since == start || (start <= now + 1 && kept.since <= now + 1);
        begins && kept.nodes.len() >= slot.nodes as usize
    }

    /// Whether nodes are kept for the slots of an agreement that are not over and begin by an instant; where it is not known, for the slot that
    /// it has now or next.
    pub(crate) fn holds(&self, agreement: &Agreement, near: Option<Time>, now: Time) -> bool {
        let next = agreement.slots_over();
        let is_near = |index: &usize| match (near, agreement.slots.get(*index)) {
            (Some(near), Some(slot)) => slot.placement.start <= near,
            _ => *index == next,
        };
        let mut slots = (next..agreement.slots.len()).filter(is_near);
        slots.all(|index| self.holds_slot(agreement, index, now))
    }

    /// Whether no agreement has a node from `now` on.
    pub(crate) fn is_free(&self, node: u32, now: Time) -> bool {
        self.bound_until.get(&node).is_none_or(|until| *until <= now)
    }

    /// Binds nodes until an instant.
    pub(crate) fn bind(&mut self, nodes: &[u32], until: Time) {
        for node in nodes {
            let bound = self.bound_until.entry(*node).or_insert(until);
            *bound = (*bound).max(until);
        }
    }

    /// Ends a binding that lasts until `until` at an instant, where that is earlier. A binding that was made meanwhile stays: an end
    /// may be told long after it came.
    pub(crate) fn unbind(&mut self, nodes: &[u32], until: Time, at: Time) {
        for node in nodes {
            if let Some(bound) = self.bound_until.get_mut(node).filter(|bound| **bound == until) {
                *bound = at.min(until);
            }
        }
    }

    /// Moves the end of a binding.
    pub(crate) fn rebind(&mut self, nodes: &[u32], until: Time) {
        for node in nodes {
            self.bound_until.insert(*node, until);
        }
    }

    /// The nodes that are to be planned on by what is said of them.
    pub(super) fn nodes_in_use(&self, now: Time, failures: &Failures) -> Use {
        // A slot that ended within this second has its nodes until the second is over.
        let now = self.schedule.now().max(now);
        let kept = |node: u32| self.bound_until.get(&node).copied().filter(|until| *until > now);
        let (capacity, leaving) = (self.resource.capacity, self.leaving(now));
        let many = u32::try_from(leaving.len()).unwrap_or(u32::MAX);
        Use {
            now,
            nodes: capacity.saturating_add(many),
            leaves: leaving.iter().min().copied(),
            before: resource_plan_blocks_from_now(&self.nodes.blocks, now),
            next: self.nodes.out_of_use(capacity, now, failures, (kept, &leaving)),
        }
    }

    pub(super) fn is_as_planned(&self, one_use: &Use) -> bool {
        one_use.before == one_use.next && one_use.nodes == self.schedule.tree().capacity()
    }
}

/// A resource with an empty plan from `now` on, before it is part of a domain. Beside its own it has as many nodes as work still
/// uses that leave it.
pub(crate) fn new_resource_plan(
    resource: &Resource,
    leaving: u32,
    settings: &Settings,
    now: Time,
) -> ResourcePlan {
    let mut schedule = Schedule::new(resource.capacity.saturating_add(leaving), settings.order)
        .deciding(settings.decision)
        .budgeted(Some(settings.decision_work))
        .trying(TRIES)
        .gaining(settings.improving.least_gain);
    schedule.advance(now);
    ResourcePlan {
        resource: resource.clone(),
        schedule,
        bound_until: BTreeMap::new(),
        kept: HashMap::new(),
        has_told_kept: false,
        nodes: Nodes::new(resource.planned_maintenance()),
    }
}

/// The domain's data about a resource.
pub(super) fn domain_resource(
    at: usize,
    resource: &Resource,
    settings: &Settings,
) -> scheduler::domain::Resource {
    let pricing = settings.pricing.as_ref();
    scheduler::domain::Resource {
        id: domain_id(at),
        rate: resource.rate,
        price: pricing.map_or(0, |pricing| pricing.node_hour(&resource.name)),
        attributes: resource.attributes_with_name(),
    }
}

/// The domain's name of a resource. The lower wins a tie, so it is its place.
pub(crate) fn domain_id(index: usize) -> u64 {
    index as u64
}

/// The nodes of a resource that are planned on.
pub(super) struct Use {
    /// From when on.
    pub(super) now: Time,
    /// How many there are: its own, and those that leave it when their work ends.
    pub(super) nodes: u32,
    /// Until when at the earliest one of these stays.
    pub(super) leaves: Option<Time>,
    /// How many of them are out of use when: in the plan, and as it is to be.
    pub(super) before: Vec<(Interval, u32)>,
    pub(super) next: Vec<(Interval, u32)>,
}

/// The part of the blocks that is not over.
fn resource_plan_blocks_from_now(blocks: &[(Interval, u32)], now: Time) -> Vec<(Interval, u32)> {
    let rest = |(interval, nodes): &(Interval, u32)| {
        let rest = Interval::new(interval.start.max(now), interval.end);
        (!rest.is_empty()).then_some((rest, *nodes))
    };
    blocks.iter().filter_map(rest).collect()
}
