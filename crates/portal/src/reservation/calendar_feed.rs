//! The reservations of a party for calendar programs, at a secret address of each person.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::IntoResponse;
use domain::agreement::RunOutcome;
use domain::clock;

use crate::failure::Failure;
use crate::path::PagePath;
use crate::reservation::icalendar::{Event, Status, write_icalendar};
use crate::reservation::standing::Standing;
use crate::session::{self, Visitor};
use crate::text::{self, second_of};
use crate::{Answer, redirect_to};
use api::{Api, FEEDS, base_address_of_call, origin_of_request};
use service::{AgreementView, ReservationFilter};

/// The most reservations of a calendar: coming ones, and the latest past ones.
const EVENTS_MAX: usize = 500;
/// Reservations that are read at a time.
const PAGE: usize = 125;
/// The ending of the address, by which programs know its type.
const ENDING: &str = ".ics";

/// The address of the visitor's calendar, where there is one.
pub(crate) async fn address_of_feed(
    api: &Api,
    visitor: &Visitor,
    base: &str,
) -> Result<Option<String>, Failure> {
    let feed = api.access.calendar_feed(&visitor.caller).await;
    let feed = feed.map_err(service::Error::from)?;
    Ok(feed.map(|secret| format!("{base}{FEEDS}{}{ENDING}", secret.expose())))
}

/// POST /portal/calendar-feed: a new address, in place of the old one.
pub(crate) async fn make_feed_address(State(api): State<Api>, request: Request) -> Answer {
    let (visitor, _) = session::read_session_form(&api, request).await?;
    api.access.make_calendar_feed(&visitor.caller).await?;
    Ok(redirect_to("/portal/reservations#feed"))
}

/// GET /portal/calendar-feed/{secret}.ics: the calendar, for each holder of the address.
pub(crate) async fn get_calendar_feed(
    State(api): State<Api>,
    PagePath(file): PagePath<String>,
    request: Request,
) -> Answer {
    let origin = origin_of_request(&request);
    let place = api.places.take_unknown(origin)?;
    let secret = file.strip_suffix(ENDING).unwrap_or_default();
    let party = api.access.party_of_calendar_feed(secret).await;
    let party = party.map_err(service::Error::from)?;
    drop(place);
    let Some(party) = party else {
        api.delay_wrong_key(origin).await?;
        return Err(Failure::NotFound);
    };
    let _place = api.places.take_of(&party)?;
    let filter = ReservationFilter {
        party: Some(party.clone()),
        ..ReservationFilter::default()
    };
    // What ends or moves between two pages may be on both. The later one has it as it is now.
    let mut reservations = BTreeMap::new();
    let mut after = None;
    while reservations.len() < EVENTS_MAX {
        let limit = PAGE.min(EVENTS_MAX - reservations.len());
        let limit = u32::try_from(limit).ok();
        let page = service::list_reservations(&api.service, &filter, after, limit).await?;
        reservations.extend(page.reservations.into_iter().map(|view| (view.id, view)));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let base = base_address_of_call(&api, request.headers());
    let events: Vec<Event> = reservations
        .values()
        .flat_map(|view| feed_events_of_agreement(view, &base))
        .collect();
    let now = clock::second_of(api.service.clock().micros()).seconds();
    let calendar = write_icalendar(&format!("Reservations of {party}"), &events, now);
    Ok(([(header::CONTENT_TYPE, "text/calendar; charset=utf-8")], calendar).into_response())
}

/// A reservation as an event, or as one for each of its pieces; nothing where it has no place.
fn feed_events_of_agreement(view: &AgreementView, base: &str) -> Vec<Event> {
    let whole = [(view.planned_start.as_ref(), view.planned_end.as_ref(), view.nodes)];
    let pieces = view.pieces.iter();
    let pieces: Vec<_> = pieces
        .map(|agreement| {
            (
                Some(&agreement.planned_start),
                Some(&agreement.planned_end),
                agreement.nodes,
            )
        })
        .collect();
    let slots = if pieces.is_empty() { &whole[..] } else { &pieces };
    let status = match view.state.as_str() {
        "Terminated" | "Rejected" | "ObservedAndTerminating" | "PendingAndTerminating" => Status::Cancelled,
        // Another one has taken its place in the calendar.
        "Complete" if view.superseded_by.is_some() => Status::Cancelled,
        "Complete" if view.outcome.as_deref() == Some(RunOutcome::Lost.word()) => Status::Cancelled,
        "Pending" => Status::Tentative,
        _ => Status::Confirmed,
    };
    let many = slots.len() > 1;
    let event = |(index, (start, end, nodes)): (usize, &(Option<&String>, Option<&String>, u32))| {
        let piece = if many {
            format!("-{}", index + 1)
        } else {
            String::new()
        };
        let resource = view.resource.as_deref().unwrap_or_default();
        Some(Event {
            uid: format!("{}{piece}@bespeak", view.id),
            sequence: view.version,
            start: second_of((*start)?)?,
            end: second_of((*end)?)?,
            status,
            summary: text::name(view),
            description: format!(
                "{} of {resource}\n{}",
                text::nodes(*nodes),
                Standing::of(view).words
            ),
            address: format!("{base}/portal/agreements/{}", view.id),
        })
    };
    slots.iter().enumerate().filter_map(event).collect()
}
