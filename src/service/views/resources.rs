//! Resources, as operators see them.

use std::collections::BTreeMap;

use domain::resources::{NodeCounts, NodeState, PlaceChange, PlannedPlace, Repaired, Resource};
use execution::faults::Fault;
use planner::ResourceChanges;
use scheduler::domain::Attribute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::service::Error;
use crate::service::views::agreement::AgreementView;
use crate::service::views::money_and_time::{MoneyView, instant_as_date_time, second_as_date_time};
use crate::service::views::schemas;

/// Agreements in each list of an answer; the others are counted.
const LISTED_MAX: usize = 1_000;

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
pub(in crate::service) fn view_attributes(
    attributes: &BTreeMap<String, Attribute>,
) -> BTreeMap<String, Value> {
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

/// What became of resources and of agreements, or would become where it is only asked.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceChangesView {
    /// Whether nothing was done.
    #[schemars(example = true)]
    pub dry_run: bool,
    /// The resources that are others than before.
    pub resources: Vec<ResourceChangeView>,
    /// Agreements that got another place, by their ids.
    pub moved: Vec<PlaceChangeView>,
    /// Agreements for which there is no place any more.
    pub broken: Vec<PlaceChangeView>,
    /// Agreements that are in neither list because these are full.
    #[schemars(example = 0)]
    pub unlisted: usize,
    /// What the provider pays for that because guarantees are violated, a sum for each currency.
    #[schemars(example = json!([]))]
    pub penalties: Vec<MoneyView>,
    /// Offers that were held and cannot be kept.
    #[schemars(example = 0)]
    pub withdrawn: usize,
    /// The planned time without nodes that was added, or that said the same before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Uuid>,
}

/// A resource that is another than before.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct ResourceChangeView {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub name: String,
    /// The difference in words; empty where it was so before.
    #[schemars(example = &"4 nodes in place of 3")]
    pub change: String,
    /// How many nodes it has.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// Whether nothing new is placed on it.
    pub retired: bool,
}

/// Another place of an agreement, or the loss of its place.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct PlaceChangeView {
    /// The id of the agreement.
    pub agreement: Uuid,
    /// The party.
    #[schemars(example = &"physics")]
    pub party: String,
    /// The name in its offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"nightly")]
    pub name: Option<String>,
    /// The application that it runs, where it runs one. For pages alone.
    #[serde(skip)]
    pub application: Option<String>,
    /// Where it was planned before.
    pub from: PlannedPlaceView,
    /// Where it is; none where there is no place for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<PlannedPlaceView>,
    /// What the provider pays for that because its guarantees are violated, a sum for each currency.
    #[schemars(example = json!([]))]
    pub penalties: Vec<MoneyView>,
}

/// Where an agreement lies in the plan.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct PlannedPlaceView {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub resource: String,
    /// The planned start.
    #[schemars(with = "schemas::Instant")]
    pub start: String,
    /// The planned end.
    #[schemars(with = "schemas::Instant")]
    pub end: String,
    /// How many nodes.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
}

/// What was taken over of a configuration.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadedView {
    /// What became of resources, and of agreements for that.
    #[serde(flatten)]
    pub changes: ResourceChangesView,
    /// The parts of the configuration that differ from those at the start, and are taken over by a restart only.
    #[schemars(example = ["tls"])]
    pub needs_restart: Vec<String>,
}

/// An order to read the configuration again.
pub struct ReloadOrder {
    /// Who gives it.
    pub party: String,
    /// Whether it is only asked what would follow.
    pub is_dry: bool,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Result<ReloadedView, Error>>,
}

impl ResourceView {
    /// A resource with what is known of its nodes, whether something is planned on it, and its faults.
    pub(in crate::service) fn of(
        resource: &Resource,
        counts: NodeCounts,
        has_work: bool,
        faults: Vec<Fault>,
    ) -> Self {
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

impl ResourceChangesView {
    /// What became of resources and of agreements.
    pub(in crate::service) fn of(changes: &ResourceChanges, is_dry: bool) -> Self {
        let mut view = Self {
            dry_run: is_dry,
            withdrawn: changes.effects.withdrawn,
            ..Self::default()
        };
        let resources = changes.resources.iter();
        view.resources = resources
            .map(|(resource, words)| ResourceChangeView {
                name: resource.name.clone(),
                change: words.clone(),
                nodes: resource.capacity,
                retired: resource.is_retired(),
            })
            .collect();
        (view.broken, view.moved, view.unlisted) = PlaceChangeView::lists(&changes.effects);
        view.penalties = MoneyView::all(&changes.effects.penalties);
        view
    }
}

impl ReloadedView {
    /// What became of resources, with the parts of the configuration that are left for a restart.
    pub fn of(changes: &ResourceChanges, needs_restart: Vec<String>, is_dry: bool) -> Self {
        Self {
            changes: ResourceChangesView::of(changes, is_dry),
            needs_restart,
        }
    }
}

impl PlaceChangeView {
    /// The agreements without a place any more, those that have another one, and how many are left out since a list is full.
    pub(in crate::service) fn lists(effects: &Repaired) -> (Vec<Self>, Vec<Self>, usize) {
        let (mut broken, mut moved, mut unlisted) = (Vec::new(), Vec::new(), 0);
        for (id, change) in &effects.changes {
            let list = match &change.to {
                None => &mut broken,
                Some(_) if change.has_moved() => &mut moved,
                Some(_) => continue,
            };
            if list.len() < LISTED_MAX {
                list.push(Self::of(*id, change));
            } else {
                unlisted += 1;
            }
        }
        (broken, moved, unlisted)
    }

    /// The place of an agreement before a change and after it, where it has one then.
    pub fn between(before: &AgreementView, after: Option<&AgreementView>) -> Self {
        let place = |agreement: &AgreementView| PlannedPlaceView {
            resource: agreement.resource.clone().unwrap_or_default(),
            start: agreement.planned_start.clone().unwrap_or_default(),
            end: agreement.planned_end.clone().unwrap_or_default(),
            nodes: agreement.nodes,
        };
        Self {
            agreement: before.id,
            party: before.party.clone(),
            name: before.name.clone(),
            application: before.application.clone(),
            from: place(before),
            to: after.map(place),
            penalties: Vec::new(),
        }
    }

    fn of(agreement: Uuid, change: &PlaceChange) -> Self {
        let place = |place: &PlannedPlace| PlannedPlaceView {
            resource: place.resource.clone(),
            start: second_as_date_time(place.slot.start),
            end: second_as_date_time(place.slot.end),
            nodes: place.nodes,
        };
        Self {
            agreement,
            party: change.party.clone(),
            name: change.name.clone(),
            application: change.application.clone(),
            from: place(&change.from),
            to: change.to.as_ref().map(place),
            penalties: MoneyView::all(&change.penalties),
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
    pub(in crate::service) fn of(resource: &Resource) -> Self {
        Self {
            name: resource.name.clone(),
            nodes: resource.capacity,
            rate: f64::from(resource.rate.millionths()) / 1e6,
            attributes: view_attributes(&resource.attributes),
        }
    }
}
