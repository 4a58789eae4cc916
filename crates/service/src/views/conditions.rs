//! The conditions of an offer or an agreement on its nodes, as flat values.

use std::collections::BTreeMap;

use domain::agreement::{Filter, Measure, RESOURCE};
use domain::request::job_attributes::filters_of_job;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wsag::job_definition::Resources;
use wsag::terms::{ServiceDescription, Terms};

/// What each node must have by its name: at least so much of a number, and a word as it is. Requests have these members.
pub type AttributesView = BTreeMap<String, Value>;

/// A condition on a number that is more than a least one for each node.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ConditionView {
    /// The attribute that is measured.
    #[schemars(example = &"cpus")]
    pub attribute: String,
    /// `node` for each node, `total` for all nodes together.
    #[schemars(extend("enum" = ["node", "total"]))]
    pub of: String,
    /// The bounds, between two of which the number lies.
    pub within: Vec<ConditionBoundsView>,
}

/// The bounds of a number, both included.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "Within")]
pub struct ConditionBoundsView {
    /// The least; none where there is no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 4)]
    pub min: Option<i64>,
    /// The greatest; none where there is no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 8)]
    pub max: Option<i64>,
}

/// The conditions of filters on nodes. That the nodes are of one resource is no condition on what they have.
pub(crate) fn view_filters(filters: &[Filter]) -> (AttributesView, Vec<ConditionView>) {
    let (mut attributes, mut conditions) = (AttributesView::new(), Vec::new());
    for filter in filters {
        match filter {
            Filter::Word { attribute, .. } if attribute == RESOURCE => {}
            Filter::Word { attribute, is } => {
                attributes.insert(attribute.clone(), json!(is));
            }
            Filter::Number {
                attribute,
                measure,
                within,
            } => match (measure, within.as_slice()) {
                (Measure::Node, [(least @ 1.., i64::MAX)]) => {
                    attributes.insert(attribute.clone(), json!(least));
                }
                (measure, within) => conditions.push(ConditionView {
                    attribute: attribute.clone(),
                    of: match measure {
                        Measure::Node => "node".to_owned(),
                        Measure::Total => "total".to_owned(),
                    },
                    within: within.iter().map(ConditionBoundsView::of).collect(),
                }),
            },
        }
    }
    (attributes, conditions)
}

/// The conditions of a job on its nodes.
pub(crate) fn view_resources(resources: &Resources) -> (AttributesView, Vec<ConditionView>) {
    view_filters(&filters_of_job(resources))
}

/// The conditions of an offer on its nodes. Where the offer leaves a choice, they are those of the first way to read it.
pub(crate) fn view_conditions(terms: &Terms) -> (AttributesView, Vec<ConditionView>) {
    let job = terms
        .descriptions()
        .find_map(|description| match &description.content {
            ServiceDescription::JobDefinition(job) => Some(&job.resources),
            _ => None,
        });
    job.map(view_resources).unwrap_or_default()
}

impl ConditionBoundsView {
    fn of((least, most): &(i64, i64)) -> Self {
        Self {
            min: Some(*least).filter(|least| *least != i64::MIN),
            max: Some(*most).filter(|most| *most != i64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use wsag::job_definition::{self, FilterKind, RangeValue};

    use super::*;

    #[test]
    fn every_condition_is_shown() {
        let filter = |kind, range| job_definition::Filter { kind, range };
        let resources = Resources {
            cpu_architecture: Some("arm".to_owned()),
            filters: vec![
                filter(FilterKind::IndividualCpuCount, RangeValue::at_least(4.0)),
                filter(
                    FilterKind::IndividualPhysicalMemory,
                    RangeValue::between(2.0, 8.0),
                ),
                filter(FilterKind::TotalCpuCount, RangeValue::at_least(16.0)),
            ],
            nodes: None,
        };
        let (attributes, conditions) = view_resources(&resources);
        assert_eq!(json!(attributes), json!({ "cpu_architecture": "arm", "cpus": 4 }));
        assert_eq!(
            json!(conditions),
            json!([
                { "attribute": "memory_bytes", "of": "node", "within": [{ "min": 2, "max": 8 }] },
                { "attribute": "cpus", "of": "total", "within": [{ "min": 16 }] },
            ])
        );
        let none = (AttributesView::new(), Vec::new());
        assert_eq!(view_filters(&[Filter::of_resource("local")]), none);
    }
}
