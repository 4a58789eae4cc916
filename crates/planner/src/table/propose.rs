//! The proposals that the provider makes to a party by itself: another place for its agreement, where this would make room for a
//! refused request, and other places where its agreement could not be kept. The plan suggests them; the negotiation makes offers
//! of them, and nothing moves unless the party accepts one.

use domain::agreement::{
    Agreement, AgreementState, NegotiationInstance, OfferKind, ProposalReason, RunOutcome,
};
use scheduler::{Fraction, Interval, Reason, Request, Time};

use crate::context::{Bargaining, Search, View};
use crate::error::{Error, OfferLoss, Result};
use crate::limits::{budget, quotas};
use crate::placement::{admit, transaction};
use crate::schedules::need::Need;
use crate::table::messages::QuoteOffers;
use crate::table::messages::{Candidate, Quote};
use crate::table::quote::{CandidatePlacement, OwnPrice, coarse_quote_instant, ratio};
use crate::table::suggestion::Suggestion;
use crate::table::{quote, replace};

/// Agreements that are tried elsewhere for a refused one, on this number of resources: each trial is a search of the
/// plan.
const TRIED_MAX: usize = 4;
const RESOURCES_MAX: usize = 2;
/// Refusals in a minute for which that is tried.
const TRIES_PER_MINUTE: u32 = 60;
/// This request comes from no party.
const PROVIDER: &str = "";
/// Why nothing is asked for in a negotiation that the provider has opened.
const TAKE_IT_OR_LEAVE_IT: &str = "the negotiation is the provider's proposal: its offers can be accepted or rejected, and whatever \
                                   else is asked for in another one";

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

/// Looks for another party's agreement that would make room for the refused request if it lay outside its window.
pub(crate) fn suggest_a_move(search: &mut Search<'_>, need: &Need<'_>, reason: Reason) -> Option<Suggestion> {
    let minute = search.now.div_euclid(60_000_000);
    if reason != Reason::NoCapacityInWindow
        || !search
            .table
            .may_propose_a_move(search.settings.proposals.moves_max)
        || search.limits.count_question(PROVIDER, minute) > TRIES_PER_MINUTE
    {
        return None;
    }
    for (at, request) in admit::requests(search.view(), need)
        .into_iter()
        .take(RESOURCES_MAX)
    {
        let numbers = search
            .schedules
            .waiting_in_the_way(at, search.present_second(), &request);
        let others = numbers
            .into_iter()
            .filter_map(|number| Some(search.placement.slot_by_number(search.agreements, number)?.0));
        let may_be_asked = |agreement: &&Agreement| {
            agreement.party != need.payer.party
                && agreement.is_waiting()
                // A move is proposed in one slot, which would be more than slots of differing sizes are.
                && !agreement.slots.differ()
                && search.table.negotiations_about(agreement.id).next().is_none()
        };
        let others: Vec<Agreement> = others.filter(may_be_asked).take(TRIED_MAX).cloned().collect();
        for agreement in others {
            let slot = transaction::suppose_in_transaction(search, |search| {
                replace::lift_replaced_agreement(search, agreement.id).ok()?;
                slot_beside(search, at, &agreement, need, &request)
            });
            if slot.is_some() {
                return Some(Suggestion {
                    agreement,
                    reason: ProposalReason::BetterFit,
                    slot,
                });
            }
        }
    }
    None
}

/// The slot of an agreement that is out of the plan, nearest to its window, if a new request had a place first. It lies
/// at most as far outside as alternatives may lie. The new request has its place afterwards.
fn slot_beside(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    need: &Need<'_>,
    newcomer: &Request,
) -> Option<Interval> {
    let now = search.present_second();
    let resource = search.schedules.get(at)?;
    let window = newcomer.window_at(resource.schedule.now().max(now));
    let tree = resource.schedule.tree();
    let start = tree.earliest_fit(newcomer.nodes, newcomer.duration, window)?;
    let fixed = newcomer.fixed_to(start);
    if !budget::can_payer_pay(search.view(), need.payer, &[(at, fixed)])
        || !search.schedules.put(at, now, newcomer, start)
    {
        return None;
    }
    // Work in pieces is proposed in one piece.
    let (nodes, duration) = (agreement.nodes(), agreement.duration);
    let slack = search.settings.refusals.alternatives_phi.rounded_up(duration);
    // An offered slot must not begin before the offer lapses.
    let soon = now + search.settings.negotiation.hold;
    let last = agreement.latest_end(quotas::horizon_of(search.view(), &agreement.party));
    let before = Interval::new((agreement.ready - slack).max(soon), agreement.deadline.min(last));
    let after = Interval::new(agreement.ready.max(soon), (agreement.deadline + slack).min(last));
    let mut found = Vec::new();
    if let Some(resource) = search.schedules.get(at) {
        let tree = resource.schedule.tree();
        // Told in the provider's steps, away from where it was.
        let earlier = tree.latest_fit(nodes, duration, before);
        let earlier = earlier.map(|start| coarse_quote_instant(start, search.settings.refusals.coarsen));
        found.extend(earlier.filter(|start| {
            let slot = Interval::of(*start, duration);
            before.contains(slot) && tree.min_free(slot) >= nodes
        }));
        let later = tree.earliest_fit(nodes, duration, after);
        let later = later.map(|start| CandidatePlacement {
            window: after,
            ..candidate_in_other_slot(at, agreement, Interval::of(start, duration))
        });
        found.extend(later.and_then(|place| quote::first_tellable_start(search.view(), &place)));
    }
    let slots = found.into_iter().map(|start| {
        let slot = Interval::of(start, duration);
        (seconds_outside_window(agreement, slot), slot)
    });
    let nearest = slots.min_by_key(|(distance, slot)| (*distance, slot.start));
    Some(nearest?.1)
}

