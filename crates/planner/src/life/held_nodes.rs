//! The nodes that each begun agreement has: bound, given, handed on and taken back.
//!
//! The plan counts nodes and gives them out by number. A cluster that others use too holds nodes by name, some seconds later,
//! or not at all: there an agreement has the nodes that its cluster reports as held.

use std::collections::BTreeSet;

use domain::agreement::{Agreement, EventKind, ServiceState};
use domain::change::Change;
use domain::clock::{MICROS_PER_SECOND, Micros};
use domain::resources::{CLUSTER, NodeState, ResourceAgreements};
use scheduler::{Interval, Time};
use tracing::info;
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::context::View;
use crate::decider::Decider;
use crate::life::{Life, billing, update};
use crate::schedules::Schedules;
use crate::schedules::resource_plan::ResourcePlan;

/// Takes note of since when the nodes of an agreement without a job are its party's.
pub(crate) fn note_nodes_handed_over(decider: &mut Decider<'_>, mut agreement: Agreement, since: Micros) {
    agreement.note_started(Some(since));
    let held = format!("{} holds its nodes for it", agreement.resource);
    let mut events = vec![decider.event(EventKind::Running, held)];
    events.extend(billing::assess_and_bill(decider, &mut agreement));
    update::update(decider, agreement, events);
}

/// Since when the nodes of an agreement without a job are its party's: from the begin of its slot on, where its cluster
/// holds them for it, or else since it does; none before. Of a peer that is not known before it tells.
pub(crate) fn nodes_handed_over_since(view: View<'_>, agreement: &Agreement) -> Option<Micros> {
    let resource_plan = view.schedules.named(&agreement.resource)?;
    let start = agreement.slot().start;
    if resource_plan.resource.is_peer() {
        return None;
    }
    if resource_plan.resource.kind != CLUSTER {
        return Some(view.now);
    }
    let kept = resource_plan.kept_for(agreement)?;
    let since = kept.since.max(start).seconds() * MICROS_PER_SECOND;
    (kept.nodes.len() >= agreement.slot_nodes() as usize).then_some(since.min(view.now))
}

/// Gives agreements that have begun the nodes that their cluster holds for them, where they were given others: their work
/// goes with those, and is lost with those.
pub(crate) fn bind_as_held(decider: &mut Decider<'_>, resource: &str) {
    let now = decider.present_second();
    let others = decider.state.life.nodes_held_elsewhere(
        &decider.state.schedules,
        &decider.state.agreements,
        resource,
        now,
    );
    for (agreement, _) in &others {
        decider
            .state
            .life
            .take_nodes(&mut decider.state.schedules, agreement, now);
        // Which they were until now its timeline tells.
        decider.batch.push(Change::ReleaseNodes {
            agreement: agreement.id,
            end: agreement.slot().start,
        });
    }
    for (agreement, nodes) in others {
        let named = decider.state.schedules.names_of(resource, &nodes);
        let detail = format!("on nodes {named} of {resource}, which holds these for it");
        info!(agreement = %agreement.id, resource, nodes = named, "its cluster holds other nodes than planned");
        decider
            .state
            .life
            .give_nodes(&mut decider.state.schedules, &agreement, &nodes);
        let mut interval = agreement.slot();
        interval.start = interval.start.max(now);
        let (id, event) = (agreement.id, decider.event(EventKind::Moved, detail));
        update::update(decider, agreement, vec![event]);
        decider.batch.push(Change::BindNodes {
            agreement: id,
            resource: resource.to_owned(),
            nodes,
            interval,
        });
    }
}

/// The plan's data for a resource. O(k log k) for k agreements on it.
pub(crate) fn nodes_held_on(view: View<'_>, resource: &str) -> ResourceAgreements {
    let here = view.agreements.on_resource(resource);
    let with_nodes = |agreement: &Agreement| {
        let nodes = view.life.nodes_of(agreement.id).cloned();
        (agreement.clone(), nodes.unwrap_or_default())
    };
    let mut agreements: Vec<_> = here.map(with_nodes).collect();
    let waiting: Vec<Uuid> = view
        .elsewhere
        .waiting_on(resource)
        .map(|waiting_on| waiting_on.id)
        .collect();
    agreements.extend(
        view.elsewhere
            .waiting_on(resource)
            .map(|waiting_on| (waiting_on.clone(), Vec::new())),
    );
    agreements.sort_by_key(|(agreement, _)| (agreement.placement().start, agreement.id));
    let one_resource = view.schedules.named(resource);
    ResourceAgreements {
        agreements,
        waiting,
        replaced: view.elsewhere.replaced_on(resource),
        moved: view.elsewhere.moved_on(resource).collect(),
        left_out: one_resource.map_or_else(Vec::new, |each| {
            each.nodes.left_out(each.resource.capacity, each.extent())
        }),
    }
}

