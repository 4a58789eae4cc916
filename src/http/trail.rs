//! The audit trail, for operators, and for a party its own events and refusals.

use axum::Json;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::call::Call;
use super::format::JsonTaken;
use super::path::{Id, Query};
use super::{Answer, Error};
use crate::access::Role;
use crate::negotiation::RefusedView;

/// Which events are listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// The party whose events are asked for; of others than operators only their own.
    party: Option<String>,
    after: Option<i64>,
    limit: Option<u32>,
}

/// GET /events: for operators everything that happened, in the order of the audit trail; of one party what its call-backs
/// were told.
pub(super) async fn get_trail_events(call: Call, _: JsonTaken, Query(asked): Query<EventsQuery>) -> Answer {
    let (next, answer) = if asked.party.is_some() || call.caller.role != Role::Operator {
        let party = call.party_of(asked.party)?;
        let events = call
            .negotiation
            .party_events(&party, asked.after, asked.limit)
            .await?;
        (events.next, Json(events).into_response())
    } else {
        let trail = call.negotiation.trail(asked.after, asked.limit).await?;
        (trail.next, Json(trail).into_response())
    };
    Ok(call.paged(answer, next))
}

/// GET /refusals/{id}. In JSON alone: WS-Agreement knows nothing of offers that were refused.
pub(super) async fn get_refusal(call: Call, Id(id): Id) -> Result<Json<RefusedView>, Error> {
    let refused = call.negotiation.show_refusal(&call.scope(), id).await?;
    Ok(Json(refused))
}
