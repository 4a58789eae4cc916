//! What there is to ask for: the applications, the resources as requesters may see them, and the price list.

use wsag::templates::agreement_factory_properties;

use crate::service::views::agreement::TemplateView;
use crate::service::views::discovery::{
    ApplicationView, ApplicationsView, CostView, OfferedResourceView, OfferedResourcesView, PriceListView,
    PricesView,
};
use crate::service::{QuotationView, Service};

/// The applications of the catalogue, in the provider's order.
pub fn list_applications(service: &Service) -> ApplicationsView {
    let catalogue = service.catalogue();
    ApplicationsView {
        applications: catalogue.applications().iter().map(ApplicationView::of).collect(),
    }
}

/// The resources on which something can be placed: what they have, and nothing of how they are used.
pub fn list_offered_resources(service: &Service) -> OfferedResourcesView {
    let resources = service.planner.resources();
    let in_service = resources.iter().filter(|resource| resource.takes_new());
    OfferedResourcesView {
        resources: in_service.map(OfferedResourceView::of).collect(),
    }
}

/// The parts of the price of an offer to a party, by the price list of now; none where nothing is priced.
pub fn cost_of_offer(service: &Service, party: &str, offer: &QuotationView) -> Option<CostView> {
    let templates = service.templates.now();
    CostView::of(templates.pricing()?, party, offer)
}

/// The price list as it is for a party.
pub fn list_prices(service: &Service, party: &str) -> PricesView {
    let templates = service.templates.now();
    let prices = templates.pricing();
    PricesView {
        prices: prices.map(|prices| PriceListView::of(prices, party)),
    }
}

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
pub fn proposed_size(service: &Service) -> (Option<u32>, Option<i32>) {
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
