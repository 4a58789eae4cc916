//! The resources that would take a request best.

use std::cmp::Reverse;

use domain::agreement::{Filter, Shape};
use domain::resources::Scaling;
use scheduler::domain::{Candidate, Objective, Task};
use scheduler::{Interval, Rate, Reason, Time};

use crate::schedules::Schedules;
use crate::schedules::need::Need;
use crate::schedules::resource_plan::domain_id;

/// The best placement of one size of a need in a window as the plans stand; ties go to the first.
pub(crate) fn best_resource_choice(
    schedules: &Schedules,
    need: &Need<'_>,
    shape: Shape,
    window: Interval,
    objective: Objective,
) -> Result<(usize, Candidate), Reason> {
    let task = schedules.make_foreseen_task(need, shape, window);
    let found = decide_resource_choice(schedules, need, &task, objective);
    found.map(|candidate| (index_of_chosen_resource(candidate.resource), candidate))
}

pub(super) fn decide_resource_choice(
    schedules: &Schedules,
    need: &Need<'_>,
    task: &Task,
    objective: Objective,
) -> Result<Candidate, Reason> {
    match need.work.scaling {
        Scaling::Contract => schedules.domain.decide_contract(task, objective),
        Scaling::ReferenceRate | Scaling::Predicted(_) => schedules.domain.decide(task, objective),
    }
}

/// The largest and the fastest resource of the ones in service that meet all filters; `None` where none does.
pub(crate) fn largest_and_fastest(schedules: &Schedules, filters: &[Filter]) -> Option<(u32, Rate)> {
    if filters.is_empty() {
        return Some((schedules.capacity_max, schedules.rate_max));
    }
    // A total is shared by as many nodes as are granted: whether they suffice shows when a size is tried.
    let each: Vec<Filter> = filters
        .iter()
        .filter(|filter| !filter.is_total())
        .cloned()
        .collect();
    let task = Task {
        nodes: 1,
        work: 1,
        window: Interval::new(Time::MIN, Time::MAX),
        requires: each.iter().map(|filter| filter.requirement(1)).collect(),
        except: schedules.retired.iter().copied().map(domain_id).collect(),
        forecasts: None,
    };
    let able = schedules.domain.able(&task).into_iter();
    let able = able.filter_map(|id| schedules.domain.get(id));
    able.fold(None, |extent: Option<(u32, Rate)>, (_, each)| {
        let (capacity, rate) = extent.unwrap_or((0, each.resource.rate));
        Some((capacity.max(each.resource.capacity), rate.max(each.resource.rate)))
    })
}

/// At most `most` of the resources that could ever take a size of a need, the ones with most free time in its window first.
pub(crate) fn hopeful_resource_choices(
    schedules: &Schedules,
    need: &Need<'_>,
    shape: Shape,
    most: usize,
) -> Vec<usize> {
    let mut able = schedules
        .domain
        .able(&schedules.task_without_foresight(need, shape, need.window));
    if able.len() > 1 {
        able.sort_by_cached_key(|id| (Reverse(free_area_of_choice(schedules, *id, need.window)), *id));
    }
    able.into_iter()
        .take(most)
        .map(index_of_chosen_resource)
        .collect()
}

/// At most `most` of the resources that could ever take a size of a need, first those where it costs least by the price list, and of
/// equal ones those with most free time.
pub(crate) fn cheapest_resource_choices(
    schedules: &Schedules,
    need: &Need<'_>,
    shape: Shape,
    most: usize,
) -> Vec<usize> {
    let cost = |id: u64| {
        let longest = schedules.foreseen_longest(index_of_chosen_resource(id), need, shape)?;
        let (domain, _) = schedules.domain.get(id)?;
        Some(i128::from(domain.price) * i128::from(longest.duration))
    };
    let mut able = schedules
        .domain
        .able(&schedules.task_without_foresight(need, shape, need.window));
    if able.len() > 1 {
        able.sort_by_cached_key(|id| {
            (
                cost(*id),
                Reverse(free_area_of_choice(schedules, *id, need.window)),
                *id,
            )
        });
    }
    able.into_iter()
        .take(most)
        .map(index_of_chosen_resource)
        .collect()
}

/// The node-seconds of a window that are free on a resource. O(log n).
fn free_area_of_choice(schedules: &Schedules, id: u64, window: Interval) -> Option<u128> {
    let (_, domain) = schedules.domain.get(id)?;
    let tree = domain.schedule.tree();
    let whole = u128::from(tree.capacity()) * u128::from(window.duration().max(0).unsigned_abs());
    Some(whole.saturating_sub(tree.busy_area(window).into()))
}

/// The place of the resource that the domain knows by that name.
fn index_of_chosen_resource(id: u64) -> usize {
    // It was a place in a list before.
    usize::try_from(id).unwrap_or(usize::MAX)
}
