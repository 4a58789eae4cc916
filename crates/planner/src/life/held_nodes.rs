//! The nodes that a cluster really holds for agreements. The plan counts nodes and gives them out by number; a cluster
//! that others use too holds nodes by name, some seconds later, or not at all. An agreement has the nodes that its
//! cluster reports as held.

use domain::agreement::{Agreement, EventKind};
use domain::change::Change;
use domain::clock::{MICROS_PER_SECOND, Micros};
use domain::resources::{CLUSTER, ResourceAgreements};
use scheduler::Time;
use tracing::info;
use uuid::Uuid;

use crate::agreements::is_undecided;
use crate::context::View;
use crate::decider::Decider;
use crate::life::{billing, update};
use crate::placement::eligible;

/// Takes note of since when the nodes of an agreement without a job are its party's.
pub(crate) fn note_handed_over(decider: &mut Decider<'_>, mut agreement: Agreement, since: Micros) {
    agreement.note_started(Some(since));
    let held = format!("{} holds its nodes for it", agreement.resource);
    let mut events = vec![decider.event(EventKind::Running, held)];
    events.extend(billing::assess(decider, &mut agreement));
    update::update(decider, agreement, events);
}

/// Since when the nodes of an agreement without a job are its party's: from the begin of its slot on, where its cluster
/// holds them for it, or else since it does; none before. Of a peer that is not known before it tells.
pub(crate) fn handed_over_nodes(view: View<'_>, agreement: &Agreement) -> Option<Micros> {
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
        let named = eligible::names_of(decider.view(), resource, &nodes);
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

/// The plan's data for a resource.
pub(crate) fn planned_on(view: View<'_>, resource: &str) -> ResourceAgreements {
    let here = view
        .agreements
        .iter()
        .filter(|agreement| agreement.resource == resource && !is_undecided(agreement));
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
pub(crate) fn has_work_on(view: View<'_>, resource: &str, now: Time) -> bool {
    let one_resource = view.schedules.named(resource);
    let mut stopping = view.life.stopping();
    !planned_on(view, resource).agreements.is_empty()
        || one_resource
            .is_some_and(|resource_plan| resource_plan.last_binding(0).is_some_and(|until| until > now))
        || stopping.any(|stopping| stopping.resource == resource)
}
