//! The possible offers for a request are told.

use super::{Command, Decision, Outcome};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::limits::quotas;
use crate::placement::trial;
use crate::table::candidates::{CandidateContext, OfferOrigin};
use crate::table::negotiations::check_negotiation_takes_proposals;
use crate::table::quote::Quote;
use crate::table::{candidates, change_end, fees, holds, negotiations, propose, quote, replace};

pub use crate::table::candidates::QuoteOffers;

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
        let latest = quotas::quota_horizon_of(decider.view(), &self.proposal.party);
        let refused = |refusal| {
            let quote = Quote::refused(refusal);
            Ok(DecisionStep::Done(Quote { latest, ..quote }))
        };
        let instance = match &self.about {
            OfferOrigin::Negotiation(negotiation) => {
                let talks = decider.state.table.get(*negotiation).ok_or(Error::NotFound)?;
                talks.instance.clone()
            }
            OfferOrigin::Opening(instance) => {
                negotiations::check_opening_of_negotiation(decider.view(), instance)?;
                (**instance).clone()
            }
            OfferOrigin::Proposal(suggestion) => {
                let proposed = propose::quote_proposal(&mut decider.search(), &self, suggestion)?;
                return Ok(DecisionStep::Done(Quote { latest, ..proposed }));
            }
        };
        check_negotiation_takes_proposals(&instance)?;
        if let Err(refusal) = quotas::count_quota_question(&mut decider.search(), &instance.party) {
            return refused(refusal);
        }
        // It could accept none of the offers.
        if instance.agreement.is_none()
            && let Err(refusal) = quotas::check_agreements_quota(decider.view(), &instance.party, None)
        {
            return refused(refusal);
        }
        let mut suggestion = None;
        let quote = trial::suppose_in_trial(&mut decider.search(), |search| {
            let replaced = replace::lift_replaced(search, &instance)?;
            // Of all offers for a change of it one can be taken.
            if let Some(choice) = instance.changed_agreement() {
                holds::vacate_hold(search, choice);
            }
            if let Some(old) = replaced
                .as_ref()
                .filter(|agreement| agreement.is_being_carried_out())
            {
                return change_end::quote_other_end_of_begun(search, &self, instance.expires, old);
            }
            let until = (search.present_second() + search.settings.negotiation.hold).min(instance.expires);
            let rebooking = replaced
                .as_ref()
                .and_then(|replaced| fees::cheapest_rebooking_for_fee(search, replaced));
            let context = CandidateContext {
                rebooking,
                ..candidates::candidate_context(search.view(), &self, until, replaced.as_ref())
            };
            Ok(quote::quote_request(search, &context, &mut suggestion))
        });
        if let Some(suggestion) = suggestion {
            decider.state.table.note_suggestion(suggestion);
        }
        let quote = quote?.unwrap_or_else(Quote::refused);
        Ok(DecisionStep::Done(Quote { latest, ..quote }))
    }
}
