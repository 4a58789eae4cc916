//! Offers are put on the table.

use domain::agreement::{NegotiationOffer, OfferState};
use uuid::Uuid;

use super::{Command, Decision, Initiate};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::life::keep_offers;
use crate::request::{Idempotency, Scope};
use crate::table::messages::OfferWords;
use crate::table::negotiate;
use crate::table::propose::check_open_to_proposals;

/// One step of a negotiation: an offer of the requester is to be stored with the answers to it, of which the Acceptable ones are kept. It
/// opens the negotiation where it says so. The answer is the answers in their new states.
///
/// # Errors
/// The errors of [`Initiate`] where the negotiation is opened. [`Error::NotFound`] where no such negotiation goes on, [`Error::Stale`]
/// where the offer does not fit into its tree, [`Error::Refused`] where that is full, [`Error::Repeated`] where its idempotency key has
/// been used, [`Error::Unavailable`]; nothing is stored then.
#[derive(Debug, Clone)]
pub struct ExchangeOffers {
    /// The negotiation.
    pub negotiation: Uuid,
    /// The opening of the negotiation, where the offer opens it.
    pub opening: Option<Initiate>,
    /// The requester's offer; none where one that is on the table is answered anew.
    pub incoming: Option<OfferWords>,
    /// The answers, the best first.
    pub answers: Vec<OfferWords>,
    /// The state of an answer that was to be Acceptable and cannot be kept.
    pub otherwise: OfferState,
    /// The key that came with the request. The ids of the answers are kept, or the offer's id where there are none.
    pub idempotency: Option<Idempotency<Vec<Uuid>>>,
}

impl Command for ExchangeOffers {
    type Answer = Vec<NegotiationOffer>;

    fn scope(&self) -> Option<Scope> {
        self.idempotency.as_ref().map(Idempotency::scope)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let mut bargain = self;
        decider.check_key_is_new(bargain.idempotency.as_ref())?;
        if let Some(opening) = bargain.opening.take() {
            let id = opening.negotiation.id;
            opening.decide(decider)?;
            let put = keep_offers::put_offers_on_the_table(decider, bargain);
            if put.is_err() {
                negotiate::end_any_negotiation(&mut decider.bargaining(), id)?;
            }
            return put.map(DecisionStep::Done);
        }
        let talks = decider
            .state
            .table
            .get(bargain.negotiation)
            .ok_or(Error::NotFound)?;
        let rejects = |words: &OfferWords| words.offer.state == OfferState::Rejected;
        if !bargain.incoming.as_ref().is_some_and(rejects) {
            check_open_to_proposals(&talks.instance)?;
        }
        keep_offers::put_offers_on_the_table(decider, bargain).map(DecisionStep::Done)
    }
}
