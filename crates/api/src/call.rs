//! A call of an operation: the use cases, its caller with the caller's rights, and the address that the caller knows the service by.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use super::log::log_caller;
use super::query::read_query_text;
use super::rights::require_writer;
use super::{Answer, Api, Error, METRICS, origin_of_request};
use access::{Caller, Role};
use service::{Scope, Service};

/// A call of an operation by a known caller.
pub(super) struct Call {
    pub(super) service: Arc<Service>,
    pub(super) caller: Caller,
    /// The service's address in the endpoint references of its answer.
    pub(super) base: String,
    /// The address that was asked for.
    uri: Uri,
}

impl Call {
    /// The agreements that the caller may see.
    pub(super) fn scope(&self) -> Scope {
        scope_of_caller(&self.caller)
    }

    /// The agreements of a party that a list is asked for; all that the caller may see where none is named.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for another party than the caller's, unless the caller is an operator.
    pub(super) fn scope_of(&self, party: Option<String>) -> Result<Scope, Error> {
        match (self.scope(), read_query_text("party", party)?) {
            (scope, None) => Ok(scope),
            (Scope::All, Some(party)) => Ok(Scope::Party(party)),
            (Scope::Party(own), Some(party)) if own == party => Ok(Scope::Party(own)),
            (Scope::Party(_), Some(_)) => Err(Error::Forbidden(
                "the role of operators, who see what other parties have",
            )),
        }
    }

    /// The party that is asked for: the caller's where none is named.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for another party than the caller's, unless the caller is an operator.
    pub(super) fn party_of(&self, party: Option<String>) -> Result<String, Error> {
        let scope = self.scope_of(party.or_else(|| Some(self.party().to_owned())))?;
        Ok(scope.party().unwrap_or(self.party()).to_owned())
    }

    /// The use cases, or what they would answer.
    pub(super) fn use_cases(&self, is_dry: bool) -> Arc<Service> {
        if is_dry {
            Arc::new(self.service.dry())
        } else {
            Arc::clone(&self.service)
        }
    }

    /// A page of a list with the address of the next one (RFC 8288), where there is one.
    pub(super) fn paged(&self, mut page: Response, next: Option<impl ToString>) -> Response {
        let Some(next) = next else { return page };
        let asked = form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes());
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(asked.filter(|(name, _)| name != "after"));
        query.append_pair("after", &next.to_string());
        let path = self.uri.path();
        let link = format!("<{}{path}?{}>; rel=\"next\"", self.base, query.finish());
        // A host that is no header's value has not come this far.
        if let Ok(link) = HeaderValue::from_str(&link) {
            page.headers_mut().insert(header::LINK, link);
        }
        page
    }

    /// The caller's party.
    pub(super) fn party(&self) -> &str {
        &self.caller.party
    }
}

impl FromRequestParts<Api> for Call {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Error> {
        // Without a caller no request comes so far.
        let caller = parts.extensions.get::<Caller>().cloned().ok_or(Error::NoKey)?;
        Ok(Self {
            service: use_cases_of_caller(&api.service, &caller),
            caller,
            base: base_address_of_call(api, &parts.headers),
            uri: parts.uri.clone(),
        })
    }
}

/// The address that the client knows the service by, for the endpoint references in documents.
pub fn base_address_of_call(api: &Api, headers: &HeaderMap) -> String {
    if let Some(address) = &api.public_address {
        return address.trim_end_matches('/').to_owned();
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or("localhost");
    format!("{}://{host}", api.scheme)
}

/// The agreements that a caller may see: an operator those of all parties, a consumer its party's. A monitor never comes this
/// far.
pub fn scope_of_caller(caller: &Caller) -> Scope {
    match caller.role {
        Role::Operator => Scope::All,
        Role::Consumer | Role::Monitor => Scope::Party(caller.party.clone()),
    }
}

/// The use cases for a caller: what its key may spend is counted, and an operator's has no bound of agreements and questions.
pub fn use_cases_of_caller(service: &Arc<Service>, caller: &Caller) -> Arc<Service> {
    let mut service = Cow::Borrowed(service);
    if caller.role == Role::Operator {
        service = Cow::Owned(Arc::new(service.unbounded()));
    }
    if let Some(spender) = caller.spender() {
        service = Cow::Owned(Arc::new(service.with_cap(spender)));
    }
    service.into_owned()
}

/// The key of a request, where it has one.
pub(super) fn bearer_of_call(request: &Request) -> Option<&str> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Lets in callers with a key, and tells the handlers which caller it is.
pub(super) async fn authenticate_call(State(api): State<Api>, mut request: Request, next: Next) -> Answer {
    let key = bearer_of_call(&request).ok_or(Error::NoKey)?;
    let caller = {
        // Until its party is known: guesses are work, too.
        let origin = origin_of_request(&request);
        let place = api.places.take_unknown(origin)?;
        let caller = api.access.authenticate(key).await;
        let caller = caller.map_err(service::Error::from)?;
        drop(place);
        if caller.is_none() {
            api.delay_wrong_key(origin).await?;
        }
        caller.ok_or(Error::NoKey)?
    };
    log_caller(&caller);
    if caller.role == Role::Monitor && request.uri().path() != METRICS {
        return Err(Error::Forbidden("a role that may more than read /metrics"));
    }
    if !request.method().is_safe() {
        require_writer(&caller)?;
    }
    let _place = api.places.take_of(&caller.party)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}
