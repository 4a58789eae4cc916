//! An offer that was accepted, as a flat value.

use planner::AcceptedOffer;
use scheduler::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::views::agreement::AgreementView;
use crate::views::money_and_time::{read_date_time, write_date_time};
use crate::views::schemas;

/// An offer that was accepted.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct AcceptedView {
    /// The agreement that it became.
    #[serde(flatten)]
    pub agreement: AgreementView,
    /// The party's other agreements that moved inside their windows to make room for this one: the first ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedView>,
    /// How many there are of these.
    #[serde(default, rename = "movedCount", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 2)]
    pub moved_count: Option<usize>,
}

/// An agreement that moved inside its window.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MovedAgreement")]
pub struct MovedView {
    /// The id of the agreement.
    pub id: Uuid,
    /// The planned start from now on.
    #[serde(serialize_with = "write_date_time", deserialize_with = "read_date_time")]
    #[schemars(with = "schemas::Instant")]
    pub planned_start: Time,
    /// The planned end from now on.
    #[serde(serialize_with = "write_date_time", deserialize_with = "read_date_time")]
    #[schemars(with = "schemas::Instant")]
    pub planned_end: Time,
}

impl AcceptedView {
    pub(crate) fn of(accepted: &AcceptedOffer) -> Self {
        let moved = accepted.moved.iter().map(|other| MovedView {
            id: other.id,
            planned_start: other.placement().start,
            planned_end: other.placement().end,
        });
        Self {
            agreement: AgreementView::of(&accepted.agreement),
            moved: moved.collect(),
            moved_count: Some(accepted.moved_count).filter(|count| *count > 0),
        }
    }

    /// The answer about an agreement for which others did nothing now.
    pub(crate) fn alone(agreement: AgreementView) -> Self {
        Self {
            agreement,
            moved: Vec::new(),
            moved_count: None,
        }
    }
}
