//! That something may have changed, for pages that are open: they load the parts again that they mark.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Answer, session};
use api::Api;

/// The least time between two events: what changes often is loaded again this often.
const PAUSE: Duration = Duration::from_secs(2);
/// Browsers ask again after this time: no stream is kept for a page that is closed.
const LASTS: Duration = Duration::from_mins(5);

/// GET /portal/events: a stream of server-sent events, one after changes of the plan. It ends with the session and with the service.
/// It asks nothing of the planner, and of the store only whether the session still is.
pub(super) async fn stream_events(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    let place = api.places.take_of_pages(&visitor.caller.party)?;
    let changes = api.service.subscribe_changes();
    let end = Instant::now() + LASTS;
    let stopping = api.stopping.clone();
    let seen = (changes, Instant::now());
    let events = unfold(seen, move |(mut changes, may_tell)| {
        let (api, headers) = (api.clone(), headers.clone());
        async move {
            timeout_at(end, changes.changed()).await.ok()?.ok()?;
            // What changes meanwhile is told by the same event.
            sleep_until(may_tell).await;
            changes.mark_unchanged();
            session::visitor_of_request(&api, &headers).await.ok()??;
            let event = Event::default().data("changed");
            Some((Ok::<_, Infallible>(event), (changes, Instant::now() + PAUSE)))
        }
    });
    let events = events
        .map(move |event| {
            let _place = &place;
            event
        })
        .take_until(stopping.cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}
