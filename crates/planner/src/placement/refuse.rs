//! Refusals: the reason why an offer has no place, and its alternatives.
//!
//! A requester learns of its own possibilities only. The agreements in the way are not shown. A provider that does not
//! want to show how busy it is can show less, or nothing.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use domain::agreement::{BarredResource, Money, Spender};
use scheduler::alternatives::AlternativeLimits;
use scheduler::refusal::{Bounds, Relaxation};
use scheduler::{Interval, Reason, Time, counted};

use crate::context::{Search, View};
use crate::limits::{quotas, share, spending, window};
use crate::placement::{anew, choice, eligible_resources};
use crate::prices::budgets;
use crate::refusal::{AlternativeSlot, Refusal, bare_refusal};
use crate::schedules::need::Need;
use crate::schedules::needed_sizes::able_needed_sizes;

/// The most alternatives that a refusal names: a list that a person can choose from.
const ALTERNATIVES_MAX: usize = 6;

/// The refusal of an offer that no resource takes, without a search for anything else.
pub(crate) fn refuse_briefly(search: &mut Search<'_>, need: &Need<'_>, reason: Reason) -> Refusal {
    let cut_short = reason == Reason::NoCapacityInWindow && search.schedules.is_cut_short();
    let is_missing = matches!(reason, Reason::ResourceNotOffered | Reason::SizeExceedsCapacity);
    let frozen = eligible_resources::ineligible_as_frozen_in_words(search.view(), |each| {
        let mut able = able_needed_sizes(each, &need.shapes, need.filters, need.barred);
        able.next().is_some()
    });
    let closed = eligible_resources::ineligible_as_closed_in_words(search.view()).or(frozen);
    let closed = closed.filter(|_| is_missing);
    let barred = refused_as_barred_in_words(need.barred);
    let binding = closed.or_else(|| barred.clone().filter(|_| is_missing));
    let mut binding = binding.unwrap_or_else(|| match reason {
        Reason::NoCapacityInWindow => refused_without_room_in_words(need, cut_short),
        Reason::ResourceNotOffered => window::unmet_condition_in_words(search.view(), need.filters),
        Reason::SizeExceedsCapacity => "no resource with what is asked for has so many nodes".to_owned(),
        _ => "the window is too short on every resource that has the nodes".to_owned(),
    });
    if let Some(barred) = barred.filter(|barred| *barred != binding) {
        binding += &format!("; {barred}");
    }
    Refusal {
        cut_short,
        ..bare_refusal(reason, binding)
    }
}

/// The refusal of an offer that no resource takes.
pub(crate) fn make_refusal(search: &mut Search<'_>, need: &Need<'_>, reason: Reason) -> Refusal {
    let briefly = refuse_briefly(search, need, reason);
    if reason != Reason::NoCapacityInWindow {
        return briefly;
    }
    let requests = choice::requests(search.view(), need);
    // The search for alternatives has the budget of work of a decision of its own.
    search.schedules.share_work(requests.len());
    let refusal = refuse_with_advice(search, need, briefly, &requests);
    search.schedules.share_work(1);
    refusal
}

/// The refusal of an offer that has no room, with its alternatives.
fn refuse_with_advice(
    search: &mut Search<'_>,
    need: &Need<'_>,
    briefly: Refusal,
    requests: &[(usize, scheduler::Request)],
) -> Refusal {
    let (payer, to_pay) = (need.payer, choice::choices_to_pay(search.view(), need));
    let lowest = budgets::lowest_budget(search.view(), payer, &to_pay);
    if lowest.is_some() || !budgets::can_budget_pay(search.view(), payer, &to_pay) {
        return refuse_too_dear(search, need, lowest, requests);
    }
    Refusal {
        alternatives: alternatives_to_refused(search, need, requests),
        relaxations: relaxations_of_refused(search.view(), need, requests),
        ..briefly
    }
}

