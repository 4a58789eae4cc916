//! Resources are added, enlarged, shrunk, retired and brought back while the service serves: by its operators, and by its
//! configuration.
//!
//! What changes is decided and stored in one batch with all that follows for agreements.

use std::collections::BTreeMap;

use domain::agreement::{Note, NoteKind};
use domain::change::Change;
use domain::clock::{MICROS_PER_SECOND, second_after};
use domain::resources::{CLUSTER, LOCAL, Repaired, Resource};
use scheduler::{Time, counted};
use uuid::Uuid;

use crate::context::View;
use crate::decider::Decider;
use crate::error::Error;
use crate::life::held_nodes;
use crate::resources::maintenance::{add_planned_maintenance, maintenance_difference, without_maintenance};
use crate::resources::orders::{RESOURCES_MAX, ResourceChanges, ResourceVerb, ResourceWish};
use crate::resources::repair;
use crate::resources::repair::RepairCause;

/// The first place of a resource that operators add.
#[expect(clippy::cast_possible_truncation, reason = "it is a few thousand")]
const FIRST_ADDED: u32 = RESOURCES_MAX as u32;

/// A resource as a verb has it.
pub(crate) fn changed_resource(view: View<'_>, name: &str, verb: ResourceVerb) -> Result<Resource, Error> {
    let before = view.schedules.named_or_gone(name);
    let known = || before.cloned().ok_or(Error::NotFound);
    Ok(match verb {
        ResourceVerb::Put(wish) => wished_resource(view, name, wish, before)?,
        ResourceVerb::Retire => Resource {
            retired: known()?.retired.or(Some(view.now)),
            ..known()?
        },
        ResourceVerb::Restore => Resource {
            retired: None,
            ..known()?
        },
        ResourceVerb::Freeze => Resource {
            frozen: known()?.frozen.or(Some(view.now)),
            ..known()?
        },
        ResourceVerb::Thaw => Resource {
            frozen: None,
            ..known()?
        },
        ResourceVerb::AddMaintenance(added) => {
            add_planned_maintenance(&known()?, added, view.present_second())?
        }
        ResourceVerb::RemoveMaintenance(id) => without_maintenance(&known()?, id, view.present_second())?,
    })
}

/// A resource as it is wished.
fn wished_resource(
    view: View<'_>,
    name: &str,
    wish: ResourceWish,
    before: Option<&Resource>,
) -> Result<Resource, Error> {
    let unfit = |why: String| Err(Error::Unfit(why));
    let mut next = if let Some(before) = before {
        if wish.kind.is_some_and(|kind| kind != before.kind) {
            return unfit(format!(
                "{name} is of the kind {:?}, which does not change",
                before.kind
            ));
        }
        before.clone()
    } else {
        let kind = wish.kind.unwrap_or_else(|| LOCAL.to_owned());
        if kind != LOCAL {
            return unfit(format!(
                "a resource of the kind {kind:?} is added in the configuration, which says how it is reached"
            ));
        }
        let Some(capacity) = wish.capacity else {
            return unfit(format!(
                "there is no resource {name}; a new one needs a number of nodes"
            ));
        };
        let all = view.schedules.list();
        if all.len() >= RESOURCES_MAX {
            return unfit(format!(
                "there are {RESOURCES_MAX} resources, as many as there may be"
            ));
        }
        Resource {
            // Behind those of the configuration, however many it may have.
            position: all
                .iter()
                .map(|each| each.position + 1)
                .max()
                .unwrap_or(0)
                .max(FIRST_ADDED),
            ..Resource::new(name, &kind, capacity)
        }
    };
    let named = next.node_names.len();
    if let Some(capacity) = wish.capacity {
        if next.kind == CLUSTER && capacity as usize > named {
            return unfit(format!(
                "{name} is a cluster with the {} that the configuration names; others are added there",
                counted(named, "node")
            ));
        }
        next.capacity = capacity;
    }
    if next.kind == CLUSTER && wish.executor.is_some() {
        return unfit(format!(
            "{name} is a cluster, whose jobs Slurm limits; the settings of a cluster are changed in the configuration"
        ));
    }
    next.rate = wish.rate.unwrap_or(next.rate);
    next.attributes = wish.attributes.unwrap_or(next.attributes);
    next.executor = wish.executor.unwrap_or(next.executor);
    Ok(next)
}

