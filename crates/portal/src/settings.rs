//! What a visitor may set: the time zone. The browser keeps it.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect};

use super::failure::Failure;
use super::zone::{self, Zone};
use super::{Answer, Frame, render_page, session};
use api::Api;

/// How long the browser keeps the zone, in seconds.
const ZONE_KEPT: u32 = 365 * 86_400;

#[derive(Template)]
#[template(path = "portal/settings.html")]
struct Settings {
    frame: Frame,
    zones: &'static [String],
}

/// GET /portal/settings.
pub(super) async fn show_settings_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    let shown = Settings {
        frame: visitor.frame("Settings"),
        zones: zone::zone_names(),
    };
    render_page(StatusCode::OK, &shown)
}

/// POST /portal/settings: an empty zone is the browser's own, which the script tells again.
pub(super) async fn change_settings(State(api): State<Api>, request: Request) -> Answer {
    let (_, values) = session::read_any_session_form(&api, request).await?;
    let name = values.trimmed("zone");
    let kept = match (name, Zone::named(name)) {
        ("", _) => 0,
        (_, Some(_)) => ZONE_KEPT,
        (_, None) => return Err(Failure::NotFound),
    };
    let cookie = format!(
        "{}={name}; Path=/portal; Max-Age={kept}; SameSite=Strict",
        zone::COOKIE
    );
    let cookie = HeaderValue::from_str(&cookie).map_err(|why| Failure::internal(why.to_string()))?;
    let mut response = Redirect::to("/portal/settings").into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