/// The possible proposal.
pub(crate) fn quote_proposal(
    search: &mut Search<'_>,
    ask: &QuoteOffers,
    suggestion: &Suggestion,
) -> Result<Quote> {
    let until = search.present_second() + search.settings.negotiation.hold;
    let agreement = &suggestion.agreement;
    let own = OwnPrice {
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
        let mut context = quote::quote_context(search.view(), &ask, until, None);
        context.own = Some(own);
        if ask.proposal.deviation_max.is_none() {
            context.phi_max = f64::INFINITY;
        }
        return Ok(quote::find_offers(search, &context, &mut None).unwrap_or_else(Quote::refused));
    };
    let candidate = transaction::suppose_in_transaction(search, |search| {
        let agreement = replace::lift_replaced_agreement(search, agreement.id)?;
        Ok::<_, Error>(quote_move(search.view(), ask, &agreement, slot, own, until))
    })?;
    let candidate = candidate.ok_or(Error::Lost(OfferLoss::Replaced))?;
    Ok(Quote::of(vec![candidate]))
}

/// The same as it is in another slot of its resource.
fn quote_move(
    view: View<'_>,
    ask: &QuoteOffers,
    agreement: &Agreement,
    slot: Interval,
    own: OwnPrice,
    until: Time,
) -> Option<Candidate> {
    let place = view.schedules.place_of(&agreement.resource);
    let at = place.filter(|_| agreement.is_waiting())?;
    let mut context = quote::quote_context(view, ask, until, Some(agreement));
    context.own = Some(own);
    let candidate = quote::candidate(view, &context, candidate_in_other_slot(at, agreement, slot));
    candidate.filter(|candidate| context.allows(candidate))
}

/// Takes the agreement that a negotiation is to replace out of the plan; none where there is none, or where it could
/// not be kept and its party gets this offer instead.
pub(crate) fn lift_replaced(
    search: &mut Search<'_>,
    instance: &NegotiationInstance,
) -> Result<Option<Agreement>> {
    let replaced = agreement_to_replace(search, instance)?;
    if let Some(agreement) = &replaced {
        replace::take_out(search, agreement);
    }
    Ok(replaced)
}

/// The same agreement, which stays in the plan.
///
/// # Errors
/// [`OfferLoss::Replaced`] where it cannot be replaced any more, [`Error::Unavailable`] where that is not known yet.
pub(crate) fn agreement_to_replace(
    search: &mut Search<'_>,
    instance: &NegotiationInstance,
) -> Result<Option<Agreement>> {
    let lifted = match instance.agreement {
        Some(_) if instance.proposed == Some(ProposalReason::Broken) => Ok(None),
        // Another agreement in its place would know nothing of the job that was lost, and might run beside it.
        Some(id) if search.life.stopping_of(id).is_some() => Err(Error::Lost(OfferLoss::Replaced)),
        Some(id) => replace::liftable_agreement(search, id).map(Some),
        None => Ok(None),
    };
    lifted.map_err(|why| match why {
        Error::Unavailable => why,
        _ => Error::Lost(OfferLoss::Replaced),
    })
}

/// Whether a party may ask for something in a negotiation: not in one in which the provider proposes.
pub(crate) fn check_open_to_proposals(instance: &NegotiationInstance) -> Result<()> {
    match instance.proposed {
        None => Ok(()),
        Some(_) => Err(Error::Stale(TAKE_IT_OR_LEAVE_IT)),
    }
}

/// How far a slot lies outside the window of an agreement, in seconds.
fn seconds_outside_window(agreement: &Agreement, slot: Interval) -> i64 {
    let (before, after) = (agreement.ready - slot.start, slot.end - agreement.deadline);
    before.max(after).max(0)
}

/// An agreement as it is, in another slot.
fn candidate_in_other_slot(at: usize, agreement: &Agreement, slot: Interval) -> CandidatePlacement {
    let kind = match seconds_outside_window(agreement, slot) {
        0 => OfferKind::Exact,
        _ if slot.start < agreement.ready => OfferKind::Earlier,
        _ => OfferKind::Later,
    };
    let how = (
        kind,
        ratio(seconds_outside_window(agreement, slot), slot.duration()),
    );
    CandidatePlacement::new(at, (slot, agreement.nodes()), slot, how)
}

#[cfg(test)]
mod tests;
