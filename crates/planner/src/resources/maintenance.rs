//! Planned times without nodes that operators add and remove, beside those of the configuration.

use domain::clock::time_in_words;
use domain::resources::{AddedMaintenance, Resource};
use scheduler::{Time, counted};
use uuid::Uuid;

use crate::error::Error;

/// The most of one resource: more than one a day for two years. All of them are looked at with every look at its nodes.
const MAINTENANCE_MAX: usize = 1_000;

/// A resource with one more planned time without nodes, and without those that are over by `now`. One that says the same is not
/// added again.
///
/// # Errors
/// [`Error::Unfit`] where it has no time that is to come, or the resource has not so many nodes or too many such times.
pub(super) fn add_planned_maintenance(
    before: &Resource,
    added: AddedMaintenance,
    now: Time,
) -> Result<Resource, Error> {
    let unfit = |why: &str| Err(Error::Unfit(format!("maintenance of {}: {why}", before.name)));
    let mut next = before.clone();
    next.added_maintenance
        .retain(|added_maintenance| Time(added_maintenance.end) > now);
    if added.interval().is_empty() {
        return unfit("it ends before it begins");
    }
    if Time(added.end) <= now {
        return unfit("it is over");
    }
    if let Some(nodes) = added.nodes.filter(|nodes| *nodes > before.capacity) {
        return unfit(&format!(
            "it has {}, not {nodes}",
            counted(before.capacity, "node")
        ));
    }
    if next
        .added_maintenance
        .iter()
        .any(|added_maintenance| added_maintenance.is_same(&added))
    {
        return Ok(next);
    }
    if next.added_maintenance.len() >= MAINTENANCE_MAX {
        return unfit(&format!(
            "it has {MAINTENANCE_MAX} planned, as many as it may have"
        ));
    }
    next.added_maintenance.push(added);
    Ok(next)
}

/// A resource without a planned time without nodes, and without those that are over by `now`.
///
/// # Errors
/// [`Error::NotFound`] where it has none with this id.
pub(super) fn without_maintenance(before: &Resource, id: Uuid, now: Time) -> Result<Resource, Error> {
    let mut next = before.clone();
    next.added_maintenance
        .retain(|added_maintenance| added_maintenance.id != id && Time(added_maintenance.end) > now);
    let is_known = before
        .added_maintenance
        .iter()
        .any(|added_maintenance| added_maintenance.id == id);
    if is_known { Ok(next) } else { Err(Error::NotFound) }
}

/// The planned times that operators have added or removed, in words; those that are over by `now` have only been forgotten.
pub(super) fn maintenance_difference(before: &Resource, next: &Resource, now: Time) -> Vec<String> {
    let only_in = |one: &Resource, other: &Resource| -> Vec<AddedMaintenance> {
        let only = one.added_maintenance.iter();
        let only = only.filter(|only| !other.added_maintenance.contains(only) && Time(only.end) > now);
        only.cloned().collect()
    };
    let words = |maintenance: AddedMaintenance, done: &str| {
        let nodes = maintenance
            .nodes
            .map_or_else(|| "all nodes".to_owned(), |nodes| counted(nodes, "node"));
        let [start, end] = [maintenance.start, maintenance.end].map(|at| time_in_words(Time(at)));
        let why = maintenance
            .reason
            .map_or_else(String::new, |reason| format!(": {reason}"));
        format!(
            "maintenance {} of {nodes} from {start} to {end} {done}{why}",
            maintenance.id
        )
    };
    let added = only_in(next, before)
        .into_iter()
        .map(|only_in| words(only_in, "added"));
    let removed = only_in(before, next)
        .into_iter()
        .map(|only_in| words(only_in, "removed"));
    added.chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(start: i64, end: i64, nodes: Option<u32>) -> AddedMaintenance {
        AddedMaintenance {
            id: Uuid::now_v7(),
            start,
            end,
            nodes,
            reason: None,
            party: "operator".to_owned(),
        }
    }

    #[test]
    fn what_says_the_same_is_there_once_and_what_is_over_is_forgotten() {
        let bare = Resource::new("r", "local", 4);
        let first = added(10, 20, Some(2));
        let one = add_planned_maintenance(&bare, first.clone(), Time(0)).unwrap();
        let again = add_planned_maintenance(&one, added(10, 20, Some(2)), Time(0)).unwrap();
        assert_eq!(again, one);
        assert_eq!(
            maintenance_difference(&bare, &one, Time(0)),
            [format!(
                "maintenance {} of 2 nodes from 1970-01-01T00:00:10Z to 1970-01-01T00:00:20Z added",
                first.id
            )]
        );
        let later = add_planned_maintenance(&one, added(30, 40, None), Time(25)).unwrap();
        assert_eq!(later.added_maintenance.len(), 1);
        assert_eq!(maintenance_difference(&one, &later, Time(25)).len(), 1);
        let id = later.added_maintenance[0].id;
        let none = without_maintenance(&later, id, Time(25)).unwrap();
        assert_eq!(none, bare);
        assert_eq!(without_maintenance(&none, id, Time(25)), Err(Error::NotFound));
        for wrong in [added(20, 10, None), added(1, 5, None), added(10, 20, Some(5))] {
            assert!(matches!(
                add_planned_maintenance(&bare, wrong, Time(5)),
                Err(Error::Unfit(_))
            ));
        }
    }
}
