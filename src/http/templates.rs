//! The templates that offers are made from.

use super::call::Call;
use super::format::Format;
use super::path::Path;
use super::{Answer, Error};

/// GET /templates: AgreementFactoryProperties.
pub(super) async fn get_templates(call: Call, format: Format) -> Answer {
    Ok(format.answer(&call.negotiation.templates(), || {
        call.negotiation.factory_properties()
    }))
}

/// GET /templates/{id}: Template.
pub(super) async fn get_template(call: Call, format: Format, Path(id): Path<String>) -> Answer {
    let (view, document) = call
        .negotiation
        .template(&id)
        .ok_or_else(|| Error::NotFound(format!("there is no template {id:?}; see /templates")))?;
    Ok(format.answer(&view, || document))
}
