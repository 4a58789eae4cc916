//! The resources of a provider: sets of nodes, their speed, and the meaning of durations on them.

use std::collections::BTreeMap;

use scheduler::domain::{Attribute, Requirement};
use scheduler::{Interval, Rate, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;
use wsag::job::FilterKind;

use crate::agreement::{Measure, RESOURCE, Shape};
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

/// The attribute that a condition of a document is about, and whether each node has to meet it.
pub const fn attribute_of_filter(kind: FilterKind) -> (&'static str, Measure) {
    match kind {
        FilterKind::IndividualCpuSpeed => ("cpu_speed_hz", Measure::Node),
        FilterKind::IndividualCpuCount => ("cpus", Measure::Node),
        FilterKind::IndividualNetworkBandwidth => ("network_bits_per_second", Measure::Node),
        FilterKind::IndividualPhysicalMemory => ("memory_bytes", Measure::Node),
        FilterKind::IndividualVirtualMemory => ("virtual_memory_bytes", Measure::Node),
        FilterKind::IndividualDiskSpace => ("disk_bytes", Measure::Node),
        FilterKind::TotalCpuCount => ("cpus", Measure::Total),
        FilterKind::TotalPhysicalMemory => ("memory_bytes", Measure::Total),
        FilterKind::TotalVirtualMemory => ("virtual_memory_bytes", Measure::Total),
        FilterKind::TotalDiskSpace => ("disk_bytes", Measure::Total),
        FilterKind::IndividualGpuCount => ("gpus", Measure::Node),
    }
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
pub fn rate_of_multiple(multiple: f64) -> Option<Rate> {
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

/// The meaning of the durations of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// As contracted: the nodes are held for that time, on any resource.
    Contract,
    /// At the reference rate: a resource divides them by its own.
    ReferenceRate,
    /// As predicted: on each resource and at each time as long as the work takes there with this probability, in millionths. Where
    /// nothing is foreseen of a resource, they are at the reference rate.
    Predicted(u32),
}

impl Scaling {
    /// A size with the duration that it has on a resource of that rate.
    pub fn shape(self, shape: Shape, rate: Rate) -> Shape {
        match self {
            Self::Contract => shape,
            Self::ReferenceRate | Self::Predicted(_) => shape.at(rate),
        }
    }
}
