//! The templates that are offered, as requesters see them.

use wsag::templates::agreement_factory_properties;

use crate::Service;
use crate::templates::TemplateView;

/// The templates that are offered.
pub fn list_templates(service: &Service) -> Vec<TemplateView> {
    service
        .templates
        .now()
        .all()
        .map(|template| template.view.clone())
        .collect()
}

/// The nodes and the seconds that the template proposes from which forms make their offers: the first, where it does.
pub fn size_proposed_by_templates(service: &Service) -> (Option<u32>, Option<i32>) {
    service
        .templates
        .first()
        .map_or((None, None), |template| template.proposed())
}

/// A template and its document.
pub fn show_template(service: &Service, id: &str) -> Option<(TemplateView, String)> {
    let offered = service.templates.get(id);
    offered.map(|template| (template.view.clone(), template.document.clone()))
}

/// The AgreementFactoryProperties with every template.
pub fn factory_properties(service: &Service) -> String {
    agreement_factory_properties(service.templates.now().all().map(|template| &template.template))
}
