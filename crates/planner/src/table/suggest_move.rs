//! A move that would let a request in that was refused is suggested for a proposal to its party.

use domain::agreement::{Agreement, ProposalReason};
use scheduler::{Interval, Reason, Request};

use crate::context::Search;
use crate::limits::quotas;
use crate::placement::{choice, trial};
use crate::prices::budgets;
use crate::schedules::need::Need;
use crate::table::candidates::{CandidatePlacement, coarse_candidate_instant};
use crate::table::suggestion::Suggestion;
use crate::table::{candidates, replace};

/// The name under which questions of the provider itself are counted.
const PROVIDER: &str = "";
/// Agreements that are tried elsewhere for a refused one, on this number of resources: each trial is a search of the
/// plan.
const TRIED_MAX: usize = 4;

pub(crate) const RESOURCES_MAX: usize = 2;

/// Refusals in a minute for which that is tried.
const TRIES_PER_MINUTE: u32 = 60;

/// Looks for another party's agreement that would make room for the refused request if it lay outside its window.
pub(crate) fn suggest_a_move(search: &mut Search<'_>, need: &Need<'_>, reason: Reason) -> Option<Suggestion> {
    let minute = search.now.div_euclid(60_000_000);
    if reason != Reason::NoCapacityInWindow
        || !search
            .table
            .may_suggest_a_move(search.settings.proposals.moves_max)
        || search.limits.count_question(PROVIDER, minute) > TRIES_PER_MINUTE
    {
        return None;
    }
    for (at, request) in choice::requests(search.view(), need)
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
            let slot = trial::suppose_in_trial(search, |search| {
                replace::lift_replaced_agreement(search, agreement.id).ok()?;
                slot_of_suggested_move(search, at, &agreement, need, &request)
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
fn slot_of_suggested_move(
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
    if !budgets::can_budget_pay(search.view(), need.payer, &[(at, fixed)])
        || !search.schedules.put(at, now, newcomer, start)
    {
        return None;
    }
    // Work in pieces is proposed in one piece.
    let (nodes, duration) = (agreement.nodes(), agreement.duration);
    let slack = search.settings.refusals.alternatives_phi.rounded_up(duration);
    // An offered slot must not begin before the offer lapses.
    let soon = now + search.settings.negotiation.hold;
    let last = agreement.latest_end(quotas::quota_horizon_of(search.view(), &agreement.party));
    let before = Interval::new((agreement.ready - slack).max(soon), agreement.deadline.min(last));
    let after = Interval::new(agreement.ready.max(soon), (agreement.deadline + slack).min(last));
    let mut found = Vec::new();
    if let Some(resource) = search.schedules.get(at) {
        let tree = resource.schedule.tree();
        // Told in the provider's steps, away from where it was.
        let earlier = tree.latest_fit(nodes, duration, before);
        let earlier = earlier.map(|start| coarse_candidate_instant(start, search.settings.refusals.coarsen));
        found.extend(earlier.filter(|start| {
            let slot = Interval::of(*start, duration);
            before.contains(slot) && tree.min_free(slot) >= nodes
        }));
        let later = tree.earliest_fit(nodes, duration, after);
        let later = later.map(|start| CandidatePlacement {
            window: after,
            ..candidates::candidate_in_other_slot(at, agreement, Interval::of(start, duration))
        });
        found.extend(
            later.and_then(|place| candidates::first_tellable_candidate_start(search.view(), &place)),
        );
    }
    let slots = found.into_iter().map(|start| {
        let slot = Interval::of(start, duration);
        (candidates::candidate_seconds_outside(agreement, slot), slot)
    });
    let nearest = slots.min_by_key(|(distance, slot)| (*distance, slot.start));
    Some(nearest?.1)
}
