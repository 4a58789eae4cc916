//! What parties have of the resources.

use planner::{PartyUsage, ResourceUsage, ShowUsage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Service;
use crate::error::Result;
use crate::scope::Scope;

/// What parties have of the resources.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct UsageView {
    /// The parties that have something, by name.
    pub parties: Vec<PartyUsageView>,
}

/// What one party has.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartyUsageView {
    /// The party.
    #[schemars(example = &"physics")]
    pub party: String,
    /// Agreements with a place that are not over.
    #[schemars(example = 3)]
    pub agreements: usize,
    /// Agreements that it may have; none without a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 2_000)]
    pub agreements_max: Option<u32>,
    /// Questions that it has asked in the present minute.
    #[serde(default)]
    #[schemars(example = 12)]
    pub questions: u32,
    /// Questions that it may ask in a minute; none without a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 600)]
    pub questions_max: Option<u32>,
    /// Whether it has at least 80 percent of one of these.
    #[serde(default, rename = "nearQuota")]
    pub is_near_quota: bool,
    /// Negotiations that go on.
    #[schemars(example = 1)]
    pub negotiations: usize,
    /// Answers with offers that are held for it.
    #[schemars(example = 1)]
    pub held_answers: usize,
    /// What it has on each resource.
    pub resources: Vec<ResourceUsageView>,
}

/// What a party has of one resource, with what is held for it.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsageView {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub resource: String,
    /// All node-hours that it has there, offers that are held included.
    #[schemars(example = 512.5)]
    pub node_hours: f64,
    /// The most of the resource that it has in any 30 days, in percent.
    #[schemars(example = 42.5)]
    pub most_percent: f64,
    /// The most that it may have of it in any 30 days while other parties have work, in percent; none without a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 99), example = 50)]
    pub share_percent: Option<u32>,
}

/// What parties have of the resources: within `scope`.
///
/// # Errors
/// When the planner has stopped.
pub async fn show_usage(service: &Service, scope: &Scope) -> Result<UsageView> {
    let usage = service
        .ask(ShowUsage {
            party: scope.party().map(str::to_owned),
        })
        .await?;
    Ok(UsageView::of(&usage))
}

impl UsageView {
    fn of(usage: &[PartyUsage]) -> Self {
        Self {
            parties: usage.iter().map(PartyUsageView::of).collect(),
        }
    }
}

impl PartyUsageView {
    fn of(usage: &PartyUsage) -> Self {
        Self {
            party: usage.party.clone(),
            agreements: usage.agreements,
            agreements_max: usage.agreements_max,
            questions: usage.questions,
            questions_max: usage.questions_max,
            is_near_quota: usage.is_near_quota(),
            negotiations: usage.negotiations,
            held_answers: usage.held_answers,
            resources: usage.resources.iter().map(ResourceUsageView::of).collect(),
        }
    }
}

impl ResourceUsageView {
    fn of(usage: &ResourceUsage) -> Self {
        // Hundredths are enough to read.
        let hundredths = |part: u128, whole: u128| {
            let count = (part * 100 + whole / 2) / whole.max(1);
            let text = format!("{}.{:02}", count / 100, count % 100);
            text.parse().unwrap_or(f64::MAX)
        };
        Self {
            resource: usage.resource.clone(),
            node_hours: hundredths(usage.node_seconds, 3_600),
            most_percent: hundredths(usage.most_in_30_days * 100, usage.capacity_in_30_days),
            share_percent: usage.share_percent,
        }
    }
}
