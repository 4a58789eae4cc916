//! The templates that offers are made from.

use axum::extract::State;
use axum::response::Response;

use super::format::Format;
use super::path::Path;
use super::{Api, Error};

/// GET /templates: AgreementFactoryProperties.
pub(super) async fn list(State(api): State<Api>, format: Format) -> Result<Response, Error> {
    Ok(format.answer(&api.negotiation.templates(), || {
        api.negotiation.factory_properties()
    }))
}

/// GET /templates/{id}: Template.
pub(super) async fn show(
    State(api): State<Api>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let (view, document) = api
        .negotiation
        .template(&id)
        .ok_or_else(|| Error::NotFound(format!("there is no template {id:?}; see /templates")))?;
    Ok(format.answer(&view, || document))
}
