//! What there is to ask for: the applications, the resources as requesters may see them, and the price list.

use crate::service::views::discovery::{
    ApplicationView, ApplicationsView, CostView, OfferedResourceView, OfferedResourcesView, PriceListView,
    PricesView,
};
use crate::service::{QuotationView, Service};

impl Service {
    /// The applications of the catalogue, in the provider's order.
    pub fn applications(&self) -> ApplicationsView {
        let catalogue = self.catalogue();
        ApplicationsView {
            applications: catalogue.applications().iter().map(ApplicationView::of).collect(),
        }
    }

    /// The resources on which something can be placed: what they have, and nothing of how they are used.
    pub fn offered_resources(&self) -> OfferedResourcesView {
        let resources = self.planner.resources();
        let in_service = resources.iter().filter(|resource| resource.takes_new());
        OfferedResourcesView {
            resources: in_service.map(OfferedResourceView::of).collect(),
        }
    }

    /// The parts of the price of an offer to a party, by the price list of now; none where nothing is priced.
    pub fn cost_of_offer(&self, party: &str, offer: &QuotationView) -> Option<CostView> {
        let templates = self.templates.now();
        CostView::of(templates.pricing()?, party, offer)
    }

    /// The price list as it is for a party.
    pub fn prices(&self, party: &str) -> PricesView {
        let templates = self.templates.now();
        let prices = templates.pricing();
        PricesView {
            prices: prices.map(|prices| PriceListView::of(prices, party)),
        }
    }
}
