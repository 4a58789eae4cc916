//! The resources of a provider: sets of nodes, and their speed.

use std::collections::BTreeMap;

use scheduler::domain::{Attribute, Requirement};
use scheduler::{Interval, Rate, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::rows::ResourceRow;
use crate::agreement::RESOURCE;
use crate::clock::Micros;

/// The kind of resources that are all this machine.
pub const LOCAL: &str = "local";
/// The kind of resources that others use, too.
pub const CLUSTER: &str = "slurm";
/// The kind of resources that are another domain's: only its own offers are placed there.
pub const PEER: &str = "peer";

/// An attribute of nodes that is a number.
#[derive(Debug, Clone, Copy)]
pub struct NodeNumber {
    /// Its name in the configuration, in requests and in views.
    pub name: &'static str,
    /// What it says, as a sentence.
    pub description: &'static str,
    /// A value that a node may have.
    pub example: i64,
    /// What people call it in a form, with the unit there.
    pub label: &'static str,
    /// The name of its field in a form.
    pub field: &'static str,
    /// What 1 in a form stands for.
    pub unit: f64,
}

/// Writes the table of the attributes that are numbers, and `with_node_numbers!`, which calls a macro with their names.
macro_rules! node_numbers {
    ($dollar:tt $($name:ident: $description:literal, $example:literal, $label:literal, $field:literal, $unit:expr;)*) => {
        /// The attributes of nodes that are numbers, in the order in which they are shown to people.
        pub const NUMBERS: &[NodeNumber] = &[$(NodeNumber {
            name: stringify!($name),
            description: $description,
            example: $example,
            label: $label,
            field: $field,
            unit: $unit,
        }),*];

        /// Calls a macro with the names of all of [`NUMBERS`](crate::resources::NUMBERS): a struct can have a field for each.
        #[macro_export]
        macro_rules! with_node_numbers {
            ($dollar call:ident) => {
                $dollar call! { $($name)* }
            };
        }
    };
}

/// A thousand millions, as people count bytes and hertz in a form.
const GIGA: f64 = 1e9;

node_numbers! { $
    cpus: "How many processors a node has.", 16, "Processors", "cpus", 1.0;
    gpus: "How many GPUs a node has.", 4, "GPUs", "gpus", 1.0;
    memory_bytes: "The memory of a node, in bytes.", 68_719_476_736, "Memory (GB)", "memory-gb", GIGA;
    disk_bytes: "The disk of a node, in bytes.", 1_000_000_000_000, "Disk (GB)", "disk-gb", GIGA;
    virtual_memory_bytes: "The virtual memory of a node, in bytes.", 137_438_953_472, "Virtual memory (GB)", "virtual-memory-gb", GIGA;
    cpu_speed_hz: "The speed of a processor, in hertz.", 2_400_000_000, "Speed (GHz)", "cpu-ghz", GIGA;
    network_bits_per_second: "The speed of a node's network, in bits a second.", 10_000_000_000, "Network (Gbit/s)", "network-gbit", GIGA;
}

/// The name of the attribute that is a word.
pub const ARCHITECTURE: &str = "cpu_architecture";
/// Characters in the name of an architecture.
pub const ARCHITECTURE_LENGTH_MAX: usize = 64;
/// The most nodes of a resource. Each node of an agreement that begins is a row. An agreement of all begins within seconds at this number; at ten times
/// as many, nothing was decided for longer than requests wait.
pub const CAPACITY_MAX: u32 = 100_000;
/// Nodes a hundred times slower or faster than the reference are a slip of the pen.
pub const RATES: std::ops::RangeInclusive<f64> = 0.01..=100.0;

/// A rate from a multiple of the reference within [`RATES`], to the millionth.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is within a hundred times the reference"
)]
pub fn resource_rate_of_multiple(multiple: f64) -> Option<Rate> {
    let is_sound = RATES.contains(&multiple);
    is_sound.then(|| Rate::from_millionths((multiple * 1e6).round() as u32))?
}

/// Whether a name can stand in a log line, a file name and an XML attribute without any care.
pub fn is_resource_name(name: &str) -> bool {
    // A path with these leads elsewhere.
    (1..=64).contains(&name.len())
        && !matches!(name, "." | "..")
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// A set of identical nodes that placements are made on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its name, unique in the domain.
    pub name: String,
    /// Its executor; `local` is this machine.
    pub kind: String,
    /// How many nodes it has.
    pub capacity: u32,
    /// How fast its nodes work.
    pub rate: Rate,
    /// The attributes of its nodes that a request may ask for.
    pub attributes: BTreeMap<String, Attribute>,
    /// The names of its nodes, by number. Nodes beyond the end of the list go by their numbers.
    pub node_names: Vec<String>,
    /// When it will be without a number of nodes, the ones with the highest numbers.
    pub maintenance: Vec<(Interval, u32)>,
    /// The same by the word of operators.
    pub added_maintenance: Vec<AddedMaintenance>,
    /// What its executor needs beside its nodes, in the executor's own words.
    pub executor: Value,
    /// Whether nothing new is promised on it until it is opened: it has to be checked first.
    pub closed: bool,
    /// Since when nothing new is placed on it, and what waits there goes elsewhere.
    pub retired: Option<Micros>,
    /// The instant from which nothing new is placed on the resource; agreements stay there.
    pub frozen: Option<Micros>,
    /// Its place among the others: ties go to the lower one.
    pub position: u32,
    /// The resource as the configuration last had it, in the words of [`Resource::definition`]; none where it did not have it, and
    /// empty where that is not known.
    pub configured: Option<String>,
}

