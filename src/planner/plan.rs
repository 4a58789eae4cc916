//! The plan in memory: what the decisions are made on, rebuilt from the store at any time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use scheduler::{Interval, Seconds, SlotTree, Time};
use uuid::Uuid;

use super::{Resource, StartError};
use crate::agreement::{Agreement, ServiceState};
use crate::store::Binding;

/// How much of the past the trees keep: dropping it piece by piece at every decision would cost more than it saves.
const KEPT: Seconds = 24 * 3_600;

/// One resource's share of the plan.
pub(super) struct ResourcePlan {
    pub(super) resource: Resource,
    pub(super) tree: SlotTree,
    /// Until when each node is bound, by its number.
    bound_until: BTreeMap<u32, Time>,
}

/// Every agreement that is not over, and the slots it occupies.
pub struct Plan {
    pub(super) resources: Vec<ResourcePlan>,
    live: HashMap<Uuid, Agreement>,
    /// When the planner has something to do for an agreement: its slot begins, or ends with nothing running in it.
    due: BTreeSet<(Time, Uuid)>,
    /// The nodes that each begun agreement has been given.
    bound: HashMap<Uuid, Vec<u32>>,
    /// The trees hold nothing before this instant.
    forgotten: Time,
}

impl Plan {
    /// The plan that a set of live agreements makes. O(n log n).
    ///
    /// # Errors
    /// [`StartError::Inconsistent`] when an agreement names a resource that is not configured, or does not fit on it.
    pub fn rebuild(
        resources: &[Resource],
        agreements: Vec<Agreement>,
        bindings: Vec<Binding>,
    ) -> Result<Self, StartError> {
        let mut plan = Self {
            resources: resources
                .iter()
                .map(|resource| ResourcePlan {
                    resource: resource.clone(),
                    tree: SlotTree::new(resource.capacity),
                    bound_until: BTreeMap::new(),
                })
                .collect(),
            live: HashMap::with_capacity(agreements.len()),
            due: BTreeSet::new(),
            bound: HashMap::new(),
            forgotten: Time::MIN,
        };
        for agreement in agreements {
            let id = agreement.id;
            plan.insert(agreement)
                .map_err(|why| StartError::Inconsistent(format!("agreement {id} {why}")))?;
        }
        for binding in bindings {
            if let Some(of) = plan.resource_mut(&binding.resource) {
                of.bind(&[binding.node], binding.interval.end);
            }
            plan.bound
                .entry(binding.agreement)
                .or_default()
                .push(binding.node);
        }
        Ok(plan)
    }

    /// Takes an agreement into the plan; says why when it has no room.
    pub(super) fn insert(&mut self, agreement: Agreement) -> Result<(), String> {
        let Some(of) = self.resource_mut(&agreement.resource) else {
            return Err(format!(
                "is placed on the resource \"{}\", which is not configured",
                agreement.resource
            ));
        };
        of.tree
            .reserve(agreement.occupied(), agreement.nodes)
            .map_err(|_| {
                format!(
                    "needs {} nodes of \"{}\" in {}, more than are free",
                    agreement.nodes,
                    agreement.resource,
                    agreement.occupied()
                )
            })?;
        if let Some(at) = due_of(&agreement) {
            self.due.insert((at, agreement.id));
        }
        self.live.insert(agreement.id, agreement);
        Ok(())
    }

    /// A live agreement.
    pub(super) fn get(&self, id: Uuid) -> Option<&Agreement> {
        self.live.get(&id)
    }

    /// Replaces a live agreement by what has become of it; one that is over leaves the plan, and what it no longer
    /// occupies becomes free.
    pub(super) fn replace(&mut self, next: Agreement) {
        let Some(old) = self.live.remove(&next.id) else {
            return;
        };
        if let Some(at) = due_of(&old) {
            self.due.remove(&(at, old.id));
        }
        let (before, after) = (old.occupied(), next.occupied());
        let freed = Interval::new(after.end.max(before.start).max(self.forgotten), before.end);
        let nodes = self.bound.get(&old.id).cloned().unwrap_or_default();
        if let Some(of) = self.resource_mut(&old.resource)
            && !freed.is_empty()
        {
            let released = of.tree.release(freed, old.nodes);
            debug_assert!(released.is_ok(), "what an agreement occupies was reserved for it");
            of.unbind(&nodes, freed.start);
        }
        if next.state.is_final() {
            self.bound.remove(&next.id);
            return;
        }
        if let Some(at) = due_of(&next) {
            self.due.insert((at, next.id));
        }
        self.live.insert(next.id, next);
    }

    /// The next instant at which something is due.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The agreements for which something is due by `now`, in order of that instant.
    pub(super) fn due_by(&self, now: Time) -> Vec<Uuid> {
        self.due
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, id)| *id)
            .collect()
    }

    /// The agreements whose job runs.
    pub(super) fn running(&self) -> Vec<Agreement> {
        let mut running: Vec<_> = self
            .live
            .values()
            .filter(|a| a.service == ServiceState::Processing)
            .cloned()
            .collect();
        running.sort_by_key(|agreement| agreement.id);
        running
    }

    /// The share of the resource with this name.
    fn resource_mut(&mut self, name: &str) -> Option<&mut ResourcePlan> {
        self.resources.iter_mut().find(|of| of.resource.name == name)
    }

    /// Gives an agreement concrete nodes of its resource, the lowest-numbered that are free from `now` on, until the
    /// end of its placement. Fewer than it holds only if the plan is over capacity, which it never is.
    pub(super) fn bind(&mut self, agreement: &Agreement, now: Time) -> Vec<u32> {
        let Some(of) = self.resource_mut(&agreement.resource) else {
            return Vec::new();
        };
        let nodes = of.free_nodes(agreement.nodes, now);
        of.bind(&nodes, agreement.placement.end);
        self.bound.insert(agreement.id, nodes.clone());
        nodes
    }

    /// Whether an agreement has been given nodes.
    pub(super) fn is_bound(&self, agreement: Uuid) -> bool {
        self.bound.contains_key(&agreement)
    }

    /// Drops what lies more than [`KEPT`] before `now` from the trees: no decision looks back.
    pub(super) fn forget(&mut self, now: Time) {
        let before = now - KEPT;
        if before - self.forgotten >= KEPT {
            self.forgotten = before;
            for of in &mut self.resources {
                of.tree.forget(before);
            }
        }
    }
}

impl ResourcePlan {
    /// The lowest-numbered nodes that are free from `now` on, as many as asked for.
    fn free_nodes(&self, nodes: u32, now: Time) -> Vec<u32> {
        (0..self.resource.capacity)
            .filter(|node| self.bound_until.get(node).is_none_or(|until| *until <= now))
            .take(nodes as usize)
            .collect()
    }

    /// Binds nodes until an instant.
    fn bind(&mut self, nodes: &[u32], until: Time) {
        for node in nodes {
            let bound = self.bound_until.entry(*node).or_insert(until);
            *bound = (*bound).max(until);
        }
    }

    /// Ends the binding of nodes at an instant.
    fn unbind(&mut self, nodes: &[u32], at: Time) {
        for node in nodes {
            self.bound_until.insert(*node, at);
        }
    }
}

/// When the planner has to act on an agreement by itself.
fn due_of(agreement: &Agreement) -> Option<Time> {
    match agreement.service {
        ServiceState::NotReady => Some(agreement.placement.start),
        ServiceState::Idle => Some(agreement.placement.end),
        ServiceState::Processing | ServiceState::Completed => None,
    }
}
