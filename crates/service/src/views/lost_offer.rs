//! An offer that cannot be accepted any more.

use planner::OfferLoss;
use wsag::Fragment;
use wsag::negotiations::fresh_negotiation_offers;

use crate::views::offer::OfferView;
use crate::views::worded_offer::{WordedOffer, documents_of_offers, view_offers};

/// An offer that cannot be accepted any more, and the fresh offers in its place.
#[derive(Debug)]
pub struct LostOffer {
    /// Why.
    pub lost: OfferLoss,
    /// The counter offers that it was answered with anew: none where its negotiation is over.
    pub(crate) fresh: Vec<WordedOffer>,
}

impl LostOffer {
    /// Whether its time is over, rather than that something else has become of it.
    pub fn has_expired(&self) -> bool {
        self.lost == OfferLoss::Expired
    }

    /// Whether the service has taken it back.
    pub fn is_withdrawn(&self) -> bool {
        matches!(
            self.lost,
            OfferLoss::Withdrawn
                | OfferLoss::NoApplication
                | OfferLoss::NotReserved
                | OfferLoss::Barred(_)
                | OfferLoss::AtPeer(_)
        )
    }

    /// The fresh offers, as flat values.
    pub fn offers(&self) -> Vec<OfferView> {
        view_offers(&self.fresh)
    }

    /// The fresh offers as `bsp:FreshOffers`, for a fault; none where there are none.
    pub(crate) fn fragment(&self) -> Option<Fragment> {
        (!self.fresh.is_empty()).then(|| fresh_negotiation_offers(&documents_of_offers(&self.fresh)))
    }
}