impl Resource {
    /// Whether its nodes are as is required, or it has the name that is.
    pub fn meets(&self, required: &Requirement) -> bool {
        match required {
            Requirement::Is(attribute, Attribute::Word(name)) if attribute == RESOURCE => *name == self.name,
            // The peer has judged what its offers are for.
            _ if self.is_peer() => true,
            of_nodes => of_nodes.holds(&self.attributes),
        }
    }

    /// Its attributes, its name among them.
    pub fn attributes_with_name(&self) -> BTreeMap<String, Attribute> {
        let mut all = self.attributes.clone();
        all.insert(RESOURCE.to_owned(), Attribute::Word(self.name.clone()));
        all
    }

    /// Nodes of the reference rate of which nothing particular is known.
    pub fn new(name: &str, kind: &str, capacity: u32) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            capacity,
            rate: Rate::REFERENCE,
            attributes: BTreeMap::new(),
            node_names: Vec::new(),
            maintenance: Vec::new(),
            added_maintenance: Vec::new(),
            executor: Value::Null,
            closed: false,
            retired: None,
            frozen: None,
            position: 0,
            configured: None,
        }
    }

    /// Whether it is out of service.
    pub fn is_retired(&self) -> bool {
        self.retired.is_some()
    }

    /// Whether it is in service and takes nothing new.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some() && !self.is_retired()
    }

    /// Whether it is another domain's.
    pub fn is_peer(&self) -> bool {
        self.kind == PEER
    }

    /// Whether the planner places something new on it by itself.
    pub fn takes_new(&self) -> bool {
        !self.is_retired() && !self.is_frozen() && !self.is_peer()
    }

    /// All of its planned times without nodes, each with the number of nodes.
    pub fn planned_maintenance(&self) -> Vec<(Interval, u32)> {
        let added = self.added_maintenance.iter();
        let added = added.map(|maintenance| (maintenance.interval(), maintenance.nodes.unwrap_or(u32::MAX)));
        self.maintenance.iter().copied().chain(added).collect()
    }

    /// Whether others use it, too.
    pub fn is_cluster(&self) -> bool {
        self.kind == CLUSTER
    }

    /// The names of some of its nodes, for people.
    pub fn names_of(&self, nodes: &[u32]) -> String {
        let name = |node: &u32| {
            let named = self.node_names.get(*node as usize);
            named.cloned().unwrap_or_else(|| node.to_string())
        };
        nodes.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// What a configuration says of it, as text: the same for the same configuration.
    fn definition(&self) -> String {
        let definition = Definition {
            kind: self.kind.clone(),
            capacity: self.capacity,
            rate: self.rate.millionths(),
            details: self.details(),
        };
        resource_as_text(&definition)
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

    /// It as a row of the store.
    pub fn row(&self) -> ResourceRow {
        ResourceRow {
            name: self.name.clone(),
            kind: self.kind.clone(),
            capacity: self.capacity,
            position: self.position,
            rate: self.rate.millionths(),
            details: resource_as_text(&self.details()),
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
}

/// A planned time without nodes of a resource, the ones with the highest numbers, that an operator has added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedMaintenance {
    /// Assigned by the service.
    pub id: Uuid,
    /// From which second on.
    pub start: i64,
    /// Until which second.
    pub end: i64,
    /// How many nodes; all where it is not said.
    pub nodes: Option<u32>,
    /// Why, where that is said.
    pub reason: Option<String>,
    /// Who has added it.
    pub party: String,
}

impl AddedMaintenance {
    /// Its time.
    pub fn interval(&self) -> Interval {
        Interval::new(Time(self.start), Time(self.end))
    }

    /// Whether it says the same, by whatever id and party.
    pub fn is_same(&self, other: &Self) -> bool {
        let said = |maintenance: &Self| (maintenance.start, maintenance.end, maintenance.nodes);
        said(self) == said(other) && self.reason == other.reason
    }
}

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

fn resource_as_text(serialize: &impl Serialize) -> String {
    // Numbers and texts under texts: writing them cannot fail.
    serde_json::to_string(serialize).expect("a record of numbers and texts is JSON")
}

/// A stored resource that cannot be read, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CorruptRow(pub String);

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
