//! The changes of its shape that an agreement leaves open, as a flat value and as an element of a document.

use domain::agreement::{self, PlacementConstraints};
use scheduler::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wsag::scheduling;
use wsag::time::DateTime;

use crate::views::money_and_time::second_as_date_time;
use crate::views::schemas;

/// The changes of its shape that an agreement leaves open while it waits. Its work, its deadline and its price stay.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "ShapeChanges")]
pub struct ShapeChangesView {
    /// Whether it may get another of its sizes.
    #[schemars(example = true)]
    pub sizes: bool,
    /// Whether its work may be cut in other pieces.
    #[schemars(example = false)]
    pub cuts: bool,
    /// Until when; without this until its slot begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub until: Option<String>,
}

impl ShapeChangesView {
    pub(crate) fn of(changes: agreement::ShapeChanges) -> Self {
        let agreement::ShapeChanges { sizes, cuts, until } = changes;
        let until = until.map(|until| second_as_date_time(Time(until)));
        Self { sizes, cuts, until }
    }
}

/// The changes that constraints leave open, as they were agreed and as documents have them; none where there is one shape only.
pub(crate) fn shape_changes_in_document(
    constraints: &PlacementConstraints,
) -> Option<scheduling::ShapeChanges> {
    let agreement::ShapeChanges { sizes, cuts, until } = constraints.open_shape_changes()?;
    let until = until.map(DateTime::from_seconds);
    Some(scheduling::ShapeChanges { sizes, cuts, until })
}
