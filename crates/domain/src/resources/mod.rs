//! The resources of a domain and their nodes.

mod nodes;
mod planned_place;
mod repaired;
mod resource;
mod rows;
mod scaling;

pub use nodes::{
    BusyTime, KeptNodes, NodeCounts, NodeReport, NodeState, ReportedState, Reporter, ResourceAgreements,
    Unused, UnusedNodes, WhyUnused,
};
pub use planned_place::{PlaceChange, PlannedPlace};
pub use repaired::{Repaired, penalties_of_provider};
pub use resource::{
    ARCHITECTURE, ARCHITECTURE_LENGTH_MAX, AddedMaintenance, CAPACITY_MAX, CLUSTER, CorruptRow, LOCAL,
    NUMBERS, NodeNumber, PEER, RATES, Resource, is_resource_name, resource_rate_of_multiple,
    resources_as_configured,
};
pub use rows::{Binding, NodeRow, ResourceRow};
pub use scaling::Scaling;
