//! The proposals that the provider makes to a party by itself: another place for its agreement, where this would make room for a
//! refused request, and other places where its agreement could not be kept. The plan suggests them; the negotiation makes offers
//! of them, and nothing moves unless the party accepts one.

use domain::agreement::{
    Agreement, AgreementState, NegotiationInstance, OfferKind, ProposalReason, RunOutcome,
};
use scheduler::{Fraction, Interval, Reason, Request, Time};

use crate::commands::QuoteOffers;
use crate::decider::Decider;
use crate::error::{Error, OfferLoss, Result};
use crate::offers::messages::{Candidate, Quote};
use crate::offers::quote::{CandidatePlacement, OwnPrice, coarse_quote_instant, ratio};
use crate::offers::suggestion::Suggestion;
use crate::resources::need::Need;

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

impl Decider<'_> {
    /// Proposes another place instead of an agreement that is about to be over because it could not be kept: its nodes are
    /// out of use, or its work is gone. A party that has ended its agreement gets no proposal.
    pub(crate) fn propose_if_lost(&mut self, agreement: &Agreement) {
        let was_in_force = |old: &Agreement| old.state == AgreementState::Observed;
        let lost = agreement.state.is_final() && agreement.outcome == Some(RunOutcome::Lost);
        if lost && self.plan.agreements.get(agreement.id).is_some_and(was_in_force) {
            self.plan
                .table
                .note_suggestion(Suggestion::instead_of(agreement.clone()));
        }
    }

    /// Looks for another party's agreement that would make room for the refused request if it lay outside its window.
    pub(crate) fn suggest_a_move(&mut self, need: &Need<'_>, reason: Reason) {
        let minute = self.now.div_euclid(60_000_000);
        if reason != Reason::NoCapacityInWindow
            || !self
                .plan
                .table
                .may_propose_a_move(self.settings.proposals.moves_max)
            || self.plan.limits.count_question(PROVIDER, minute) > TRIES_PER_MINUTE
        {
            return;
        }
        for (at, request) in self.requests(need).into_iter().take(RESOURCES_MAX) {
            let numbers = self
                .plan
                .schedules
                .waiting_in_the_way(at, self.present_second(), &request);
            let others = numbers.into_iter().filter_map(|number| {
                Some(
                    self.plan
                        .placement
                        .slot_by_number(&self.plan.agreements, number)?
                        .0,
                )
            });
            let may_be_asked = |agreement: &&Agreement| {
                agreement.party != need.payer.party
                    && agreement.is_waiting()
                    // A move is proposed in one slot, which would be more than slots of differing sizes are.
                    && !agreement.slots.differ()
                    && self.plan.table.negotiations_about(agreement.id).next().is_none()
            };
            let others: Vec<Agreement> = others.filter(may_be_asked).take(TRIED_MAX).cloned().collect();
            for agreement in others {
                let slot = self.suppose_in_transaction(|this| {
                    this.lift_replaced_agreement(agreement.id).ok()?;
                    this.slot_beside(at, &agreement, need, &request)
                });
                if slot.is_some() {
                    self.plan.table.note_suggestion(Suggestion {
                        agreement,
                        reason: ProposalReason::BetterFit,
                        slot,
                    });
                    return;
                }
            }
        }
    }

    /// The slot of an agreement that is out of the plan, nearest to its window, if a new request had a place first. It lies
    /// at most as far outside as alternatives may lie. The new request has its place afterwards.
    fn slot_beside(
        &mut self,
        at: usize,
        agreement: &Agreement,
        need: &Need<'_>,
        newcomer: &Request,
    ) -> Option<Interval> {
        let now = self.present_second();
        let resource = self.plan.schedules.get(at)?;
        let window = newcomer.window_at(resource.schedule.now().max(now));
        let tree = resource.schedule.tree();
        let start = tree.earliest_fit(newcomer.nodes, newcomer.duration, window)?;
        let fixed = newcomer.fixed_to(start);
        if !self.can_payer_pay(need.payer, &[(at, fixed)])
            || !self.plan.schedules.put(at, now, newcomer, start)
        {
            return None;
        }
        // Work in pieces is proposed in one piece.
        let (nodes, duration) = (agreement.nodes(), agreement.duration);
        let slack = self.settings.refusals.alternatives_phi.rounded_up(duration);
        // An offered slot must not begin before the offer lapses.
        let soon = now + self.settings.negotiation.hold;
        let last = agreement.latest_end(self.horizon_of(&agreement.party));
        let before = Interval::new((agreement.ready - slack).max(soon), agreement.deadline.min(last));
        let after = Interval::new(agreement.ready.max(soon), (agreement.deadline + slack).min(last));
        let mut found = Vec::new();
        if let Some(resource) = self.plan.schedules.get(at) {
            let tree = resource.schedule.tree();
            // Told in the provider's steps, away from where it was.
            let earlier = tree.latest_fit(nodes, duration, before);
            let earlier = earlier.map(|start| coarse_quote_instant(start, self.settings.refusals.coarsen));
            found.extend(earlier.filter(|start| {
                let slot = Interval::of(*start, duration);
                before.contains(slot) && tree.min_free(slot) >= nodes
            }));
            let later = tree.earliest_fit(nodes, duration, after);
            let later = later.map(|start| CandidatePlacement {
                window: after,
                ..candidate_in_other_slot(at, agreement, Interval::of(start, duration))
            });
            found.extend(later.and_then(|place| self.first_tellable_start(&place)));
        }
        let slots = found.into_iter().map(|start| {
            let slot = Interval::of(start, duration);
            (seconds_outside_window(agreement, slot), slot)
        });
        let nearest = slots.min_by_key(|(distance, slot)| (*distance, slot.start));
        Some(nearest?.1)
    }

    /// The possible proposal.
    pub(crate) fn quote_proposal(&mut self, ask: &QuoteOffers, suggestion: &Suggestion) -> Result<Quote> {
        let until = self.present_second() + self.settings.negotiation.hold;
        let agreement = &suggestion.agreement;
        let own = OwnPrice {
            before: agreement.price,
            discount: match suggestion.reason {
                ProposalReason::BetterFit => self.settings.proposals.discount,
                ProposalReason::Broken => Fraction::percent(0),
            },
        };
        let Some(slot) = suggestion.slot else {
            // Its party says how far from the agreement it may lie; else it takes any place. It pays no more than was
            // agreed, even if the price list asks for more now.
            let mut ask = ask.clone();
            ask.proposal.budget = None;
            let mut search = self.quote_context(&ask, until, None);
            search.own = Some(own);
            if ask.proposal.deviation_max.is_none() {
                search.phi_max = f64::INFINITY;
            }
            return Ok(self.find_offers(&search).unwrap_or_else(Quote::refused));
        };
        let candidate = self.suppose_in_transaction(|this| {
            let agreement = this.lift_replaced_agreement(agreement.id)?;
            Ok::<_, Error>(this.quote_move(ask, &agreement, slot, own, until))
        })?;
        let candidate = candidate.ok_or(Error::Lost(OfferLoss::Replaced))?;
        Ok(Quote::of(vec![candidate]))
    }

    /// The same as it is in another slot of its resource.
    fn quote_move(
        &self,
        ask: &QuoteOffers,
        agreement: &Agreement,
        slot: Interval,
        own: OwnPrice,
        until: Time,
    ) -> Option<Candidate> {
        let place = self.plan.schedules.place_of(&agreement.resource);
        let at = place.filter(|_| agreement.is_waiting())?;
        let mut search = self.quote_context(ask, until, Some(agreement));
        search.own = Some(own);
        let candidate = self.candidate(&search, candidate_in_other_slot(at, agreement, slot));
        candidate.filter(|candidate| search.allows(candidate))
    }

    /// Takes the agreement that a negotiation is to replace out of the plan; none where there is none, or where it could
    /// not be kept and its party gets this offer instead.
    pub(crate) fn lift_replaced(&mut self, instance: &NegotiationInstance) -> Result<Option<Agreement>> {
        let replaced = self.agreement_to_replace(instance)?;
        if let Some(agreement) = &replaced {
            self.take_out(agreement);
        }
        Ok(replaced)
    }

    /// The same agreement, which stays in the plan.
    ///
    /// # Errors
    /// [`OfferLoss::Replaced`] where it cannot be replaced any more, [`Error::Unavailable`] where that is not known yet.
    pub(crate) fn agreement_to_replace(
        &mut self,
        instance: &NegotiationInstance,
    ) -> Result<Option<Agreement>> {
        let lifted = match instance.agreement {
            Some(_) if instance.proposed == Some(ProposalReason::Broken) => Ok(None),
            // Another agreement in its place would know nothing of the job that was lost, and might run beside it.
            Some(id) if self.plan.life.stopping_of(id).is_some() => Err(Error::Lost(OfferLoss::Replaced)),
            Some(id) => self.liftable_agreement(id).map(Some),
            None => Ok(None),
        };
        lifted.map_err(|why| match why {
            Error::Unavailable => why,
            _ => Error::Lost(OfferLoss::Replaced),
        })
    }
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