/// Whether a resource may become as a file has it while the service runs.
///
/// # Errors
/// [`Error::Unfit`] where work there would be lost, or started twice.
pub(crate) fn check_changed_resource(
    view: View<'_>,
    before: &Resource,
    file: &Resource,
) -> Result<(), Error> {
    let name = &file.name;
    if before.is_retired() && !held_nodes::has_nodes_held_on(view, name, view.present_second()) {
        return Ok(());
    }
    if before.kind != file.kind {
        return Err(Error::Unfit(format!(
            "resource {name}: its kind changes with a restart, or once it is retired and nothing is planned there; nothing \
             is changed"
        )));
    }
    let mut same = before.node_names.iter().zip(&file.node_names);
    if !same.all(|(before, file)| before == file) {
        return Err(Error::Unfit(format!(
            "resource {name}: slurm.node_list: nodes come and go at its end while the service runs; a restart takes any other \
             list; nothing is changed"
        )));
    }
    let (had, has) = (before.node_names.len(), file.node_names.len());
    let resource = view.schedules.named(name).filter(|_| has < had);
    let until =
        resource.and_then(|resource_plan| resource_plan.last_binding(u32::try_from(has).unwrap_or(u32::MAX)));
    if until.is_some_and(|until| until > view.present_second()) {
        return Err(Error::Unfit(format!(
            "resource {name}: slurm.node_list: work still runs on a node that it has no more: first \
             `bespeak resources resize {name} --nodes {has}`, and the shorter list when nothing runs on the others; nothing is \
             changed"
        )));
    }
    Ok(())
}

/// Has resources be so from now on, and finds other places for what they may not keep.
pub(crate) fn set_resources(
    decider: &mut Decider<'_>,
    next: Vec<Resource>,
    (id, party): (Uuid, Option<String>),
) -> ResourceChanges {
    let mut changes = ResourceChanges::default();
    let (mut new, mut planned) = (Vec::new(), Vec::new());
    for next in next {
        let before = decider.state.schedules.named_or_gone(&next.name).cloned();
        if before.as_ref() == Some(&next) {
            continue;
        }
        let words = resource_difference(before.as_ref(), &next, decider.present_second());
        if !words.is_empty() {
            let detail = format!("{}: {words}", next.name);
            decider.batch.push(Change::Note(Note {
                party: party.clone(),
                ..Note::new(decider.now, NoteKind::ResourceChanged, (id, None), detail)
            }));
            changes.resources.push((next.clone(), words));
        }
        decider.batch.push(Change::PutResource(next.row()));
        match (decider.state.schedules.place_of(&next.name), before) {
            (Some(at), Some(before)) => planned.push((at, before, next)),
            (_, before) => {
                let before = before.map_or(0, |before| before.capacity);
                if before != next.capacity {
                    change_capacity(decider, &next, before, &[]);
                }
                new.push(next);
            }
        }
    }
    let decided = decider.batch.len();
    changes.effects = take_in_resource_changes(decider, new, &planned);
    changes.effects.note_penalties(&decider.batch[decided..]);
    changes
}

