//! Resources, as operators see them.

use std::collections::BTreeMap;

use domain::resources::{NodeCounts, NodeState, Resource};
use execution::faults::Fault;
use scheduler::domain::Attribute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::views::money_and_time::instant_as_date_time;
use crate::views::schemas;

/// The resources of the domain.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct ResourcesView {
    /// In the order in which ties are broken; the retired ones on which nothing is planned come last.
    pub resources: Vec<ResourceView>,
}

/// How a resource stands.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceView {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub name: String,
    /// Its executor.
    #[schemars(example = &"local")]
    pub kind: String,
    /// The state: on a resource that is frozen or retiring nothing new is placed, and work goes on.
    #[schemars(extend("enum" = ["in-service", "frozen", "retiring", "retired"]))]
    pub state: String,
    /// Since when it is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub frozen_since: Option<String>,
    /// Since when it is retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub retired_since: Option<String>,
    /// How many nodes it has.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// How many nodes are in each state, by the words of the states; members of later versions are here, too.
    #[serde(flatten)]
    #[schemars(with = "schemas::NodeCountsSchema")]
    pub counts: BTreeMap<String, Value>,
    /// How fast its nodes work, as a multiple of the reference.
    #[schemars(range(min = 0.01, max = 100), example = 1.0)]
    pub rate: f64,
    /// The attributes of its nodes that requests may ask for.
    #[schemars(with = "schemas::ResourceAttributesSchema")]
    pub attributes: BTreeMap<String, Value>,
    /// The limits of its jobs, where it has some of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::ResourceLimitsSchema>")]
    pub limits: Option<Value>,
    /// Its present faults.
    pub troubles: Vec<TroubleView>,
}

impl ResourceView {
    /// How many of its nodes are in a state.
    pub fn count(&self, state: NodeState) -> u64 {
        let count = self.counts.get(state.word());
        count.and_then(Value::as_u64).unwrap_or_default()
    }

    /// How many of its nodes are in each state that some are in, in words.
    pub fn counts_in_words(&self) -> String {
        let states = NodeState::ALL.into_iter().filter(|state| self.count(*state) > 0);
        let counts = states.map(|state| format!("{} {state}", self.count(state)));
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// Attributes of nodes.
pub(crate) fn view_attributes(attributes: &BTreeMap<String, Attribute>) -> BTreeMap<String, Value> {
    let value = |attribute: &Attribute| match attribute {
        Attribute::Word(word) => json!(word),
        Attribute::Number(number) => json!(number),
    };
    let attributes = attributes.iter();
    attributes
        .map(|(name, attribute)| (name.clone(), value(attribute)))
        .collect()
}

/// Something that a resource fails in.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct TroubleView {
    /// The action that fails.
    #[schemars(example = &"looking at the cluster")]
    pub doing: String,
    /// The last message of the fault.
    #[schemars(example = &"slurmctld does not answer")]
    pub message: String,
    /// Since when.
    #[schemars(with = "schemas::Instant")]
    pub since: String,
}

impl ResourceView {
    /// A resource with what is known of its nodes, whether something is planned on it, and its faults.
    pub(crate) fn of(resource: &Resource, counts: NodeCounts, has_work: bool, faults: Vec<Fault>) -> Self {
        let state = match resource.retired {
            None if resource.is_frozen() => "frozen",
            None => "in-service",
            Some(_) if has_work => "retiring",
            Some(_) => "retired",
        };
        Self {
            name: resource.name.clone(),
            kind: resource.kind.clone(),
            state: state.to_owned(),
            frozen_since: resource.frozen.map(instant_as_date_time),
            retired_since: resource.retired.map(instant_as_date_time),
            nodes: resource.capacity,
            counts: NodeState::ALL
                .map(|state| (state.word().to_owned(), json!(counts.count(state))))
                .into(),
            rate: f64::from(resource.rate.millionths()) / 1e6,
            attributes: view_attributes(&resource.attributes),
            limits: resource.executor.get("limits").cloned(),
            troubles: faults
                .into_iter()
                .map(|fault| TroubleView {
                    doing: fault.doing.word().to_owned(),
                    message: fault.message,
                    since: instant_as_date_time(fault.since),
                })
                .collect(),
        }
    }
}

/// The resources, as requesters see them.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct OfferedResourcesView {
    /// In the order in which ties are broken.
    pub resources: Vec<OfferedResourceView>,
}

/// What a resource has.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct OfferedResourceView {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub name: String,
    /// How many nodes it has.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// How fast its nodes work, as a multiple of the reference.
    #[schemars(range(min = 0.01, max = 100), example = 1.0)]
    pub rate: f64,
    /// The attributes of its nodes that requests may ask for.
    #[schemars(with = "schemas::ResourceAttributesSchema")]
    pub attributes: BTreeMap<String, Value>,
}

impl OfferedResourceView {
    pub(crate) fn of(resource: &Resource) -> Self {
        Self {
            name: resource.name.clone(),
            nodes: resource.capacity,
            rate: f64::from(resource.rate.millionths()) / 1e6,
            attributes: view_attributes(&resource.attributes),
        }
    }
}