/// Whether the price alone keeps an offer without room from a place.
fn is_refused_as_too_dear(view: View<'_>, need: &Need<'_>) -> bool {
    let to_pay = choice::choices_to_pay(view, need);
    budgets::lowest_budget(view, need.payer, &to_pay).is_some()
        || !budgets::can_budget_pay(view, need.payer, &to_pay)
}

/// The refusal of an offer with a budget that is too low for all of its possible places.
fn refuse_too_dear(
    search: &mut Search<'_>,
    need: &Need<'_>,
    lowest: Option<Money>,
    requests: &[(usize, scheduler::Request)],
) -> Refusal {
    let binding = match need.payer.budget {
        Some(budget) => format!("every placement in the window costs more than {budget}"),
        None => "it would cost more than any amount that can be written".to_owned(),
    };
    Refusal {
        alternatives: alternatives_to_refused(search, need, requests),
        lowest_budget: lowest.filter(|_| search.settings.refusals.relaxations),
        ..bare_refusal(Reason::BudgetTooLow, binding)
    }
}

/// Slots outside the window that the offer could have before it expires, the nearest first: those for which others would move as they
/// would have inside, and the nearest ones that are free as the plan stands; none where the provider tells of none.
pub(crate) fn alternatives_to_refused(
    search: &mut Search<'_>,
    need: &Need<'_>,
    requests: &[(usize, scheduler::Request)],
) -> Vec<AlternativeSlot> {
    let now = search.present_second();
    let latest = need.latest_end(quotas::quota_horizon_of(search.view(), need.payer.party));
    let told = &search.settings.refusals;
    if told.alternatives_phi.numerator == 0 {
        return Vec::new();
    }
    let phi_max = need
        .deviation_max
        .map_or(told.alternatives_phi, |own| own.min(told.alternatives_phi));
    let limits = AlternativeLimits {
        phi_max,
        count_max: ALTERNATIVES_MAX,
    };
    let step = told.coarsen;
    // By how far they lie outside the window.
    let mut found = BTreeSet::new();
    for (resource, request) in requests {
        let duration = request.duration;
        // A slot that starts before the window's start ends before `start + duration`; one that ends after the
        // window's end starts after `end − duration`.
        let before = Interval::new(now, request.ready + duration - 1);
        let after = Interval::new(request.deadline - duration + 1, latest);
        let starts = search.schedules.change_schedule(*resource, |schedule| {
            let near = schedule.alternatives(now, request, limits);
            let mut starts: Vec<Time> = near.into_iter().map(|alternative| alternative.start).collect();
            let tree = schedule.tree();
            starts.extend(tree.latest_fit(request.nodes, duration, before));
            starts.extend(tree.earliest_fit(request.nodes, duration, after));
            (starts, Vec::new())
        });
        for start in starts.unwrap_or_default() {
            let deviation = (request.ready - start).max(start + duration - request.deadline);
            let told = start + duration <= latest && start.seconds() % step == 0;
            // The nearest that are free may lie further out than the provider looks, not than the requester wants.
            let near = need
                .deviation_max
                .is_none_or(|most| deviation <= most.rounded_down(duration));
            let fixed = request.fixed_to(start);
            let stretch = (Interval::of(start, duration), request.nodes);
            let may = share::may_have_share(search.view(), need.payer.party, *resource, stretch, need.of);
            if told
                && near
                && may
                && budgets::can_budget_pay(search.view(), need.payer, &[(*resource, fixed)])
            {
                found.insert((deviation, start, duration, Reverse(request.nodes)));
            }
        }
    }
    let nearest = found.into_iter().take(ALTERNATIVES_MAX);
    let stretches =
        nearest.map(|(_, start, duration, Reverse(nodes))| (Interval::of(start, duration), nodes));
    stretches
        .filter(|stretch| anew::may_be_had(search, need, *stretch))
        .map(|(slot, nodes)| AlternativeSlot {
            slot,
            nodes: (need.shapes.len() > 1).then_some(nodes),
        })
        .collect()
}

