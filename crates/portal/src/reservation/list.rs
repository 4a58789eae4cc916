//! The list of reservations, with its filters and the address of the calendar.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use domain::clock::second_of;
use jiff::ToSpan;
use jiff::civil::Date;
use uuid::Uuid;

use crate::chart::span_picture::SpanPicture;
use crate::reservation::standing::{Standing, is_final};
use crate::reservation::{calendar_feed, picture};
use crate::session::{self, Visitor};
use crate::text;
use crate::values::Values;
use crate::{Answer, Frame, render_page, zone};
use access::Role;
use api::{Api, base_address_of_call, scope_of_caller};
use service::{AgreementView, ReservationFilter, ReservationPlace};

/// Reservations on a page.
const PAGE: u32 = 20;
/// The words of a choice of standings, and what they are called.
const STANDINGS: [(&str, &str); 9] = [
    ("", "All"),
    ("waiting", "Waiting"),
    ("running", "Running"),
    ("done", "Completed"),
    ("failed", "Failed or stopped"),
    ("lost", "Lost"),
    ("changed", "Changed"),
    ("cancelled", "Cancelled"),
    ("refused", "Refused"),
];

#[derive(Template)]
#[template(path = "portal/reservations.html")]
struct Reservations {
    frame: Frame,
    filter: FilterForm,
    /// The reservations for which the provider proposes another place.
    proposed: Vec<ReservationLine>,
    coming: Vec<ReservationLine>,
    past: Vec<ReservationLine>,
    /// Where the list goes on.
    next: Option<String>,
    /// Whether the list does not begin at its beginning.
    is_further: bool,
    /// Whether the list is of every party's.
    is_everybodys: bool,
    /// The address of the calendar, where there is one.
    feed: Option<String>,
}

/// The filters as they were filled in.
struct FilterForm {
    is_used: bool,
    search: String,
    party: String,
    from: String,
    to: String,
    standings: Vec<FilterChoice>,
    resources: Vec<FilterChoice>,
}

/// A value to choose.
struct FilterChoice {
    value: String,
    label: String,
    is_chosen: bool,
}

/// A reservation in the list.
struct ReservationLine {
    id: Uuid,
    name: String,
    party: String,
    standing: Standing,
    start: String,
    end: String,
    size: String,
    price: Option<String>,
    picture: Option<SpanPicture>,
}

/// GET /portal/reservations: what runs and what is next, by start; then what is over, the latest first.
pub(crate) async fn show_reservations_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    let asked = Values::read(uri.query().unwrap_or_default().as_bytes());
    let after: Option<ReservationPlace> = asked.get("after").parse().ok();
    let found = service::list_reservations(
        &api.service,
        &read_reservation_filter(&visitor, &asked),
        after,
        Some(PAGE),
    )
    .await?;
    let now = second_of(api.service.clock().micros()).seconds();
    let is_proposed = |agreement: &&AgreementView| visitor.proposed.contains(&agreement.id);
    let (proposed, others): (Vec<_>, Vec<_>) = found.reservations.iter().partition(is_proposed);
    let (past, coming): (Vec<_>, Vec<_>) = others.into_iter().partition(|other| is_final(other));
    let lines = |agreements: Vec<&AgreementView>| {
        agreements
            .into_iter()
            .map(|view| line_of_reservation(view, now))
            .collect()
    };
    let base = base_address_of_call(&api, &headers);
    let shown = Reservations {
        frame: visitor.frame("Reservations"),
        filter: reservation_filter_form(&api, &asked),
        proposed: lines(proposed),
        coming: lines(coming),
        past: lines(past),
        next: found
            .next
            .map(|place| address_of_reservation_list_page(&asked, place)),
        is_further: after.is_some(),
        is_everybodys: visitor.caller.role == Role::Operator,
        feed: calendar_feed::address_of_feed(&api, &visitor, &base).await?,
    };
    render_page(StatusCode::OK, &shown)
}