/// Takes resources into the plan that are `new`, and the changes of the `planned` ones: what comes is there before anything has
/// to go. Returns what became of agreements and offers.
fn take_in_resource_changes(
    decider: &mut Decider<'_>,
    new: Vec<Resource>,
    planned: &[(usize, Resource, Resource)],
) -> Repaired {
    let settings = decider.reconfigured.clone();
    let settings = settings.as_ref().unwrap_or(decider.settings);
    let now = decider.present_second();
    let (gone, new): (Vec<_>, Vec<_>) = new.into_iter().partition(Resource::is_retired);
    for resource in gone {
        decider.state.schedules.keep_as_gone(resource);
    }
    decider.state.schedules.add(&new, settings, now);
    for (at, _, next) in planned {
        decider.state.schedules.revise(*at, next.clone(), settings);
    }
    let mut effects = Repaired::default();
    let shrinks = |(_, before, next): &&(usize, Resource, Resource)| next.capacity < before.capacity;
    for (at, ..) in planned.iter().filter(|planned| !shrinks(planned)) {
        effects.add(repair::repair(decider, *at, RepairCause::OutOfUse));
    }
    for (at, ..) in planned.iter().filter(shrinks) {
        effects.add(repair::repair(decider, *at, RepairCause::Fewer));
    }
    for (at, before, next) in planned {
        let is_leaving = next.is_retired() && !before.is_retired();
        if is_leaving || next.attributes != before.attributes {
            effects.add(repair::repair_by_sending_away(decider, *at));
        }
        if next.capacity != before.capacity {
            let plan = decider.state.schedules.get(*at);
            let leaving = plan.map_or_else(Vec::new, |plan| plan.leaving(now));
            change_capacity(decider, next, before.capacity, &leaving);
        }
    }
    effects
}

/// Stores what a resource has from now on: its nodes, and others until work that runs on them ends. What lies in this second
/// has its nodes until it is over.
fn change_capacity(decider: &mut Decider<'_>, resource: &Resource, before: u32, leaving: &[Time]) {
    let since = if resource.capacity < before {
        second_after(decider.now)
            .seconds()
            .saturating_mul(MICROS_PER_SECOND)
    } else {
        decider.now
    };
    let mut leaving = leaving.to_vec();
    leaving.sort_unstable();
    let left = |gone: usize| {
        let stay = u32::try_from(leaving.len() - gone).unwrap_or(u32::MAX);
        resource.capacity.saturating_add(stay)
    };
    let mut steps = BTreeMap::from([(since, left(0))]);
    for (until, gone) in leaving.iter().zip(1..) {
        let until = until.seconds().saturating_mul(MICROS_PER_SECOND);
        steps.insert(until.max(since), left(gone));
    }
    decider.batch.push(Change::SetCapacity {
        resource: resource.name.clone(),
        steps: steps.into_iter().collect(),
    });
}

/// How a resource differs from what it was, in words; none where it does not for anybody.
fn resource_difference(before: Option<&Resource>, next: &Resource, now: Time) -> String {
    let nodes = |many: u32| counted(many, "node");
    let Some(before) = before else {
        return format!("added, {} with {}", next.kind, nodes(next.capacity));
    };
    let mut words = Vec::new();
    match (before.is_retired(), next.is_retired()) {
        (false, true) => words.push("retired".to_owned()),
        (true, false) => words.push("back in service".to_owned()),
        _ => {}
    }
    match (before.frozen, next.frozen) {
        (None, Some(_)) => words.push("frozen".to_owned()),
        (Some(_), None) => words.push("thawed".to_owned()),
        _ => {}
    }
    if next.kind != before.kind {
        words.push(format!("of the kind {} instead of {}", next.kind, before.kind));
    }
    if next.capacity != before.capacity {
        words.push(format!("{} instead of {}", nodes(next.capacity), before.capacity));
    }
    if next.rate != before.rate {
        let [rate, was] = [next.rate, before.rate].map(|rate| f64::from(rate.millionths()) / 1e6);
        words.push(format!("rate {rate} instead of {was}"));
    }
    words.extend(maintenance_difference(before, next, now));
    let others = [
        ("attributes", next.attributes != before.attributes),
        ("names of nodes", next.node_names != before.node_names),
        ("maintenance", next.maintenance != before.maintenance),
        ("settings of its executor", next.executor != before.executor),
    ];
    let others = others.iter().filter(|(_, differ)| *differ);
    words.extend(others.map(|(what, _)| format!("other {what}")));
    words.join(", ")
}

#[cfg(test)]
mod tests;
