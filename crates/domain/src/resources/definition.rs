//! What is planned on a resource, as it is stored and as the configuration has it.
//!
//! The store has each resource as it is planned on, and beside it as the configuration file had it when the file was last read. Of
//! the file only what has changed there since is taken over: so what operators have changed stays until somebody changes the same
//! thing in the file.

use std::collections::BTreeMap;

use scheduler::domain::Attribute;
use scheduler::{Interval, Rate, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::resource::{AddedMaintenance, CLUSTER, Resource};
use super::rows::ResourceRow;
use crate::clock::Micros;

/// A stored resource that cannot be read, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CorruptRow(pub String);

/// All of a resource that is planned with and has no column of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Details {
    #[serde(with = "crate::kept_attributes")]
    attributes: BTreeMap<String, Attribute>,
    node_names: Vec<String>,
    /// Starts and ends in seconds, and numbers of nodes.
    maintenance: Vec<(i64, i64, u32)>,
    /// By the word of operators.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    added_maintenance: Vec<AddedMaintenance>,
    executor: Value,
}

/// A resource as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Definition {
    kind: String,
    capacity: u32,
    /// In millionths of the reference.
    rate: u32,
    #[serde(flatten)]
    details: Details,
}

/// The resources of a configuration, in its order, after it was read; and the ones that it had before and does not have any more.
pub fn resources_as_configured(all: &[Resource], file: Vec<Resource>, now: Micros) -> Vec<Resource> {
    let mut known: BTreeMap<&str, &Resource> = all.iter().map(|each| (each.name.as_str(), each)).collect();
    let mut next = Vec::new();
    for (mut file, position) in file.into_iter().zip(0..) {
        file.position = position;
        let before = known.remove(file.name.as_str());
        let same = before.filter(|before| before.kind == file.kind);
        next.push(Resource {
            closed: same.map_or(file.closed, |same| same.closed),
            ..before.unwrap_or(&file).as_configured(&file)
        });
    }
    let gone = known
        .into_values()
        .filter(|resource| resource.configured.is_some());
    next.extend(gone.map(|resource| resource.as_unconfigured(now)));
    next
}

impl Resource {
    /// What a configuration says of it, as text: the same for the same configuration.
    fn definition(&self) -> String {
        let definition = Definition {
            kind: self.kind.clone(),
            capacity: self.capacity,
            rate: self.rate.millionths(),
            details: self.details(),
        };
        as_text(&definition)
    }

    /// It as a row of the store.
    pub fn row(&self) -> ResourceRow {
        ResourceRow {
            name: self.name.clone(),
            kind: self.kind.clone(),
            capacity: self.capacity,
            position: self.position,
            rate: self.rate.millionths(),
            details: as_text(&self.details()),
            configured: self.configured.clone(),
            retired: self.retired,
            frozen: self.frozen,
        }
    }

    /// It from its row of the store. A cluster is closed until it has been checked.
    ///
    /// # Errors
    /// Where its details cannot be read.
    pub fn of_row(row: ResourceRow) -> Result<Self, CorruptRow> {
        let details: Details = serde_json::from_str(&row.details)
            .map_err(|why| CorruptRow(format!("details of resource {}: {why}", row.name)))?;
        Ok(Self {
            rate: Rate::from_millionths(row.rate).unwrap_or_default(),
            attributes: details.attributes,
            node_names: details.node_names,
            maintenance: details
                .maintenance
                .into_iter()
                .map(|(start, end, nodes)| (Interval::new(Time(start), Time(end)), nodes))
                .collect(),
            added_maintenance: details.added_maintenance,
            executor: details.executor,
            closed: row.kind == CLUSTER,
            retired: row.retired,
            frozen: row.frozen,
            position: row.position,
            configured: row.configured,
            ..Self::new(&row.name, &row.kind, row.capacity)
        })
    }

    fn details(&self) -> Details {
        Details {
            attributes: self.attributes.clone(),
            node_names: self.node_names.clone(),
            maintenance: self
                .maintenance
                .iter()
                .map(|(maintenance, nodes)| (maintenance.start.seconds(), maintenance.end.seconds(), *nodes))
                .collect(),
            added_maintenance: self.added_maintenance.clone(),
            executor: self.executor.clone(),
        }
    }

