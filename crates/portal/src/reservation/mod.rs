//! A reservation: its state and place with reasons, its time as a picture, its money, its guarantees, its events, the
//! files of its job, and its documents.

pub(crate) mod calendar_feed;
pub(crate) mod change;
pub(crate) mod icalendar;
pub(crate) mod job_outputs;
pub(crate) mod list;
pub(crate) mod picture;
pub(crate) mod promise;
pub(crate) mod standing;
pub(crate) mod termination;
pub(crate) mod timeline;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use uuid::Uuid;
use wsag::time::DateTime;

use crate::chart::span_picture::SpanPicture;
use crate::failure::Failure;
use crate::path::PagePath;
use crate::request::filled_form::{form_address, form_filled_from_request};
use crate::reservation::job_outputs::{JobOutput, read_job_outputs};
use crate::reservation::promise::{Promise, flexibility_in_words, shape_changes_in_words};
use crate::reservation::standing::{Standing, is_final};
use crate::reservation::timeline::{TimelineEntry, charged_on_timeline, entries_of_timeline, is_about_nodes};
use crate::session::{self, Visitor};
use crate::text::{self, capitalised, plain_text};
use crate::{Answer, Frame, page_attachment, render_page};
use api::{Api, base_address_of_call, scope_of_caller};
use service::{AgreementDetails, AgreementView, ExplanationView, FilesView, ShapeChangesView};

#[derive(Template)]
#[template(path = "portal/agreement.html")]
struct AgreementPage {
    frame: Frame,
    name: String,
    standing: Standing,
    agreement: AgreementView,
    address: String,
    nodes: String,
    duration: String,
    /// The deadline where one was given; else it is as far ahead as the provider plans.
    deadline: Option<String>,
    /// The energy that its nodes take, where their power is known.
    energy: Option<String>,
    /// How its work ended, in words.
    outcome: Option<String>,
    /// What it has cost, where it is over and was priced.
    charged: Option<String>,
    /// The form filled in as it was, where it was lost and nothing is proposed in its place.
    again: Option<String>,
    picture: Option<SpanPicture>,
    reasons: ReservationReasons,
    /// The payments so far.
    payments: Vec<TimelineEntry>,
    happenings: Vec<TimelineEntry>,
    promises: Vec<Promise>,
    outputs: Vec<JobOutput>,
    /// All files that can be downloaded; none where there are none yet or none any more.
    files: Option<FilesView>,
    /// Whether the page may change by itself.
    is_live: bool,
    can_end: bool,
    /// Whether it is the visitor's own; no other visitor may change it.
    is_own: bool,
}

/// Why a reservation is where it is.
struct ReservationReasons {
    decision: Vec<String>,
    price_parts: Vec<String>,
    flexibility: String,
    /// The changes of its shape that are still possible; none where there are none.
    shape: Option<String>,
}

/// GET /portal/agreements/{id}.
pub(crate) async fn show_agreement_page(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath(id): PagePath<Uuid>,
) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, Some(id)).await?;
    let scope = || scope_of_caller(&visitor.caller);
    let AgreementDetails {
        view,
        room,
        may_change,
        request,
        watt_hours,
        ..
    } = service::show_agreement(&api.service, scope(), id).await?;
    let timeline = service::show_timeline(&api.service, scope(), id).await?;
    let (outputs, files) = read_job_outputs(&api, &visitor, &view).await?;
    let name = text::name(&view);
    let now = api.service.clock().micros();
    let instant = jiff::Timestamp::from_microsecond(now).unwrap_or_default();
    let explained = ExplanationView::of(&view, &timeline, instant);
    let has_deadline = request.end.is_some();
    let is_final = is_final(&view);
    let price = view.price.as_ref().filter(|_| is_final);
    let shown = AgreementPage {
        frame: visitor.frame(name.as_str()),
        standing: Standing::of(&view),
        address: view.address(&base_address_of_call(&api, &headers)),
        nodes: text::nodes(view.nodes),
        duration: text::duration(view.duration_seconds),
        energy: watt_hours.map(text::kilowatt_hours),
        outcome: reservation_outcome_in_words(&view),
        charged: price.map(|price| charged_on_timeline(&timeline, &price.currency)),
        again: address_of_reservation_again(&api, &visitor, &view, request, instant.as_second()),
        picture: picture::draw_reservation(
            (&view, room.as_ref(), has_deadline),
            &timeline,
            instant.as_second(),
        ),
        reasons: ReservationReasons::of(&explained, may_change.as_ref(), has_deadline),
        deadline: has_deadline.then(|| view.deadline.clone()),
        payments: entries_of_timeline(&timeline, |kind| ["charged", "penalty", "reward"].contains(&kind)),
        happenings: entries_of_timeline(&timeline, |_| true),
        promises: view
            .guarantees
            .iter()
            .map(|guarantee| Promise::of(guarantee, &view, has_deadline))
            .collect(),
        outputs,
        files,
        is_live: !is_final,
        can_end: view.state == "Observed",
        is_own: view.party == visitor.caller.party,
        name,
        agreement: view,
    };
    render_page(StatusCode::OK, &shown)
}