/// The smallest changes with which the offer would have been accepted before it expires, on the resource that has most of them. For an offer
/// that leaves its size open, the smallest changes of its window over all sizes and resources.
fn relaxations_of_refused(
    view: View<'_>,
    need: &Need<'_>,
    requests: &[(usize, scheduler::Request)],
) -> Vec<Relaxation> {
    let told = &view.settings.refusals;
    if !told.relaxations {
        return Vec::new();
    }
    let bounds = Bounds {
        times: Interval::new(
            view.present_second(),
            need.latest_end(quotas::quota_horizon_of(view, need.payer.party)),
        ),
        nodes_min: 1,
        duration_min: 1,
    };
    let coarsened = |(resource, request): &(usize, scheduler::Request)| -> Option<Vec<Relaxation>> {
        let found = view
            .schedules
            .get(*resource)?
            .schedule
            .relaxations(request, &bounds);
        let found = found.into_iter();
        Some(
            found
                .filter_map(|relaxation| relaxation.coarsened(told.coarsen, 1, &bounds))
                .filter(|relaxation| {
                    budgets::is_payable_within_budget(
                        view,
                        need.payer,
                        &[(*resource, relaxation.applied(request))],
                    )
                })
                .collect(),
        )
    };
    let each = requests.iter().filter_map(coarsened);
    if need.shapes.len() > 1 {
        return least_changes_of_refused_window(each.flatten());
    }
    // Of equal ones the most hopeful resource's, which comes first.
    each.rev().max_by_key(Vec::len).unwrap_or_default()
}

/// The least change of each end of the window.
fn least_changes_of_refused_window(relaxations: impl Iterator<Item = Relaxation>) -> Vec<Relaxation> {
    let (mut deadline, mut ready) = (None, None);
    for relaxation in relaxations {
        match relaxation {
            Relaxation::Deadline(at) => deadline = Some(deadline.map_or(at, |before: Time| before.min(at))),
            Relaxation::Ready(at) => ready = ready.max(Some(at)),
            _ => {}
        }
    }
    let deadline = deadline.map(Relaxation::Deadline);
    deadline.into_iter().chain(ready.map(Relaxation::Ready)).collect()
}

/// The resources where the cluster would refuse a job, with the cluster's own words; none where there are none.
pub(crate) fn refused_as_barred_in_words(barred: &[BarredResource]) -> Option<String> {
    let words = barred
        .iter()
        .map(|resource| format!("{} would refuse the job: {}", resource.resource, resource.why));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// The binding constraint where only room is missing, in words.
fn refused_without_room_in_words(need: &Need<'_>, cut_short: bool) -> String {
    let whatever = if cut_short {
        "as the plan stands; the search for agreements that could make room was cut short, and a longer one might find room"
    } else {
        "whatever moves inside its own"
    };
    match &*need.shapes {
        [shape] if need.is_sized() => format!(
            "no resource has {} free for as long as the work is predicted to take there, anywhere in the window, {whatever}",
            counted(shape.nodes, "node")
        ),
        [shape] => format!(
            "no resource has {} free for {} anywhere in the window, {whatever}",
            counted(shape.nodes, "node"),
            counted(shape.duration, "second")
        ),
        shapes => format!(
            "no resource has room for any of {} sizes, {} to {} nodes, anywhere in the window, {whatever}",
            shapes.len(),
            shapes.last().map_or(0, |shape| shape.nodes),
            shapes.first().map_or(0, |shape| shape.nodes)
        ),
    }
}

/// A refusal of a proposal that its key's cap has limited: where it is about the price, it is about the cap.
pub(crate) fn refuse_under_cap(
    view: View<'_>,
    spender: Option<Spender>,
    need: &Need<'_>,
    why: Refusal,
) -> Refusal {
    let is_about_price = match why.reason {
        Reason::BudgetTooLow => true,
        Reason::NoCapacityInWindow => spender.is_some() && is_refused_as_too_dear(view, need),
        _ => false,
    };
    match spender.filter(|_| is_about_price) {
        Some(spender) => spending::spending_cap_exceeded(view, spender),
        None => why,
    }
}
