//! A place for an agreement that has lost its own, where others on its resource change their shapes for it.

use domain::agreement::Agreement;
use scheduler::Time;

use crate::context::Search;
use crate::placement::find::{self, FoundPlace, Policy};
use crate::placement::reshape;
use crate::schedules::IN_THE_WAY_MAX;

/// Finds a place for an agreement after its slot of this index has left the plan, where others get other sizes or pieces. None where there
/// is none, and nothing has changed then.
pub(crate) fn find_place_among(
    search: &mut Search<'_>,
    agreement: &Agreement,
    index: usize,
    policy: Policy,
    now: Time,
) -> Option<FoundPlace> {
    // Nobody makes room for an addition to a contract.
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
    found.moves.extend(others.moved);
    found.new_shapes.extend(others.new_shapes);
    Some(found)
}
