//! The possible offers for a request are told.

use domain::agreement::Shape;

use super::{Command, Decision, Outcome};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::offers::messages::{OfferOrigin, Quote, Weights};
use crate::offers::propose::check_open_to_proposals;
use crate::offers::quote::QuoteContext;
use crate::request::Request;

/// The possible offers for a request are to be told at present. Nothing is stored or kept.
///
/// # Errors
/// [`Error::NotFound`] where no such negotiation goes on, [`Error::Lost`] where the agreement that it is to replace has begun or is
/// over, [`Error::Unavailable`].
#[derive(Debug, Clone)]
pub struct QuoteOffers {
    /// Its party.
    pub about: OfferOrigin,
    /// The request.
    pub proposal: Request,
    /// Where the duration follows from the number of nodes: other sizes than the requested ones, each with its duration,
    /// in the form of the proposal's sizes. `None` where one size is as it is.
    pub others: Option<Vec<Shape>>,
    /// The weights in the ranking of counter offers.
    pub weights: Weights,
}

impl Command for QuoteOffers {
    type Answer = Quote;

    const COUNTED_AS: Option<&'static str> = Some("quote");

    fn outcome(quote: &Quote) -> Outcome<'_> {
        match &quote.refusal {
            Some(refusal) => Outcome::Refused(Some(refusal)),
            None => Outcome::Granted,
        }
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let latest = decider.horizon_of(&self.proposal.party);
        let refused = |refusal| {
            let quote = Quote::refused(refusal);
            Ok(DecisionStep::Done(Quote { latest, ..quote }))
        };
        let instance = match &self.about {
            OfferOrigin::Negotiation(negotiation) => {
                let talks = decider.plan.table.get(*negotiation).ok_or(Error::NotFound)?;
                talks.instance.clone()
            }
            OfferOrigin::Opening(instance) => {
                decider.check_opening(instance)?;
                (**instance).clone()
            }
            OfferOrigin::Proposal(suggestion) => {
                let proposed = decider.quote_proposal(&self, suggestion)?;
                return Ok(DecisionStep::Done(Quote { latest, ..proposed }));
            }
        };
        check_open_to_proposals(&instance)?;
        if let Err(refusal) = decider.count_quota_question(&instance.party) {
            return refused(refusal);
        }
        // It could accept none of the offers.
        if instance.agreement.is_none()
            && let Err(refusal) = decider.check_agreements_quota(&instance.party, None)
        {
            return refused(refusal);
        }
        let quote = decider.suppose_in_transaction(|this| {
            let replaced = this.lift_replaced(&instance)?;
            // Of all offers for a change of it one can be taken.
            if let Some(choice) = instance.changed_agreement() {
                this.vacate_hold(choice);
            }
            if let Some(old) = replaced
                .as_ref()
                .filter(|agreement| agreement.is_being_carried_out())
            {
                return this.quote_begun(&self, instance.expires, old);
            }
            let until = (this.present_second() + this.settings.negotiation.hold).min(instance.expires);
            let rebooking = replaced
                .as_ref()
                .and_then(|replaced| this.cheapest_rebooking(replaced));
            let search = QuoteContext {
                rebooking,
                ..this.quote_context(&self, until, replaced.as_ref())
            };
            Ok(this.find_offers(&search))
        });
        let quote = quote?.unwrap_or_else(Quote::refused);
        Ok(DecisionStep::Done(Quote { latest, ..quote }))
    }
}
