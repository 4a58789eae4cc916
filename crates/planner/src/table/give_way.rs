//! What is held for offers gives way to agreements.

use std::collections::BTreeSet;

use domain::agreement::Agreement;
use scheduler::{Interval, Time};
use uuid::Uuid;

use crate::context::{Bargaining, Search, View};
use crate::placement::find::{CROWDED_MAX, FoundPlace, Policy};
use crate::placement::{eligible_resources, find, reshape};
use crate::schedules::IN_THE_WAY_MAX;
use crate::table::holds;

/// Finds a place, also where others change their shapes, and at last in the holds of offers. The answers that have made room go to `given_way`.
pub(crate) fn find_before_offers(
    bargaining: &mut Bargaining<'_>,
    agreement: &Agreement,
    index: usize,
    policy: Policy,
    now: Time,
    given_way: &mut BTreeSet<Uuid>,
) -> Option<FoundPlace> {
    let search = &mut bargaining.search();
    let found = find::find_place(search, agreement, index, policy, now)
        .or_else(|| find_place_among(search, agreement, index, policy, now));
    if found.is_some() {
        return found;
    }
    let window = find::rest_of_window(agreement, now);
    let others = resources_giving_way(bargaining.view(), agreement, index, window);
    for resource in [agreement.resource.clone()].into_iter().chain(others) {
        given_way.extend(holds::take_holds_out_in(bargaining, &resource, window));
        let found = find::find_place(&mut bargaining.search(), agreement, index, policy, now);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Finds a place for an agreement after its slot of this index has left the plan, where others get other sizes or pieces. None where there
/// is none, and nothing has changed then.
fn find_place_among(
    search: &mut Search<'_>,
    agreement: &Agreement,
    index: usize,
    policy: Policy,
    now: Time,
) -> Option<FoundPlace> {
    // No agreement makes room for an addition to a contract.
    if agreement.adds_to_contract(index) {
        return None;
    }
    let (at, _) = search
        .placement
        .planned_slot(search.schedules, agreement, index)?;
    let mut work = search.settings.decision_work;
    search.schedules.share_work(IN_THE_WAY_MAX);
    let next = search.basis.placement.next_number();
    let window = find::rest_of_window(agreement, now);
    let place = |search: &mut Search<'_>, _: &mut u64| {
        let found = find::find_place(search, agreement, index, policy, now)?;
        Some((found, next))
    };
    let found = reshape::place_where_others_reshape(search, at, window, &mut work, place);
    search.schedules.share_work(1);
    let (mut found, others) = found?;
    found.others.moved.extend(others.moved);
    found.others.new_shapes = others.new_shapes;
    Some(found)
}

/// Some of the other resources that an agreement may go to, on which nodes are held for offers in a window.
fn resources_giving_way(
    view: View<'_>,
    agreement: &Agreement,
    index: usize,
    window: Interval,
) -> Vec<String> {
    if index.min(agreement.slots_begun()) > 0 {
        return Vec::new();
    }
    let sizes = agreement.constraints.shapes.iter().map(|shape| shape.nodes);
    let smallest = sizes.chain([agreement.nodes()]).min().unwrap_or(0);
    let holds = &view.table.holds();
    let is_held = |resource: &&String| {
        let mut held = holds.on(resource);
        held.any(|((start, _), (end, _))| Interval::new(*start, *end).meets(window))
    };
    let may_go = |resource: &&String| {
        let at = view.schedules.place_of(resource);
        at.is_some_and(|at| {
            let one_resource = view.schedules.get(at);
            one_resource.is_some_and(|each| each.resource.capacity >= smallest)
                && eligible_resources::may_go_to_resource(view, at, agreement)
        })
    };
    let others = holds
        .by_resource
        .keys()
        .filter(|each| **each != agreement.resource);
    let others = others.filter(is_held).filter(may_go);
    others.take(CROWDED_MAX).cloned().collect()
}