/// The address of the form filled in as a lost reservation of the visitor's was, with its times as far as they are to come; none for
/// another one, or while another place is proposed.
fn address_of_reservation_again(
    api: &Api,
    visitor: &Visitor,
    view: &AgreementView,
    request: service::Request,
    now: i64,
) -> Option<String> {
    let is_lost = is_final(view) && view.outcome.as_deref() == Some("lost");
    let is_open = is_lost && view.superseded_by.is_none() && view.proposals.is_empty();
    if !is_open || view.party != visitor.caller.party {
        return None;
    }
    let latest = |end: &DateTime| end.floor() - view.duration_seconds;
    let request = service::Request {
        start: request.start.filter(|at| at.floor() > now),
        end: request.end.filter(|end| latest(end) > now),
        ..request
    };
    Some(form_address(&form_filled_from_request(
        &request,
        &api.service.catalogue(),
    )))
}

impl ReservationReasons {
    fn of(explained: &ExplanationView, may_change: Option<&ShapeChangesView>, has_deadline: bool) -> Self {
        let moves = explained
            .moves
            .iter()
            .filter(|one_move| !is_about_nodes(&one_move.why));
        let moves: Vec<_> = moves
            .map(|one_move| format!("Then: {}", plain_text(&one_move.why)))
            .collect();
        let has_moved = !moves.is_empty();
        let sentence = |text: &String| {
            if has_moved {
                format!("At first: {}", plain_text(text))
            } else {
                capitalised(&plain_text(text))
            }
        };
        Self {
            decision: explained.decision.iter().map(sentence).chain(moves).collect(),
            price_parts: explained
                .price_parts
                .iter()
                .flatten()
                .map(|part| plain_text(part))
                .collect(),
            flexibility: flexibility_in_words(&explained.flexibility, has_deadline),
            shape: may_change.and_then(shape_changes_in_words),
        }
    }
}

fn reservation_outcome_in_words(view: &AgreementView) -> Option<String> {
    let words = match view.outcome.as_deref()? {
        "completed" if view.application.is_none() => "Its time was used to its end",
        "completed" => "Its program ended by itself",
        "failed" => "Its program ended with an error",
        "killed" => "Its program was stopped at the end of its time",
        "terminated" => "It was cancelled while it ran",
        "lost" if view.started.is_none() => "It lost its place before it began, and costs nothing",
        "lost" => "Its work was lost, and costs nothing",
        "failed-staging" => "Its files could not be moved",
        "exceeded-memory" => "Its program took more memory than it may",
        "exceeded-processes" => "Its program started more processes than it may",
        "exceeded-files" => "Its program wrote more than it may",
        _ => "Its work ended",
    };
    let status = view
        .exit_status
        .map_or_else(String::new, |status| format!(" (exit status {status})"));
    Some(format!("{words}{status}."))
}

/// The agreement that the visitor of a request asks for.
async fn read_agreement(api: &Api, headers: &HeaderMap, id: Uuid) -> Result<AgreementDetails, Failure> {
    let visitor = session::visitor_of_session(api, headers, Some(id)).await?;
    let scope = scope_of_caller(&visitor.caller);
    Ok(service::show_agreement(&api.service, scope, id).await?)
}

/// GET /portal/agreements/{id}/document.xml: the document that the API answers with, too.
pub(crate) async fn get_agreement_document(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath(id): PagePath<Uuid>,
) -> Answer {
    let shown = read_agreement(&api, &headers, id).await?;
    let (kind, file) = ("application/xml; charset=utf-8", format!("reservation-{id}.xml"));
    Ok(page_attachment(kind, &file, shown.document(None)))
}

/// GET /portal/agreements/{id}/document.json: the value that the API answers with, too.
pub(crate) async fn get_agreement_value(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath(id): PagePath<Uuid>,
) -> Answer {
    let shown = read_agreement(&api, &headers, id).await?;
    let (kind, file) = ("application/json", format!("reservation-{id}.json"));
    Ok(page_attachment(kind, &file, axum::Json(&shown.view)))
}
