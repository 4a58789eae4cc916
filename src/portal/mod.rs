//! The web pages: the functions of the API, for people with a browser. Rendered on the server from view structs, without any
//! script. A form becomes the same offer as the API's and takes the same way, so that nothing is decided or checked here a second
//! time.
//!
//! Pages are guarded three times. Other sites do not send the session's cookie along. A form brings back a token that only its
//! session knows. And a form is refused where the browser says that another site sent it.

mod agreement;
mod calendar_feed;
mod change;
mod docs;
mod error;
mod fields;
mod form;
mod home;
mod icalendar;
mod money;
mod negotiations;
mod offer;
mod path;
mod picture;
mod reliability;
mod reservations;
mod resources;
mod session;
mod sign_in;
mod text;
mod values;
mod words;

use askama::Template;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{any, get};

use crate::http::{self, Pages};
use error::Failure;

/// A page, or why there is none.
type Answer = Result<Response, Failure>;

/// The one style sheet.
const STYLE: &str = include_str!("../../templates/portal/style.css");

/// The headers of every page. The pages hold no script and load nothing but the style sheet, so that even a string that slipped
/// through unescaped could do nothing. The referrer goes to our own pages only: without any, browsers would also leave out the
/// origin of a form, which is checked.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
    ),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

/// How long a browser may keep the style sheet, in the words of its header.
const STYLE_KEPT: &str = "private, max-age=600";

/// The portal's pages, to be served beside the API.
pub fn pages() -> Pages {
    let routes = Router::new()
        .route("/docs", get(docs::show_docs_page))
        .route("/portal", get(home::show_home_page))
        .route("/portal/", get(redirect_to_home))
        .route("/portal/style.css", get(get_style_sheet))
        .route("/portal/sign-in", get(redirect_to_home).post(session::sign_in))
        .route("/portal/sign-out", get(redirect_to_home).post(session::sign_out))
        .route(
            "/portal/agreements",
            get(redirect_to_home).post(home::submit_offer_form),
        )
        .route("/portal/agreements/{id}", get(agreement::show_agreement_page))
        .route(
            "/portal/agreements/{id}/files/{name}",
            get(agreement::show_job_output),
        )
        .route(
            "/portal/agreements/{id}/terminate",
            get(agreement::confirm_termination).post(agreement::terminate_agreement),
        )
        .route(
            "/portal/agreements/{id}/change",
            get(change::show_change_page).post(change::ask_for_change),
        )
        .route(
            "/portal/agreements/{id}/document.xml",
            get(agreement::get_agreement_document),
        )
        .route(
            "/portal/agreements/{id}/document.json",
            get(agreement::get_agreement_value),
        )
        .merge(own_routes())
        .route("/portal/negotiations", get(negotiations::show_negotiations_page))
        .route(
            "/portal/offers/{id}/accept",
            get(redirect_to_negotiations).post(negotiations::accept_held_offer),
        )
        .route("/portal/resources", get(resources::show_resources_page))
        .route("/portal/reliability", get(reliability::show_reliability_page))
        .route("/portal/{*path}", any(no_such_page))
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(guard_page));
    Pages {
        routes,
        error: error::error_page_with_headers,
    }
}

/// What a party has: its reservations, their calendar, and its money.
fn own_routes() -> Router<http::Api> {
    Router::new()
        .route("/portal/reservations", get(reservations::show_reservations_page))
        .route(
            "/portal/calendar-feed",
            get(redirect_to_reservations).post(calendar_feed::make_feed_address),
        )
        .route("/portal/calendar-feed/{file}", get(calendar_feed::get_calendar))
        .route("/portal/money", get(money::show_money_page))
        .route("/portal/money/export.csv", get(money::export_entries))
}

/// The frame of every page.
struct Frame {
    /// The heading of the browser's window.
    title: String,
    /// The party of the signed-in visitor.
    party: Option<String>,
    /// Whether it is an operator.
    is_operator: bool,
    /// Whether it may change something.
    may_act: bool,
    /// The value that every form brings back; empty where the visitor is not signed in.
    csrf: String,
    /// Seconds after which the browser loads the page again.
    refresh: Option<u32>,
}

impl Frame {
    /// The frame for a visitor without a session, or before the session is known.
    fn outside(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            party: None,
            is_operator: false,
            may_act: false,
            csrf: String::new(),
            refresh: None,
        }
    }
}

/// A page as an answer.
fn render_page(status: StatusCode, template: &impl Template) -> Answer {
    let body = template
        .render()
        .map_err(|why| Failure::internal(format!("a page cannot be rendered: {why}")))?;
    Ok((status, Html(body)).into_response())
}

async fn guard_page(request: Request, next: Next) -> Response {
    with_page_headers(next.run(request).await)
}

fn with_page_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

async fn get_style_sheet() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, STYLE_KEPT),
    ];
    (headers, STYLE).into_response()
}

async fn redirect_to_home() -> Redirect {
    Redirect::to("/portal")
}

async fn redirect_to_reservations() -> Redirect {
    Redirect::to("/portal/reservations")
}

async fn redirect_to_negotiations() -> Redirect {
    Redirect::to("/portal/negotiations")
}

async fn no_such_page() -> Failure {
    Failure::NotFound
}

async fn no_such_method(method: Method) -> Failure {
    Failure::Request(http::Error::MethodNotAllowed(method.to_string()))
}
