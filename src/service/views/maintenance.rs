//! Planned times without nodes, as operators see them.

use domain::resources::Resource;
use scheduler::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::schemas;
use super::values::{read_date_time, write_date_time};

/// The planned times without nodes.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct MaintenancesView {
    /// The planned times without nodes that are not over, by resource and by start.
    pub maintenance: Vec<MaintenanceView>,
}

/// A planned time without nodes.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct MaintenanceView {
    /// The id; none where it is the configuration's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub resource: String,
    /// The start.
    #[serde(serialize_with = "write_date_time", deserialize_with = "read_date_time")]
    #[schemars(with = "schemas::Instant")]
    pub start: Time,
    /// The end.
    #[serde(serialize_with = "write_date_time", deserialize_with = "read_date_time")]
    #[schemars(with = "schemas::Instant")]
    pub end: Time,
    /// How many nodes it is without, those with the highest numbers.
    #[schemars(example = 2)]
    pub nodes: u32,
    /// Why, where that is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"a disk is replaced")]
    pub reason: Option<String>,
    /// The party of the operator that has added it; none where it is the configuration's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"operator")]
    pub party: Option<String>,
}

impl MaintenanceView {
    /// All of a resource.
    pub(in crate::service) fn all_of(resource: &Resource) -> Vec<Self> {
        let configured = resource.maintenance.iter().map(|(interval, nodes)| Self {
            id: None,
            resource: resource.name.clone(),
            start: interval.start,
            end: interval.end,
            nodes: (*nodes).min(resource.capacity),
            reason: None,
            party: None,
        });
        let added = resource.added_maintenance.iter().map(|added| Self {
            id: Some(added.id),
            resource: resource.name.clone(),
            start: Time(added.start),
            end: Time(added.end),
            nodes: added.nodes.unwrap_or(resource.capacity).min(resource.capacity),
            reason: added.reason.clone(),
            party: Some(added.party.clone()),
        });
        configured.chain(added).collect()
    }
}
