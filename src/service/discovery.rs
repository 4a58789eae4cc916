//! The resources as requesters may see them, and the templates that are offered.

use std::collections::BTreeMap;

use domain::resources::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wsag::templates::agreement_factory_properties;

use crate::service::Service;
use crate::service::templates::TemplateView;
use crate::service::views::resources::view_attributes;
use crate::service::views::schemas;

/// The resources on which something can be placed: what they have, and nothing of how they are used.
pub fn list_offered_resources(service: &Service) -> OfferedResourcesView {
    let resources = service.planner.resources();
    let in_service = resources.iter().filter(|resource| resource.takes_new());
    OfferedResourcesView {
        resources: in_service.map(OfferedResourceView::of).collect(),
    }
}

/// The templates that are offered.
pub fn list_templates(service: &Service) -> Vec<TemplateView> {
    service
        .templates
        .now()
        .all()
        .map(|template| template.view.clone())
        .collect()
}

/// The nodes and the seconds that the template proposes from which forms make their offers: the first, where it does.
pub fn proposed_size(service: &Service) -> (Option<u32>, Option<i32>) {
    service
        .templates
        .first()
        .map_or((None, None), |template| template.proposed())
}

/// A template and its document.
pub fn show_template(service: &Service, id: &str) -> Option<(TemplateView, String)> {
    let offered = service.templates.get(id);
    offered.map(|template| (template.view.clone(), template.document.clone()))
}

/// The AgreementFactoryProperties with every template.
pub fn factory_properties(service: &Service) -> String {
    agreement_factory_properties(service.templates.now().all().map(|template| &template.template))
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
    #[schemars(with = "schemas::ResourceAttributes")]
    pub attributes: BTreeMap<String, Value>,
}

impl OfferedResourceView {
    pub(super) fn of(resource: &Resource) -> Self {
        Self {
            name: resource.name.clone(),
            nodes: resource.capacity,
            rate: f64::from(resource.rate.millionths()) / 1e6,
            attributes: view_attributes(&resource.attributes),
        }
    }
}
