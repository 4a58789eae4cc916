//! Signing in and out, and the sender of a request.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Redirect;
use domain::clock::MICROS_PER_SECOND;
use uuid::Uuid;

use super::Answer;
use super::Frame;
use super::cookies::{cookie_of_request, name_of_session_cookie, with_session_cookie};
use super::failure::Failure;
use super::request::field_names;
use super::request::filled_form::form_address;
use super::sign_in::SignIn;
use super::values::Values;
use super::zone::Zone;
use access::{Caller, Role, SESSION_LASTS, Secret};
use api::{Api, RequestPlace, base_address_of_call, body_of, log_caller, origin_of_request, require_writer};

/// A signed-in visitor.
pub(super) struct Visitor {
    /// The visitor's identity.
    pub(super) caller: Caller,
    /// Its reservations for which the provider proposes another place at the moment.
    pub(super) proposed: Vec<Uuid>,
    csrf: Secret,
    /// The place of its request among those of its party, which is kept while it is answered.
    _place: Option<RequestPlace>,
}

impl Visitor {
    /// Lets a form pass that brings back the token of this session, of a visitor that may change something.
    ///
    /// # Errors
    /// [`Failure::Forged`], and that the key is for reading only.
    pub(super) fn check_form(&self, values: &Values) -> Result<(), Failure> {
        if !self.csrf.matches(values.get("csrf")) {
            return Err(Failure::Forged);
        }
        Ok(require_writer(&self.caller)?)
    }

    /// Around a page for this visitor.
    pub(super) fn frame(&self, title: impl Into<String>) -> Frame {
        Frame {
            title: title.into(),
            party: Some(self.caller.party.clone()),
            is_operator: self.caller.role == Role::Operator,
            may_act: !self.caller.limits.read_only,
            csrf: self.csrf.expose().to_owned(),
            zone: Zone::present(),
            path: super::path_of_request(),
            proposals: self.proposed.len(),
        }
    }
}

/// The sender of a request, if signed in.
pub(super) async fn visitor_of_request(api: &Api, headers: &HeaderMap) -> Result<Option<Visitor>, Failure> {
    let Some(cookie) = cookie_of_request(
        headers,
        name_of_session_cookie(&base_address_of_call(api, headers)),
    ) else {
        return Ok(None);
    };
    let session = api.access.session(cookie).await.map_err(service::Error::from)?;
    let Some((caller, csrf)) = session else {
        return Ok(None);
    };
    log_caller(&caller);
    let proposed = service::proposals_to(&api.service, &caller.party).await?;
    let visitor = Visitor {
        caller,
        proposed,
        csrf,
        _place: None,
    };
    note_visitor(&visitor);
    Ok(Some(visitor))
}

/// The visitor that is signed in, with a place among the requests of its party that are answered at a time.
///
/// # Errors
/// [`Failure::SignedOut`] where nobody is, to come back to this page or to the agreement `back`; that the party has no place left; those of
/// [`visitor_of_request`].
pub(super) async fn visitor_of_session(
    api: &Api,
    headers: &HeaderMap,
    back: Option<Uuid>,
) -> Result<Visitor, Failure> {
    let visitor = visitor_of_request(api, headers).await?.ok_or_else(|| {
        let agreement = back.map(|id| format!("/portal/agreements/{id}"));
        Failure::SignedOut(Some(agreement.unwrap_or_else(super::path_of_request)))
    })?;
    Ok(Visitor {
        _place: Some(api.places.take_of(&visitor.caller.party)?),
        ..visitor
    })
}

/// The sender of a form that changes something, and its values. Only a form that our own page has sent for this session counts.
pub(super) async fn read_session_form(api: &Api, request: Request) -> Result<(Visitor, Values), Failure> {
    let (visitor, values) = read_any_session_form(api, request).await?;
    require_writer(&visitor.caller)?;
    Ok((visitor, values))
}

/// The sender of a form that our own page may have sent: its token is still to be checked.
///
/// # Errors
/// [`Failure::Forged`] where another site has sent it; those of [`visitor_of_session`].
pub(super) async fn sender_of_session_form(api: &Api, headers: &HeaderMap) -> Result<Visitor, Failure> {
    if is_from_other_site(headers, &base_address_of_call(api, headers)) {
        return Err(Failure::Forged);
    }
    // The address of a form's answer is no page to come back to.
    visitor_of_session(api, headers, None)
        .await
        .map_err(|why| match why {
            Failure::SignedOut(_) => Failure::SignedOut(None),
            other => other,
        })
}

