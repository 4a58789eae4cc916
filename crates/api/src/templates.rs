//! The templates that offers are made from.

use super::call::Call;
use super::format::Format;
use super::operation::Operation;
use super::path::Path;
use super::routes::Routes;
use super::{Answer, Error};
use service::TemplateView;

/// The routes of templates.
pub(super) fn template_routes() -> Routes {
    Routes::default()
        .get(
            "/templates",
            get_templates,
            Operation::new(
                "listTemplates",
                "discovery",
                "The templates that offers are made from",
            )
            .answers::<Vec<TemplateView>>()
            .xml("", "wsag:AgreementFactoryProperties"),
        )
        .get(
            "/templates/{id}",
            get_template,
            Operation::new("getTemplate", "discovery", "A template")
                .path("id", "The id of the template", "advance-reservation")
                .answers::<TemplateView>()
                .xml("", "wsag:Template"),
        )
}

/// GET /templates: AgreementFactoryProperties.
async fn get_templates(call: Call, format: Format) -> Answer {
    Ok(format.answer(&service::list_templates(&call.service), || {
        service::factory_properties(&call.service)
    }))
}

/// GET /templates/{id}: Template.
async fn get_template(call: Call, format: Format, Path(id): Path<String>) -> Answer {
    let (view, document) = service::show_template(&call.service, &id)
        .ok_or_else(|| Error::NotFound(format!("there is no template {id:?}; see /templates")))?;
    Ok(format.answer(&view, || document))
}
