//! The proposals that the provider makes to a party by itself: another place for its agreement, where this would make room for a
//! refused request, and other places where its agreement could not be kept. The plan suggests them; the negotiation makes offers
//! of them, and nothing moves unless the party accepts one.

use domain::agreement::{Agreement, AgreementState, ProposalReason, RunOutcome};
use scheduler::{Fraction, Interval, Time};

use crate::context::{Bargaining, Search, View};
use crate::error::{Error, OfferLoss, Result};
use crate::placement::trial;
use crate::prices::payer::Payer;
use crate::table::candidates::{Candidate, CandidatePrice, QuoteOffers};
use crate::table::quote::Quote;
use crate::table::suggestion::Suggestion;
use crate::table::{candidates, quote, replace};

/// Proposes another place instead of an agreement that is about to be over because it could not be kept: its nodes are
/// out of use, or its work is gone. A party that has ended its agreement gets no proposal.
pub(crate) fn propose_if_lost(bargaining: &mut Bargaining<'_>, agreement: &Agreement) {
    let was_in_force = |old: &Agreement| old.state == AgreementState::Observed;
    let lost = agreement.state.is_final() && agreement.outcome == Some(RunOutcome::Lost);
    if lost && bargaining.agreements.get(agreement.id).is_some_and(was_in_force) {
        bargaining
            .table
            .note_suggestion(Suggestion::instead_of(agreement.clone()));
    }
}

/// The possible proposal.
pub(crate) fn quote_proposal(
    search: &mut Search<'_>,
    ask: &QuoteOffers,
    suggestion: &Suggestion,
) -> Result<Quote> {
    let until = search.present_second() + search.settings.negotiation.hold;
    let agreement = &suggestion.agreement;
    let own = CandidatePrice {
        before: agreement.price,
        discount: match suggestion.reason {
            ProposalReason::BetterFit => search.settings.proposals.discount,
            ProposalReason::Broken => Fraction::percent(0),
        },
    };
    let Some(slot) = suggestion.slot else {
        // Its party says how far from the agreement it may lie; else it takes any place. It pays no more than was
        // agreed, even if the price list asks for more now.
        let mut ask = ask.clone();
        ask.proposal.budget = None;
        let mut context = candidates::candidate_context(search.view(), &ask, until, None);
        context.own = Some(own);
        if ask.proposal.deviation_max.is_none() {
            context.phi_max = f64::INFINITY;
        }
        return Ok(quote::quote_request(search, &context, &mut None).unwrap_or_else(Quote::refused));
    };
    let candidate = trial::suppose_in_trial(search, |search| {
        let agreement = replace::lift_replaced_agreement(search, agreement.id)?;
        Ok::<_, Error>(quote_proposed_move(
            search.view(),
            ask,
            &agreement,
            slot,
            own,
            until,
        ))
    })?;
    let candidate = candidate.ok_or(Error::Lost(OfferLoss::Replaced))?;
    Ok(Quote::of(vec![candidate]))
}

/// What could be proposed for an agreement in another slot of its resource.
fn quote_proposed_move(
    view: View<'_>,
    ask: &QuoteOffers,
    agreement: &Agreement,
    slot: Interval,
    own: CandidatePrice,
    until: Time,
) -> Option<Candidate> {
    let place = view.schedules.place_of(&agreement.resource);
    let at = place.filter(|_| agreement.is_waiting())?;
    let mut context = candidates::candidate_context(view, ask, until, Some(agreement));
    context.own = Some(own);
    let candidate = candidates::candidate(
        view,
        &context,
        Payer::of(&ask.proposal),
        candidates::candidate_in_other_slot(at, agreement, slot),
    );
    candidate.filter(|candidate| context.allows(candidate))
}

#[cfg(test)]
mod tests;