/// Whether anything is planned on a resource, has nodes there, or is to be stopped there.
pub(crate) fn has_nodes_held_on(view: View<'_>, resource: &str, now: Time) -> bool {
    let one_resource = view.schedules.named(resource);
    let mut stopping = view.life.stopping();
    view.agreements.on_resource(resource).next().is_some()
        || view.elsewhere.waiting_on(resource).next().is_some()
        || one_resource
            .is_some_and(|resource_plan| resource_plan.last_binding(0).is_some_and(|until| until > now))
        || stopping.any(|stopping| stopping.resource == resource)
}

impl Life {
    /// Forgets the nodes that an agreement has been given. Returns them.
    pub(crate) fn forget_nodes(&mut self, id: Uuid) -> Vec<u32> {
        self.bound.remove(&id).unwrap_or_default()
    }

    /// The nodes that an agreement has been given; none before its slot has begun.
    pub(crate) fn nodes_of(&self, id: Uuid) -> Option<&Vec<u32>> {
        self.bound.get(&id)
    }

    /// The agreements that have been given nodes, with these, in no order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (Uuid, &Vec<u32>)> {
        self.bound.iter().map(|(id, nodes)| (*id, nodes))
    }

    /// Gives an agreement concrete nodes of its resource that are free from `now` on until the end of its placement: first the
    /// nodes that are kept for it, then the lowest-numbered. Fewer than it holds only if the plan is over capacity, which it
    /// never is.
    pub(crate) fn bind_held_nodes(
        &mut self,
        schedules: &mut Schedules,
        agreement: &Agreement,
        now: Time,
    ) -> Vec<u32> {
        let Some(at) = schedules.required_place_of(&agreement.resource) else {
            return Vec::new();
        };
        let bind = |resource_plan: &mut ResourcePlan| {
            let nodes = resource_plan.free_nodes(agreement, now);
            resource_plan.bind(&nodes, agreement.slot().end);
            nodes
        };
        let nodes = schedules.change_bindings(at, bind).unwrap_or_default();
        self.bound.insert(agreement.id, nodes.clone());
        nodes
    }

    /// Gives the nodes that an agreement has to another, or to itself, until `end`.
    pub(super) fn hand_over_held_nodes(
        &mut self,
        schedules: &mut Schedules,
        old: &Agreement,
        to: Uuid,
        end: Time,
    ) {
        let Some(nodes) = self.bound.remove(&old.id) else {
            schedules.note_impossible(|| format!("agreement {} has begun and has no nodes", old.id));
            return;
        };
        if let Some(at) = schedules.required_place_of(&old.resource) {
            schedules.change_bindings(at, |resource| resource.rebind(&nodes, end));
        }
        self.bound.insert(to, nodes);
    }

    /// Whether none of the nodes that an agreement has been given is out of use, or others', in an interval, or leaves its
    /// resource.
    fn may_keep_held_nodes(&self, schedules: &Schedules, agreement: &Agreement, interval: Interval) -> bool {
        let resource = schedules.named(&agreement.resource);
        let Some(in_service) = resource.filter(|in_service| !in_service.resource.is_retired()) else {
            return false;
        };
        let nodes = self.bound.get(&agreement.id).map_or(&[][..], Vec::as_slice);
        nodes.iter().all(|node| {
            in_service
                .nodes
                .may_be_kept(*node, in_service.resource.capacity, interval)
        })
    }

    /// Whether an agreement may keep its nodes in the time by which a later end makes its last slot longer. A slot that is to come has no nodes of
    /// its own yet.
    pub(crate) fn may_keep_held_nodes_until(
        &self,
        schedules: &Schedules,
        agreement: &Agreement,
        end: Time,
    ) -> bool {
        let planned = agreement.placement().end;
        let runs = agreement.has_nodes() && !agreement.has_more_slots();
        !runs || end <= planned || self.may_keep_held_nodes(schedules, agreement, Interval::new(planned, end))
    }

    /// Has the nodes of an agreement be free from `now` on.
    pub(crate) fn unbind_held_nodes(&self, schedules: &mut Schedules, agreement: &Agreement, now: Time) {
        let nodes = self.bound.get(&agreement.id).map_or(&[][..], Vec::as_slice);
        let until = agreement.slot().end;
        if let Some(at) = schedules.required_place_of(&agreement.resource) {
            schedules.change_bindings(at, |resource| resource.unbind(nodes, until, now));
        }
    }

    /// Takes the nodes from an agreement that it was given.
    fn take_nodes(&mut self, schedules: &mut Schedules, agreement: &Agreement, now: Time) {
        let nodes = self.bound.remove(&agreement.id).unwrap_or_default();
        if let Some(at) = schedules.required_place_of(&agreement.resource) {
            let until = agreement.slot().end;
            schedules.change_bindings(at, |resource| resource.unbind(&nodes, until, now));
        }
    }

    /// Gives an agreement these nodes of its resource until the end of its slot.
    fn give_nodes(&mut self, schedules: &mut Schedules, agreement: &Agreement, nodes: &[u32]) {
        if let Some(at) = schedules.required_place_of(&agreement.resource) {
            let until = agreement.slot().end;
            schedules.change_bindings(at, |resource| resource.bind(nodes, until));
        }
        self.bound.insert(agreement.id, nodes.to_vec());
    }

    /// The agreements with concrete nodes.
    pub(crate) fn begun<'a>(&self, agreements: &'a Agreements) -> impl Iterator<Item = &'a Agreement> {
        self.bound.keys().filter_map(|id| agreements.get(*id))
    }

    /// The begun agreements with a node that is gone, except those after the end of their slots: the executor knows how their
    /// work ended.
    pub(crate) fn begun_on_held_nodes_lost(
        &self,
        schedules: &Schedules,
        agreements: &Agreements,
        at: usize,
        now: Time,
    ) -> Vec<Uuid> {
        let Some(resource_with_nodes) = schedules
            .get(at)
            .filter(|resource_with_nodes| !resource_with_nodes.nodes.is_plain())
        else {
            return Vec::new();
        };
        if !resource_with_nodes.nodes.any_down() {
            return Vec::new();
        }
        let gone = |node: &u32| resource_with_nodes.nodes.state(*node) == NodeState::Down;
        let here = |id: &Uuid| {
            agreements.get(*id).is_some_and(|agreement| {
                agreement.slot().end > now && schedules.place_of(&agreement.resource) == Some(at)
            })
        };
        let mut lost: Vec<Uuid> = self
            .bound
            .iter()
            .filter(|(id, nodes)| nodes.iter().any(gone) && here(id))
            .map(|(id, _)| *id)
            .collect();
        lost.sort_unstable();
        lost
    }

    /// The agreements without a job that have begun on a resource, while the resource does not hold their nodes yet.
    pub(crate) fn nodes_not_handed_over(&self, agreements: &Agreements, resource: &str) -> Vec<Agreement> {
        let waits = |agreement: &&Agreement| {
            agreement.resource == resource
                && agreement.service == ServiceState::Idle
                && agreement.never_had_nodes()
        };
        self.begun(agreements).filter(waits).cloned().collect()
    }

    /// The begun agreements on a resource that holds other nodes for them than their own, with these nodes. An agreement
    /// is left out where these nodes would be another's, or are known to be gone.
    fn nodes_held_elsewhere(
        &self,
        schedules: &Schedules,
        agreements: &Agreements,
        resource: &str,
        now: Time,
    ) -> Vec<(Agreement, Vec<u32>)> {
        let Some(resource_plan) = schedules.named(resource) else {
            return Vec::new();
        };
        let elsewhere = |agreement: &Agreement| {
            let mut nodes = resource_plan.kept_for(agreement)?.nodes.clone();
            nodes.sort_unstable();
            let stands = |node: &u32| {
                *node < resource_plan.resource.capacity && resource_plan.nodes.state(*node) != NodeState::Down
            };
            let whole = nodes.len() == agreement.slot_nodes() as usize && nodes.iter().all(stands);
            let differ = *self.bound.get(&agreement.id)? != nodes;
            (agreement.resource == resource && whole && differ && agreement.slot().end > now).then_some(nodes)
        };
        let mut others: Vec<_> = self
            .begun(agreements)
            .filter_map(|agreement| Some((agreement, elsewhere(agreement)?)))
            .map(|(agreement, nodes)| (agreement.clone(), nodes))
            .collect();
        others.sort_by_key(|(agreement, _)| agreement.id);
        loop {
            let bound = |id: &Uuid| self.bound.get(id).into_iter().flatten().copied();
            let left: BTreeSet<u32> = others.iter().flat_map(|(other, _)| bound(&other.id)).collect();
            let before = others.len();
            let mut taken = BTreeSet::new();
            others.retain(|(_, nodes)| {
                let mut free = nodes
                    .iter()
                    .filter(|node| resource_plan.is_free(**node, now) || left.contains(*node));
                free.clone().count() == nodes.len() && free.all(|node| taken.insert(*node))
            });
            if others.len() == before {
                return others;
            }
        }
    }

    /// Forgets which nodes an agreement has been given, and that its slot is made no longer: it is to have another.
    pub(super) fn forget_given_nodes(
        &mut self,
        schedules: &Schedules,
        agreements: &Agreements,
        agreement: Uuid,
    ) {
        self.bound.remove(&agreement);
        self.look_again_for_overrun(schedules, agreements, agreement, None);
    }
}
