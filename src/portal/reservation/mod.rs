//! A reservation: its state and place with reasons, its time as a picture, its money, its guarantees, its events, the files of its job,
//! and its end.

pub(in crate::portal) mod calendar_feed;
pub(in crate::portal) mod change;
pub(in crate::portal) mod icalendar;
pub(in crate::portal) mod list;
pub(in crate::portal) mod picture;
pub(in crate::portal) mod words;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect};
use uuid::Uuid;

use crate::http::{Api, base_address, output_body, require_writer, scope_of_caller};
use crate::negotiation::{
    AgreementView, EndingView, Error, ExplanationView, FilesView, FlexibilityView, Input, Shown,
    TerminateRequest, TimelineView,
};
use crate::portal::error::Failure;
use crate::portal::money::title_of_entry;
use crate::portal::path::Path;
use crate::portal::reservation::picture::Picture;
use crate::portal::reservation::words::{Happening, Promise, plain};
use crate::portal::session::{self, Visitor};
use crate::portal::text::{self, StateLabel, capitalised};
use crate::portal::{Answer, Frame, render_page};

/// Bytes of an output that the page itself shows.
const SHOWN_MAX: usize = 4_096;

#[derive(Template)]
#[template(path = "portal/agreement.html")]
struct AgreementPage {
    frame: Frame,
    name: String,
    standing: StateLabel,
    agreement: AgreementView,
    address: String,
    nodes: String,
    duration: String,
    /// The energy that its nodes take, where their power is known.
    energy: Option<String>,
    /// How its work ended, in words.
    outcome: Option<String>,
    picture: Option<Picture>,
    reasons: Reasons,
    /// The payments so far.
    payments: Vec<Happening>,
    happenings: Vec<Happening>,
    promises: Vec<Promise>,
    outputs: Vec<Output>,
    /// All files that can be downloaded; none where there are none yet or none any more.
    files: Option<FilesView>,
    /// Whether the page may change by itself.
    is_live: bool,
    can_end: bool,
    /// Whether it is the visitor's own; no other visitor may change it.
    is_own: bool,
}

/// Why a reservation is where it is.
struct Reasons {
    decision: Vec<String>,
    price_parts: Vec<String>,
    flexibility: String,
}

/// Asks once more.
#[derive(Template)]
#[template(path = "portal/terminate.html")]
struct Confirm {
    frame: Frame,
    id: Uuid,
    name: String,
    /// Whether the visitor is its party.
    is_own: bool,
    stops_work: bool,
    charges: Vec<Payment>,
    credits: Vec<Payment>,
    price: Option<String>,
}

/// A payment that follows.
struct Payment {
    amount: String,
    reason: &'static str,
}

/// The output of a job.
struct Output {
    file: &'static str,
    label: &'static str,
    /// Its beginning.
    text: String,
    /// Whether there is more of it than is shown.
    is_cut: bool,
}

