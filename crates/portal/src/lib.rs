//! The web pages: the functions of the API, for people with a browser. Rendered on the server from view structs. All of them work
//! without a script; the one there is keeps them up to date. A form becomes the same offer as the API's and takes the same way, so that nothing is decided or checked here a second
//! time.
//!
//! Pages are guarded three times. Other sites do not send the session's cookie along. A form brings back a token that only its
//! session knows. And a form is refused where the browser says that another site sent it.

mod calendar;
mod chart;
mod cookies;
mod docs;
mod events;
mod failure;
mod frame;
mod gantt;
mod home;
mod money;
mod negotiation;
mod operator;
mod page;
mod path;
mod period;
mod request;
mod reservation;
mod session;
mod settings;
mod sign_in;
mod text;
mod values;
mod zone;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, any, get};

use api::Pages;
use failure::Failure;
use frame::{Frame, VISITOR, path_of_request};
pub use operator::OPERATOR_PAGES;
use page::{
    guard_page, no_such_method, no_such_page, page_asset, page_attachment, render_page, with_page_headers,
};

/// A page, or why there is none.
type Answer = Result<Response, Failure>;

/// The one style sheet.
const STYLE: &str = include_str!("../../../templates/portal/style.css");

/// The one script.
const SCRIPT: &str = include_str!("../../../templates/portal/live.js");

/// The sign of the pages in a browser's tab.
const ICON: &str = include_str!("../../../templates/portal/icon.svg");

/// The portal's pages, to be served beside the API.
pub fn portal_pages() -> Pages {
    let routes = Router::new()
        .route("/docs", get(docs::show_docs_page))
        .route("/portal", get(home::show_home_page))
        .route("/portal/", form_of("/portal"))
        .merge(asset_routes())
        .route("/portal/events", get(events::stream_events))
        .route(
            "/portal/settings",
            get(settings::show_settings_page).post(settings::change_settings),
        )
        .route("/portal/sign-in", form_of("/portal").post(session::open_session))
        .route("/portal/sign-out", form_of("/portal").post(session::end_session))
        .route(
            "/portal/agreements",
            form_of("/portal").post(home::submit_home_form),
        )
        .route("/portal/agreements/{id}", get(reservation::show_agreement_page))
        .route(
            "/portal/agreements/{id}/files/{name}",
            get(reservation::job_outputs::show_job_output),
        )
        .route(
            "/portal/agreements/{id}/terminate",
            get(reservation::termination::confirm_termination)
                .post(reservation::termination::terminate_agreement),
        )
        .route(
            "/portal/agreements/{id}/change",
            get(reservation::change::show_change_page).post(reservation::change::ask_for_change),
        )
        .route(
            "/portal/agreements/{id}/document.xml",
            get(reservation::get_agreement_document),
        )
        .route(
            "/portal/agreements/{id}/document.json",
            get(reservation::get_agreement_value),
        )
        .merge(own_routes())
        .route(
            "/portal/negotiations",
            get(negotiation::list::show_negotiations_page),
        )
        .route(
            "/portal/negotiations/{id}",
            get(negotiation::show_negotiation_page),
        )
        .route(
            "/portal/negotiations/{id}/counter",
            get(negotiation::answers::show_counter_page),
        )
        .route(
            "/portal/negotiations/{id}/offers",
            form_of("/portal/negotiations").post(negotiation::answers::send_counter_offer),
        )
        .route(
            "/portal/negotiations/{id}/release",
            form_of("/portal/negotiations").post(negotiation::answers::release_negotiation),
        )
        .route(
            "/portal/offers",
            form_of("/portal").post(home::ask_for_offers_from_home),
        )
        .route(
            "/portal/offers/{id}/accept",
            form_of("/portal/negotiations").post(negotiation::answers::accept_held_offer),
        )
        .route(
            "/portal/offers/{id}/reject",
            form_of("/portal/negotiations").post(negotiation::answers::reject_offer),
        )
        .route(
            "/portal/estimate",
            get(request::estimate::show_estimate_page).post(request::estimate::ask_for_estimate),
        )
        .route(
            "/portal/files",
            form_of("/portal")
                .post(request::upload::upload_file)
                .layer(DefaultBodyLimit::disable()),
        )
        .route("/portal/calendar", get(calendar::show_calendar_page))
        .route("/portal/gantt", get(gantt::show_gantt_page))
        .merge(operator::operator_routes())
        .route("/portal/{*path}", any(no_such_page))
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(guard_page));
    Pages {
        routes,
        error: |error| with_page_headers(failure::page_of_request_error(error)),
    }
}

/// What the pages are made with.
fn asset_routes() -> Router<api::Api> {
    Router::new()
        .route(
            "/portal/style.css",
            get(async || page_asset("text/css; charset=utf-8", STYLE)),
        )
        .route(
            "/portal/live.js",
            get(async || page_asset("text/javascript; charset=utf-8", SCRIPT)),
        )
        .route(
            "/portal/icon.svg",
            get(async || page_asset("image/svg+xml", ICON)),
        )
}

/// What a party has: its reservations, their calendar, and its money.
fn own_routes() -> Router<api::Api> {
    Router::new()
        .route(
            "/portal/reservations",
            get(reservation::list::show_reservations_page),
        )
        .route(
            "/portal/calendar-feed",
            form_of("/portal/reservations").post(reservation::calendar_feed::make_feed_address),
        )
        .route(
            "/portal/calendar-feed/{file}",
            get(reservation::calendar_feed::get_calendar_feed),
        )
        .route("/portal/money", get(money::show_money_page))
        .route("/portal/money/export.csv", get(money::export_money_entries))
}

/// The first page of the offers.
const OFFERS: &str = "/portal/negotiations";

/// The parts of the portal: their names, their first pages, and what the addresses of their other pages begin with.
const SECTIONS: [(&str, &str, &[&str]); 5] = [
    ("Calendar", "/portal/calendar", &[]),
    ("Reserve", "/portal", &["/portal/estimate"]),
    ("Offers", OFFERS, &["/portal/negotiations/", "/portal/offers/"]),
    ("Reservations", "/portal/reservations", &["/portal/agreements/"]),
    ("Money", "/portal/money", &["/portal/money/"]),
];

/// The parts for operators alone.
const OPERATOR_SECTIONS: [(&str, &str, &[&str]); 2] = [
    ("Gantt", "/portal/gantt", &[]),
    ("Operate", "/portal/operator", &["/portal/operator/"]),
];

/// Where a form is sent to there is no page: who asks for one is sent to the page with the form.
fn form_of(page: &'static str) -> MethodRouter<api::Api> {
    get(async move || Redirect::to(page))
}

fn redirect_to(page: &str) -> Response {
    Redirect::to(page).into_response()
}
