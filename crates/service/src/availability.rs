//! When a class of resources has nodes free.

use scheduler::{Interval, Time};
use schemars::JsonSchema;
use serde::Serialize;
use wsag::time::DateTime;

use crate::views::money_and_time::second_as_date_time;
use crate::views::schemas;
use crate::{Error, Result, Service};

/// A question about free nodes; each missing member has a default.
#[derive(Debug, Clone, Default)]
pub struct AvailabilityQuery {
    /// How many nodes at least; 1.
    pub nodes: Option<u32>,
    /// From when on; now.
    pub start: Option<DateTime>,
    /// Until when; a day after the start.
    pub end: Option<DateTime>,
    /// The executor of the resources; by default any.
    pub kind: Option<String>,
}

/// The times when nodes are free; the holders of the others are not shown.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct AvailabilityView {
    /// The least number of nodes, on one resource.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// The class of resources; any where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"local")]
    pub kind: Option<String>,
    /// The start of the time that was asked about.
    #[schemars(with = "schemas::Instant")]
    pub start: String,
    /// The end of the time that was asked about.
    #[schemars(with = "schemas::Instant")]
    pub end: String,
    /// The times in which they are free.
    pub free: Vec<FreeView>,
}

/// A time in which nodes are free.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct FreeView {
    /// The first second.
    #[schemars(with = "schemas::Instant")]
    pub start: String,
    /// The second after its last.
    #[schemars(with = "schemas::Instant")]
    pub end: String,
}

/// Where no end is named.
const DAY: i64 = 86_400;

/// When nodes are free; none where the provider does not tell.
///
/// # Errors
/// [`Error::TooOften`] where the party asks more often than it may, [`Error::Unavailable`].
pub async fn show_availability(
    service: &Service,
    party: &str,
    query: AvailabilityQuery,
) -> Result<Option<AvailabilityView>> {
    let start = query.start.map_or(service.clock.now(), |at| Time(at.ceil()));
    let end = query.end.map_or(start + DAY, |at| Time(at.floor()));
    let within = Interval::new(start, end.max(start));
    let asked = planner::ShowAvailability {
        party: party.to_owned(),
        nodes: query.nodes.unwrap_or(1),
        within,
        kind: query.kind.clone(),
    };
    let nodes = asked.nodes;
    let free = match service.send(asked).await {
        Err(planner::Error::Refused(refusal)) => return Err(Error::TooOften(refusal.binding)),
        free => free?,
    };
    Ok(free.map(|free| AvailabilityView {
        nodes,
        kind: query.kind,
        start: second_as_date_time(within.start),
        end: second_as_date_time(within.end),
        free: free
            .into_iter()
            .map(|free| FreeView {
                start: second_as_date_time(free.start),
                end: second_as_date_time(free.end),
            })
            .collect(),
    }))
}