/// The filter that a query asks for. What it does not say, and what cannot be, filters nothing.
fn read_reservation_filter(visitor: &Visitor, asked: &Values) -> ReservationFilter {
    // No name has a zero byte, and not every store takes one.
    let is_text = |text: &String| !text.is_empty() && !text.contains('\0');
    let text = |name: &str| Some(asked.trimmed(name).to_owned()).filter(is_text);
    let own = scope_of_caller(&visitor.caller).party().map(str::to_owned);
    let (start, end) = (
        start_of_reservation_list_day(asked.trimmed("from"), 0),
        start_of_reservation_list_day(asked.trimmed("to"), 1),
    );
    ReservationFilter {
        party: own.or_else(|| text("party")),
        standing: text("state").filter(|state| STANDINGS.iter().any(|(known, _)| known == state)),
        resource: text("resource"),
        search: text("q"),
        ..ReservationFilter::default()
    }
    .within(start, end)
}

/// The first second of a visitor's day, or of one that comes later.
fn start_of_reservation_list_day(text: &str, later: i64) -> Option<i64> {
    let day = Date::strptime("%Y-%m-%d", text)
        .ok()?
        .checked_add(later.days())
        .ok()?;
    Some(day.to_zoned(zone::present_rules()).ok()?.timestamp().as_second())
}

fn reservation_filter_form(api: &Api, asked: &Values) -> FilterForm {
    let choice = |field: &str, value: &str, label: &str| FilterChoice {
        value: value.to_owned(),
        label: label.to_owned(),
        is_chosen: asked.trimmed(field) == value,
    };
    let standings = STANDINGS.iter().map(|(word, label)| choice("state", word, label));
    let resources = service::list_offered_resources(&api.service).resources;
    let resources = resources
        .iter()
        .map(|resource| choice("resource", &resource.name, &resource.name));
    FilterForm {
        is_used: asked
            .iter()
            .any(|(name, value)| name != "after" && !value.is_empty()),
        search: asked.get("q").to_owned(),
        party: asked.get("party").to_owned(),
        from: asked.get("from").to_owned(),
        to: asked.get("to").to_owned(),
        standings: standings.collect(),
        resources: std::iter::once(choice("resource", "", "Any"))
            .chain(resources)
            .collect(),
    }
}

/// The address of the page that goes on at a place, with the same filters.
fn address_of_reservation_list_page(asked: &Values, place: ReservationPlace) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(
        asked
            .iter()
            .filter(|(name, value)| *name != "after" && !value.is_empty()),
    );
    query.append_pair("after", &place.to_string());
    format!("/portal/reservations?{}", query.finish())
}

fn line_of_reservation(view: &AgreementView, now: i64) -> ReservationLine {
    let (start, end) = time_on_reservation_list(view);
    let resource = view
        .resource
        .as_ref()
        .map_or_else(String::new, |name| format!(" of {name}"));
    ReservationLine {
        id: view.id,
        name: text::name(view),
        party: view.party.clone(),
        standing: Standing::of(view),
        start,
        end,
        size: format!("{}{resource}", text::nodes(view.nodes)),
        price: view
            .price
            .as_ref()
            .filter(|_| is_price_due_on_list(view))
            .map(ToString::to_string),
        picture: picture::draw_reservation_line(view, now),
    }
}

/// Whether the price of an agreement was or will be charged, as far as its state tells: not of one that was ended before its time, was
/// replaced, or was lost.
fn is_price_due_on_list(agreement: &AgreementView) -> bool {
    let outcome = agreement.outcome.as_deref();
    !is_final(agreement) || outcome.is_some_and(|outcome| outcome != "lost")
}

/// When an agreement began and ended, as far as it has, and otherwise when it is to. What has no place has the time that was asked for.
fn time_on_reservation_list(agreement: &AgreementView) -> (String, String) {
    let start = agreement.planned_start.as_ref().unwrap_or(&agreement.ready);
    let end = agreement.planned_end.as_ref().unwrap_or(&agreement.deadline);
    let start = agreement.started.as_ref().unwrap_or(start);
    let end = agreement
        .ended
        .as_ref()
        .filter(|_| agreement.started.is_some())
        .unwrap_or(end);
    (start.clone(), end.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_and_ends_in_utc_and_other_texts_are_none() {
        assert_eq!(start_of_reservation_list_day("1970-01-02", 0), Some(86_400));
        assert_eq!(start_of_reservation_list_day("1970-01-02", 1), Some(172_800));
        for wrong in ["", "today", "1970-02-30"] {
            assert_eq!(start_of_reservation_list_day(wrong, 0), None, "{wrong}");
        }
    }
}
