//! Places in the plan that agreements get in place of others, or lose.

use domain::resources::{PlaceChange, PlannedPlace, Repaired};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::views::agreement::AgreementView;
use crate::views::money_and_time::{MoneyView, second_as_date_time};
use crate::views::schemas;

/// Agreements in each list of an answer; the others are counted.
const LISTED_MAX: usize = 1_000;

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

impl PlaceChangeView {
    /// The agreements without a place any more, those that have another one, and how many are left out since a list is full.
    pub(crate) fn lists(effects: &Repaired) -> (Vec<Self>, Vec<Self>, usize) {
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