    /// It after the configuration was read, which has it as `file`: all that has changed there since it was last read is as there.
    /// It is brought back where the configuration did not have it before.
    #[must_use]
    pub fn as_configured(&self, file: &Self) -> Self {
        let mut next = self.clone();
        let before = self.configured.as_deref();
        if before.is_none() {
            next.retired = None;
        }
        let before: Option<Definition> = before.and_then(|text| serde_json::from_str(text).ok());
        let before = before.as_ref();
        if before.is_none_or(|each| each.kind != file.kind) {
            next.kind.clone_from(&file.kind);
        }
        if before.is_none_or(|each| each.capacity != file.capacity) {
            next.capacity = file.capacity;
        }
        if before.is_none_or(|each| each.rate != file.rate.millionths()) {
            next.rate = file.rate;
        }
        let (before, now) = (before.map(|each| &each.details), file.details());
        macro_rules! take_over {
            ($($field:ident),+) => {
                $(if before.is_none_or(|each| each.$field != now.$field) {
                    next.$field.clone_from(&file.$field);
                })+
            };
        }
        take_over!(attributes, node_names, maintenance, executor);
        next.position = file.position;
        next.configured = Some(file.definition());
        next
    }

    /// It after the configuration was read, which does not have it any more.
    #[must_use]
    fn as_unconfigured(&self, now: Micros) -> Self {
        Self {
            retired: self.retired.or(Some(now)),
            configured: None,
            ..self.clone()
        }
    }
}

fn as_text(serialize: &impl Serialize) -> String {
    // Numbers and texts under texts: writing them cannot fail.
    serde_json::to_string(serialize).expect("a record of numbers and texts is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Resource {
        Resource {
            rate: Rate::from_millionths(2_000_000).unwrap(),
            attributes: [
                ("cpus".to_owned(), Attribute::Number(8)),
                ("cpu_architecture".to_owned(), Attribute::Word("arm".to_owned())),
            ]
            .into(),
            node_names: vec!["n1".to_owned(), "n2".to_owned()],
            maintenance: vec![(Interval::new(Time(5), Time(9)), 2)],
            executor: serde_json::json!({"limits": {"processes": 4}}),
            position: 3,
            ..Resource::new("r", "local", 2)
        }
    }

    #[test]
    fn a_resource_is_stored_and_read_as_it_was() {
        let stored = Resource {
            retired: Some(7),
            frozen: Some(5),
            configured: Some("{}".to_owned()),
            ..file()
        };
        assert_eq!(Resource::of_row(stored.row()).unwrap(), stored);
        assert_eq!(
            Resource::of_row(ResourceRow::new("r", "slurm", 2)).unwrap(),
            Resource {
                closed: true,
                ..Resource::new("r", "slurm", 2)
            }
        );
        let broken = ResourceRow {
            details: "[".to_owned(),
            ..ResourceRow::new("r", "local", 2)
        };
        assert!(Resource::of_row(broken).is_err());
    }

    #[test]
    fn only_what_has_changed_in_the_file_is_taken_from_it() {
        let first = Resource::new("r", "local", 9).as_configured(&file());
        assert_eq!(first.as_configured(&file()), first);
        assert_eq!(
            (first.capacity, first.rate),
            (2, file().rate),
            "it was not in the file before"
        );
        // An operator has made it larger and retired it since.
        let changed = Resource {
            capacity: 5,
            retired: Some(1),
            ..first
        };
        assert_eq!(changed.as_configured(&file()), changed);
        let mut next = file();
        next.maintenance.clear();
        next.attributes.clear();
        let after = changed.as_configured(&next);
        assert_eq!((after.capacity, after.retired), (5, Some(1)));
        assert!(after.maintenance.is_empty() && after.attributes.is_empty());
        next.capacity = 3;
        assert_eq!(after.as_configured(&next).capacity, 3);
    }

    #[test]
    fn what_leaves_the_file_is_retired_and_what_comes_back_is_in_service() {
        let there = Resource::new("r", "local", 9).as_configured(&file());
        let gone = there.as_unconfigured(4);
        assert_eq!((gone.retired, &gone.configured), (Some(4), &None));
        assert_eq!(gone.as_unconfigured(5), gone);
        assert_eq!(gone.as_configured(&file()), there);
    }
}
