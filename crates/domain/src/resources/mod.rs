//! The resources of a domain and their nodes.

mod definition;
mod nodes;
mod repaired;
mod resource;
mod rows;

pub use definition::{CorruptRow, resources_as_configured};
pub use nodes::{
    BusyTime, KeptNodes, NodeCounts, NodeReport, NodeState, ReportedState, Reporter, ResourceAgreements,
    Unused, UnusedNodes, WhyUnused,
};
pub use repaired::{PlaceChange, PlannedPlace, Repaired, add_to_sums, penalties_of_provider};
pub use resource::{
    ARCHITECTURE, ARCHITECTURE_LENGTH_MAX, AddedMaintenance, CAPACITY_MAX, CLUSTER, LOCAL, NUMBERS,
    NodeNumber, PEER, RATES, Resource, Scaling, attribute_of_filter, is_resource_name, rate_of_multiple,
};
pub use rows::{Binding, NodeRow, ResourceRow};
