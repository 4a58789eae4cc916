//! A call of an operation: the use cases, its caller, and the address that the caller knows the service by.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::{Api, Error, scope};
use crate::access::Caller;
use crate::negotiation::{Negotiation, Scope};

/// A call of an operation by a known caller.
pub(super) struct Call {
    pub(super) negotiation: Arc<Negotiation>,
    pub(super) caller: Caller,
    /// The service's address in the endpoint references of its answer.
    pub(super) base: String,
}

impl Call {
    /// The agreements that the caller may see.
    pub(super) fn scope(&self) -> Scope {
        scope(&self.caller)
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
            negotiation: Arc::clone(&api.negotiation),
            caller,
            base: base_address(api, &parts.headers),
        })
    }
}

/// The address that the client knows the service by, for the endpoint references in documents.
pub(crate) fn base_address(api: &Api, headers: &HeaderMap) -> String {
    if let Some(address) = &api.public_address {
        return address.trim_end_matches('/').to_owned();
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or("localhost");
    format!("{}://{host}", api.scheme)
}
