//! The audit trail, for operators, and for a party its own events.

use axum::Json;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Answer;
use super::call::Call;
use super::format::JsonTaken;
use super::operation::Operation;
use super::query::Query;
use super::routes::Routes;
use access::Role;
use service::{EventsView, TrailView};

/// Which events are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The party whose events are asked for; only operators may name another than their own.
    party: Option<String>,
    /// The cursor of the event, or the number of the line, before the first.
    #[schemars(range(min = i64::MIN, max = i64::MAX))]
    after: Option<i64>,
    /// How many at most.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// A page of events: of a party, or of the audit trail.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "each is answered as it is")]
enum EventsOrTrail {
    Events(EventsView),
    Trail(TrailView),
}

/// The route of what has happened.
pub(super) fn trail_routes() -> Routes {
    Routes::default()
        .get(
            "/events",
            get_trail_events,
            Operation::new(
                "listTrail",
                "operation",
                "The events of your party, as its call-backs were told them; for operators everything that has happened, in the \
                 order of the audit trail, or the events of one party",
            )
            .query::<EventsQuery>()
            .answers_page::<EventsOrTrail>(),
        )
}

/// GET /events: for operators everything that happened, in the order of the audit trail; of one party what its call-backs
/// were told.
async fn get_trail_events(call: Call, _: JsonTaken, Query(asked): Query<EventsQuery>) -> Answer {
    let (next, answer) = if asked.party.is_some() || call.caller.role != Role::Operator {
        let party = call.party_of(asked.party)?;
        let events = service::list_call_back_events(&call.service, &party, asked.after, asked.limit).await?;
        (events.next, Json(events).into_response())
    } else {
        let trail = service::list_trail(&call.service, asked.after, asked.limit).await?;
        (trail.next, Json(trail).into_response())
    };
    Ok(call.paged(answer, next))
}