/// GET /portal/agreements/{id}.
pub(in crate::portal) async fn show_agreement_page(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Answer {
    let visitor = session::signed_in(&api, &headers, Some(id)).await?;
    let scope = || scope_of_caller(&visitor.caller);
    let Shown {
        view,
        room,
        watt_hours,
        ..
    } = api.negotiation.show_agreement(scope(), id).await?;
    let (timeline, _) = api.negotiation.timeline(scope(), id).await?;
    let (outputs, files) = read_outputs(&api, &visitor, &view).await?;
    let name = text::name(&view);
    let now = api.negotiation.clock().micros();
    let instant = jiff::Timestamp::from_microsecond(now).unwrap_or_default();
    let explained = ExplanationView::of(&view, &timeline, instant);
    let shown = AgreementPage {
        frame: visitor.frame(name.as_str()),
        standing: text::standing(&view),
        address: view.address(&base_address(&api, &headers)),
        nodes: text::nodes(view.nodes),
        duration: text::duration(view.duration_seconds),
        energy: watt_hours.map(text::kilowatt_hours),
        outcome: outcome_in_words(&view),
        picture: Picture::large((&view, room.as_ref()), &timeline, instant.as_second()),
        reasons: Reasons::of(&explained),
        payments: happenings_of(&timeline, |kind| ["charged", "penalty", "reward"].contains(&kind)),
        happenings: happenings_of(&timeline, |_| true),
        promises: view.guarantees.iter().map(|of| Promise::of(of, &view)).collect(),
        outputs,
        files,
        is_live: !text::is_final(&view),
        can_end: view.state == "Observed",
        is_own: view.party == visitor.caller.party,
        name,
        agreement: view,
    };
    render_page(StatusCode::OK, &shown)
}

fn happenings_of(timeline: &TimelineView, is_shown: impl Fn(&str) -> bool) -> Vec<Happening> {
    let events = timeline.events.iter().filter(|event| is_shown(&event.kind));
    events.map(Happening::of).collect()
}

impl Reasons {
    fn of(explained: &ExplanationView) -> Self {
        let sentence = |text: &String| capitalised(&plain(text));
        Self {
            decision: explained.decision.iter().map(sentence).collect(),
            price_parts: explained
                .price_parts
                .iter()
                .flatten()
                .map(|part| plain(part))
                .collect(),
            flexibility: flexibility_in_words(&explained.flexibility),
        }
    }
}

fn flexibility_in_words(left: &FlexibilityView) -> String {
    let parts = [(left.earlier_seconds, "earlier"), (left.later_seconds, "later")];
    let parts = parts.iter().filter(|(seconds, _)| *seconds > 0);
    let parts: Vec<_> = parts
        .map(|(seconds, direction)| format!("up to {} {direction}", text::duration(*seconds)))
        .collect();
    let why = plain(&left.why);
    if parts.is_empty() {
        format!("It stays where it is: {why}.")
    } else {
        format!("The provider may still move it {}: {why}.", parts.join(" or "))
    }
}

fn outcome_in_words(view: &AgreementView) -> Option<String> {
    let words = match view.outcome.as_deref()? {
        "completed" if view.application.is_none() => "Its time was used to its end",
        "completed" => "Its program ended by itself",
        "failed" => "Its program ended with an error",
        "killed" => "Its program was stopped at the end of its time",
        "terminated" => "It was cancelled while it ran",
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

/// The beginnings of both outputs of a job that has begun, and all its files.
async fn read_outputs(
    api: &Api,
    visitor: &Visitor,
    view: &AgreementView,
) -> Result<(Vec<Output>, Option<FilesView>), Failure> {
    let mut outputs = Vec::new();
    if view.application.is_none() || view.started.is_none() {
        return Ok((outputs, None));
    }
    let scope = || scope_of_caller(&visitor.caller);
    let files = match api.negotiation.outputs(scope(), view.id).await {
        // The agreement is shown even where its files are kept no longer.
        Err(Error::Gone(_)) => return Ok((outputs, None)),
        files => files?,
    };
    for (file, label) in [("stdout", "Output"), ("stderr", "Error output")] {
        let mut output = match api.negotiation.output(scope(), view.id, file).await {
            Err(Error::Gone(_)) => return Ok((Vec::new(), None)),
            output => output?,
        };
        let bytes = output.page().await?;
        let shown = &bytes[..bytes.len().min(SHOWN_MAX)];
        outputs.push(Output {
            file,
            label,
            text: String::from_utf8_lossy(shown).into_owned(),
            is_cut: bytes.len() > SHOWN_MAX,
        });
    }
    Ok((outputs, Some(files)))
}

/// GET /portal/agreements/{id}/files/{name}: an output as plain text, which no browser takes for a page; another file to be kept.
pub(in crate::portal) async fn show_job_output(
    State(api): State<Api>,
    headers: HeaderMap,
    Path((id, name)): Path<(Uuid, String)>,
) -> Answer {
    let visitor = session::signed_in(&api, &headers, Some(id)).await?;
    let output = api
        .negotiation
        .output(scope_of_caller(&visitor.caller), id, &name)
        .await?;
    let body = output_body(output).await?;
    // The use case knows the name: letters, digits, dots and the like.
    let (kind, disposition) = if ["stdout", "stderr"].contains(&name.as_str()) {
        (
            "text/plain; charset=utf-8",
            format!("inline; filename=\"{name}.txt\""),
        )
    } else {
        ("application/octet-stream", attachment(&name))
    };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, body).into_response())
}

fn attachment(file: &str) -> String {
    format!("attachment; filename=\"{file}\"")
}

/// GET /portal/agreements/{id}/document.xml: the same document as the API's.
pub(in crate::portal) async fn get_agreement_document(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Answer {
    let visitor = session::signed_in(&api, &headers, Some(id)).await?;
    let shown = api
        .negotiation
        .show_agreement(scope_of_caller(&visitor.caller), id)
        .await?;
    let headers = [
        (header::CONTENT_TYPE, "application/xml; charset=utf-8".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            attachment(&format!("reservation-{id}.xml")),
        ),
    ];
    Ok((headers, shown.document(None)).into_response())
}

/// GET /portal/agreements/{id}/document.json: the same value as the API's.
pub(in crate::portal) async fn get_agreement_value(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Answer {
    let visitor = session::signed_in(&api, &headers, Some(id)).await?;
    let shown = api
        .negotiation
        .show_agreement(scope_of_caller(&visitor.caller), id)
        .await?;
    let headers = [(
        header::CONTENT_DISPOSITION,
        attachment(&format!("reservation-{id}.json")),
    )];
    Ok((headers, axum::Json(&shown.view)).into_response())
}

/// GET /portal/agreements/{id}/terminate: what the end costs, before it is asked for.
pub(in crate::portal) async fn confirm_termination(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Answer {
    let visitor = session::signed_in(&api, &headers, Some(id)).await?;
    require_writer(&visitor.caller)?;
    let (scope, party) = (scope_of_caller(&visitor.caller), &visitor.caller.party);
    let view = api.negotiation.show_agreement(scope.clone(), id).await?.view;
    let EndingView {
        charges,
        credits,
        stops_work,
    } = api.negotiation.cost_of_ending(scope, id, party).await?;
    let payments = |of: Vec<(&str, _)>| {
        let payment = |(kind, amount): (&str, crate::negotiation::MoneyView)| Payment {
            amount: amount.to_string(),
            reason: title_of_entry(kind),
        };
        of.into_iter().map(payment).collect()
    };
    let name = text::name(&view);
    let confirm = Confirm {
        frame: visitor.frame(format!("Cancel {name}?")),
        id,
        name,
        is_own: view.party == *party,
        stops_work,
        charges: payments(charges),
        credits: payments(credits),
        price: view.price.as_ref().map(ToString::to_string),
    };
    render_page(StatusCode::OK, &confirm)
}

/// POST /portal/agreements/{id}/terminate.
pub(in crate::portal) async fn terminate_agreement(
    State(api): State<Api>,
    Path(id): Path<Uuid>,
    request: Request,
) -> Answer {
    let (visitor, _) = session::read_session_form(&api, request).await?;
    let order = TerminateRequest {
        id,
        input: Input::Xml(Vec::new()),
        by: visitor.caller.party.clone(),
        versions: None,
        key: None,
    };
    api.negotiation
        .terminate_agreement(scope_of_caller(&visitor.caller), order)
        .await?;
    Ok(Redirect::to(&format!("/portal/agreements/{id}")).into_response())
}