/// The sender of a form that changes nothing but the session, and its values.
pub(super) async fn read_any_session_form(api: &Api, request: Request) -> Result<(Visitor, Values), Failure> {
    let visitor = match sender_of_session_form(api, request.headers()).await {
        // The form is filled in again after the visitor has signed in.
        Err(Failure::SignedOut(_)) => {
            let _place = api.places.take_sign_in(origin_of_request(&request))?;
            let values = Values::read(&body_of(api, request).await?);
            let form = values
                .has(field_names::APPLICATION)
                .then(|| form_address(&values));
            return Err(Failure::SignedOut(form));
        }
        visitor => visitor?,
    };
    let values = Values::read(&body_of(api, request).await?);
    if !visitor.csrf.matches(values.get("csrf")) {
        return Err(Failure::Forged);
    }
    Ok((visitor, values))
}

/// Keeps the frame for the visitor of the request, for the page of an error.
fn note_visitor(visitor: &Visitor) {
    // Outside of a request, or for the second time, there is nothing to keep.
    drop(super::VISITOR.try_with(|known| known.set(visitor.frame(""))));
}

/// POST /portal/sign-in.
pub(super) async fn open_session(State(api): State<Api>, request: Request) -> Answer {
    let base = base_address_of_call(&api, request.headers());
    if is_from_other_site(request.headers(), &base) {
        return Err(Failure::Forged);
    }
    // The party is not known yet.
    let origin = origin_of_request(&request);
    let place = api.places.take_sign_in(origin)?;
    let values = Values::read(&body_of(&api, request).await?);
    drop(place);
    let back = Some(values.get("back"))
        .filter(|address| is_own_page(address))
        .map(str::to_owned);
    let address = origin.map_or_else(|| "an unknown address".to_owned(), |origin| origin.to_string());
    // The session has its line before the visitor has the cookie.
    let Some(session) = api.access.sign_in(values.trimmed("key"), &address).await? else {
        service::count_failed_sign_in(&api.service, address);
        api.delay_wrong_key(origin).await?;
        let error = "This key is not valid. It may have been mistyped, have expired, or have been revoked.";
        return Ok(SignIn::answer(StatusCode::UNAUTHORIZED, Some(error), back));
    };
    let to = back.unwrap_or_else(|| "/portal".to_owned());
    let lasts = SESSION_LASTS / MICROS_PER_SECOND;
    Ok(with_session_cookie(
        &base,
        session.cookie.expose(),
        lasts,
        Redirect::to(&to),
    ))
}

/// POST /portal/sign-out.
pub(super) async fn end_session(State(api): State<Api>, request: Request) -> Answer {
    let base = base_address_of_call(&api, request.headers());
    let headers = request.headers().clone();
    match read_any_session_form(&api, request).await {
        // A visitor without a session is signed out already.
        Ok(_) | Err(Failure::SignedOut(_)) => {}
        Err(why) => return Err(why),
    }
    if let Some(cookie) = cookie_of_request(&headers, name_of_session_cookie(&base)) {
        api.access.sign_out(cookie).await.map_err(service::Error::from)?;
    }
    Ok(with_session_cookie(&base, "", 0, Redirect::to("/portal")))
}

/// Whether an address is one of our pages: a path and a query, as a header can have them.
fn is_own_page(address: &str) -> bool {
    let rest = address.strip_prefix("/portal");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        && address.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a browser says that a page of another site has sent this. Programs and old browsers say nothing. Our own
/// site is the one that the request names, or the one that a proxy in between makes of the public address.
fn is_from_other_site(headers: &HeaderMap, base: &str) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site != "same-origin" && site != "none";
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let host = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
        .map(|(_, host)| host);
    let is_named = host.is_some_and(|host| headers.get(header::HOST).is_some_and(|named| named == host));
    origin != base && !is_named
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn one_goes_back_to_our_own_pages_alone() {
        for address in ["/portal", "/portal?nodes=2", "/portal/agreements/1"] {
            assert!(is_own_page(address), "{address}");
        }
        for address in [
            "",
            "//elsewhere",
            "/portals",
            "/portal\\x",
            "/portal/a b",
            "/portal/\r\nset-cookie: a",
            "https://elsewhere",
        ] {
            assert!(!is_own_page(address), "{address:?}");
        }
    }

    #[test]
    fn a_form_of_another_site_is_known_by_what_the_browser_says() {
        for (pairs, elsewhere) in [
            (&[][..], false),
            (&[("sec-fetch-site", "same-origin")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "same-site")], true),
            (&[("origin", "http://here:8080")], false),
            (&[("origin", "http://here:8081")], true),
            (&[("origin", "https://here:8080")], true),
            (&[("origin", "null")], true),
            (&[("origin", "http://there:9090"), ("host", "there:9090")], false),
            (&[("origin", "http://evil.example"), ("host", "there:9090")], true),
            (&[("origin", "there:9090"), ("host", "there:9090")], true),
        ] {
            assert_eq!(
                is_from_other_site(&headers(pairs), "http://here:8080"),
                elsewhere,
                "{pairs:?}"
            );
        }
    }
}
