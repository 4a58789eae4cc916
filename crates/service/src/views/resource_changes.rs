//! Changes of resources, by orders and by the configuration, with what becomes of agreements.

use planner::ResourceChanges;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::Error;
use crate::views::money_and_time::MoneyView;
use crate::views::place_changes::PlaceChangeView;

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

impl ResourceChangesView {
    /// What became of resources and of agreements.
    pub(crate) fn of(changes: &ResourceChanges, is_dry: bool) -> Self {
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
