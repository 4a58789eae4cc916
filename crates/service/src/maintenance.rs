//! Planned times without nodes, which operators add and remove.

use domain::clock::second_of;
use domain::resources::{AddedMaintenance, CAPACITY_MAX, Resource};
use planner::ResourceVerb;
use scheduler::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::nodes::REASON_MAX;
use crate::resources::change_resource;
use crate::views::money_and_time::{read_date_time, write_date_time};
use crate::views::resource_changes::ResourceChangesView;
use crate::views::schemas;
use crate::{Error, Service};

/// The planned times without nodes that are not over, by resource and by start. For operators.
pub fn list_maintenance(service: &Service) -> MaintenancesView {
    let now = second_of(service.clock.micros());
    let resources = service.planner.resources();
    let all = resources.iter().flat_map(MaintenanceView::all_of);
    let mut maintenance: Vec<MaintenanceView> = all.filter(|each| each.end > now).collect();
    maintenance.sort_by(|a, b| (&a.resource, a.start, a.end).cmp(&(&b.resource, b.start, b.end)));
    MaintenancesView { maintenance }
}

/// Plans a time in which a resource is without nodes. Agreements in the way get another place, or their parties are told that
/// there is none. The body is an object with `resource`, `start`, `end`, `nodes` and `reason`. With `is_dry` it is only
/// answered what would follow. For operators.
///
/// # Errors
/// The errors of the body, [`Error::NotFound`] for the resource, [`Error::Conflict`] for a time that is over or too many
/// nodes, [`Error::Unavailable`].
pub async fn add_maintenance(
    service: &Service,
    party: &str,
    body: &[u8],
    is_dry: bool,
) -> Result<ResourceChangesView, Error> {
    let (resource, added) = read_maintenance(body, party)?;
    let verb = ResourceVerb::AddMaintenance(added.clone());
    let mut told = change_resource(service, party, &resource, verb, is_dry).await?;
    let resources = service.planner.resources();
    let one_resource = resources
        .iter()
        .filter(|one_resource| one_resource.name == resource);
    let known = one_resource
        .flat_map(|each| &each.added_maintenance)
        .find(|each| each.is_same(&added));
    told.maintenance = known.map(|known| known.id);
    Ok(told)
}

/// Takes back a planned time without nodes that an operator has added. With `is_dry` it is only answered what would follow.
/// For operators.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Unavailable`].
pub async fn remove_maintenance(
    service: &Service,
    party: &str,
    id: Uuid,
    is_dry: bool,
) -> Result<ResourceChangesView, Error> {
    let resources = service.planner.resources();
    let has_it = |resource: &&domain::resources::Resource| {
        resource
            .added_maintenance
            .iter()
            .any(|added_maintenance| added_maintenance.id == id)
    };
    let one_resource = resources.iter().find(has_it).ok_or(Error::NotFound)?;
    let verb = ResourceVerb::RemoveMaintenance(id);
    change_resource(service, party, &one_resource.name, verb, is_dry).await
}

/// The resource and the planned time that a body has.
fn read_maintenance(body: &[u8], party: &str) -> Result<(String, AddedMaintenance), Error> {
    let value = Json::parse(body)?;
    let mut check = JsonCheck::default();
    let known = ["resource", "start", "end", "nodes", "reason"];
    let read = check
        .object(&LocatedValue::root(&value), &known)
        .and_then(|object| {
            let resource = object.read_required(&mut check, "resource", JsonCheck::token);
            let start = object.read_required(&mut check, "start", JsonCheck::date_time);
            let end = object.read_required(&mut check, "end", JsonCheck::date_time);
            let nodes = object.read(&mut check, "nodes", |check, at| check.count(at, CAPACITY_MAX));
            let reason = object.read(&mut check, "reason", |check, at| check.line(at, REASON_MAX));
            let added = AddedMaintenance {
                id: Uuid::now_v7(),
                // Whole seconds that hold all of it.
                start: start?.floor(),
                end: end?.ceil(),
                nodes,
                reason,
                party: party.to_owned(),
            };
            Some((resource?, added))
        });
    check.finish(read)
}

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
    pub(super) fn all_of(resource: &Resource) -> Vec<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planned_time_is_whole_seconds_that_hold_all_of_it() {
        let read = |text: &str| read_maintenance(text.as_bytes(), "operator");
        let times = r#""start": "1970-01-01T00:00:01.5Z", "end": "1970-01-01T00:00:09.5Z""#;
        let (resource, added) = read(&format!(r#"{{"resource": "r", {times}, "nodes": 2}}"#)).unwrap();
        assert_eq!(resource, "r");
        assert_eq!(
            (added.start, added.end, added.nodes, added.reason),
            (1, 10, Some(2), None)
        );
        for (wrong, path) in [
            (format!("{{{times}}}"), ""),
            (
                r#"{"resource": "r", "start": "1970-01-01T00:00:01Z"}"#.to_owned(),
                "",
            ),
            (format!(r#"{{"resource": "r", {times}, "nodes": 0}}"#), "/nodes"),
            (
                format!(r#"{{"resource": "r", {times}, "reason": "a\nb"}}"#),
                "/reason",
            ),
            (format!(r#"{{"resource": "r", {times}, "id": 1}}"#), "/id"),
        ] {
            match read(&wrong) {
                Err(Error::Invalid(violations)) => assert_eq!(violations.0[0].path, path, "{wrong}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
}
