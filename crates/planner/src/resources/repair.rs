//! Failures: nodes go away or come back, and the plan is put right.
//!
//! Work on nodes that are gone is lost. Waiting slots that no longer fit are placed again, the ones with least slack first
//! ([`crate::placement::find`]). Slots that still fit stay. A party with an agreement that has no place is told at once.
//! Holds of offers stay where possible, and give way before an agreement is broken.

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::Agreement;
use domain::change::Change;
use domain::resources::{NodeReport, NodeRow, Repaired, Reporter};
use scheduler::Seconds;
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::life::lost_work::RetryReason;
use crate::life::{executions, keep_offers, lost_work, update};
use crate::placement::find::{FoundPlace, REPAIR};
use crate::schedules::need::request_of_agreement;
use crate::schedules::resource_plan::ResourcePlan;
use crate::table::give_way;

/// Why something has to leave its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepairCause {
    /// Nodes are not up, or are left out by plan.
    OutOfUse,
    /// The resource has fewer nodes.
    Fewer,
    /// The resource is retired.
    Retired,
    /// The resource has other attributes.
    Unlike,
}

impl RepairCause {
    /// In words for parties.
    fn words(self, resource: &str) -> String {
        match self {
            Self::OutOfUse => format!("nodes of {resource} are out of use"),
            Self::Fewer => format!("{resource} has fewer nodes than before"),
            Self::Retired => format!("{resource} is retired"),
            Self::Unlike => format!("{resource} has no longer what was asked for"),
        }
    }

    /// In words for parties, before the name of the resource is told.
    fn words_before(self, resource: &str) -> String {
        match self {
            Self::OutOfUse => "nodes are out of use".to_owned(),
            other => other.words(resource),
        }
    }
}

/// Slots that have left the plan of a resource and are to have another place.
struct DisplacedSlots {
    /// The numbers by which the schedule knew them.
    numbers: Vec<u64>,
    /// Their slack.
    known: BTreeMap<u64, Seconds>,
    /// The answers of the ones that are held for offers.
    held: BTreeMap<u64, Uuid>,
    /// Why.
    cause: RepairCause,
    /// The name of the resource.
    resource: String,
}

/// Takes a report about the nodes of a resource and repairs the plan.
pub(crate) fn repair_nodes(
    decider: &mut Decider<'_>,
    resource: &str,
    by: Reporter,
    report: &NodeReport,
) -> Result<Repaired> {
    let at = decider
        .state
        .schedules
        .place_of(resource)
        .ok_or(Error::NotFound)?;
    let now = decider.present_second();
    let settle = decider.settings.failures.settle;
    let hear = |resource_plan: &mut ResourcePlan| {
        let extent = resource_plan.extent();
        resource_plan.nodes.apply_report(by, report, extent, now, settle)
    };
    let changed = decider
        .state
        .schedules
        .change_bindings(at, hear)
        .unwrap_or_default();
    for (node, _) in changed {
        let said = decider
            .state
            .schedules
            .get(at)
            .and_then(|resource| resource.nodes.report_on(node, by));
        let resource = resource.to_owned();
        decider.batch.push(match said {
            Some(said) => Change::SetNode(NodeRow {
                resource,
                node,
                reporter: by.word().to_owned(),
                state: said.state.word().to_owned(),
                since: said.since,
                reason: said.reason.clone(),
            }),
            None => Change::ForgetNode {
                resource,
                node,
                reporter: by.word(),
            },
        });
    }
    let repaired = repair(decider, at, RepairCause::OutOfUse);
    if by == Reporter::Executor {
        decider.state.elsewhere.note_reported(resource);
    }
    Ok(repaired)
}

/// Corrects the plan as time passes: nodes that were expected back by now, and nodes that are no longer others'.
pub(crate) fn repair_nodes_in_time(decider: &mut Decider<'_>) {
    for at in decider
        .state
        .schedules
        .places_with_nodes_due(decider.present_second())
    {
        repair(decider, at, RepairCause::OutOfUse);
    }
}

/// Fits the plan of a resource to its nodes.
pub(crate) fn repair(decider: &mut Decider<'_>, at: usize, cause: RepairCause) -> Repaired {
    let now = decider.present_second();
    let mut repaired = Repaired::default();
    let lost: Vec<Uuid> = decider.state.life.begun_on_held_nodes_lost(
        &decider.state.schedules,
        &decider.state.agreements,
        at,
        now,
    );
    let mut again = Vec::new();
    for id in lost {
        let agreement = decider
            .state
            .agreements
            .get(id)
            .filter(|plan| lost_work::may_run_lost_work_again(decider.view(), plan))
            .cloned();
        if let Some(agreement) = agreement {
            lost_work::vacate_lost_work(decider, &agreement);
            again.push(agreement);
        } else {
            lose_unrepaired(decider, id, &mut repaired);
        }
    }
    // Looking at all that wait is left for when nodes have come or gone.
    let changed = decider
        .state
        .schedules
        .changes_nodes_out_of_use(at, now, &decider.settings.failures);
    let mut known = BTreeMap::new();
    if changed {
        known =
            decider
                .state
                .placement
                .waiting_on(&decider.state.schedules, &decider.state.agreements, at, now);
    }
    let resource = decider.state.schedules.name(at);
    // A hold cannot move: it leaves after the agreements that may move, and before the ones that may not.
    let held = if changed {
        decider.state.table.held_on(&resource)
    } else {
        BTreeMap::new()
    };
    known.extend(held.keys().map(|number| (*number, 0)));
    // Slots of waiting commands leave, too: the commands try another slot.
    known.extend(
        decider
            .state
            .elsewhere
            .numbers_on(&resource)
            .map(|number| (number, 0)),
    );
    let homeless = decider
        .state
        .schedules
        .put_out_of_use(at, now, &decider.settings.failures, &known);
    again.sort_by_key(|agreement| (request_of_agreement(agreement, 0).slack(now), agreement.id));
    for agreement in again {
        let (id, end) = (
            agreement.id,
            executions::end_of_lost_work(decider.view(), &agreement),
        );
        let why = format!("its nodes of {} are gone", agreement.resource);
        if lost_work::run_lost_work_again(decider, &agreement, &end, RetryReason::Lost(&why)) {
            repaired.note(&agreement, decider.state.agreements.get(id));
        } else {
            lose_unrepaired(decider, id, &mut repaired);
        }
    }
    if let Some(homeless) = homeless {
        let leaving = DisplacedSlots {
            numbers: homeless.into_iter().map(|(number, _)| number).collect(),
            known,
            held,
            cause,
            resource,
        };
        repair_homeless(decider, leaving, &mut repaired);
    }
    repaired.count_moved();
    repaired
}

/// Has all that waits on a resource leave it that it may not have any more: because it is retired, or is not what was asked
/// for. Returns what became of it.
pub(crate) fn repair_by_sending_away(decider: &mut Decider<'_>, at: usize) -> Repaired {
    let now = decider.present_second();
    let mut repaired = Repaired::default();
    let Some(resource_plan) = decider.state.schedules.get(at) else {
        return repaired;
    };
    let (resource, is_retired) = (
        resource_plan.resource.name.clone(),
        resource_plan.resource.is_retired(),
    );
    let mut known =
        decider
            .state
            .placement
            .waiting_on(&decider.state.schedules, &decider.state.agreements, at, now);
    known.retain(|number, _| {
        let waits = decider
            .state
            .placement
            .waiting_slot_by_number(&decider.state.agreements, *number);
        waits.is_some_and(|(agreement, _)| !resource_plan.may_have(agreement))
    });
    let cause = if is_retired {
        RepairCause::Retired
    } else {
        RepairCause::Unlike
    };
    // Offers keep again what they may still have, and waiting commands try another slot.
    let held = decider.state.table.held_on(&resource);
    let commands = decider.state.elsewhere.numbers_on(&resource);
    known.extend(held.keys().copied().chain(commands).map(|number| (number, 0)));
    for number in known.keys() {
        decider.state.schedules.vacate(at, now, *number);
    }
    let leaving = DisplacedSlots {
        numbers: known.keys().copied().collect(),
        known,
        held,
        cause,
        resource,
    };
    repair_homeless(decider, leaving, &mut repaired);
    repaired.count_moved();
    repaired
}

/// Finds other places for slots that have left the plan.
fn repair_homeless(decider: &mut Decider<'_>, leaving: DisplacedSlots, repaired: &mut Repaired) {
    let now = decider.present_second();
    let DisplacedSlots {
        mut numbers,
        known,
        held,
        cause,
        resource,
    } = leaving;
    let why = cause.words(&resource);
    numbers.sort_by_key(|number| (known.get(number).copied(), *number));
    let mut answers = BTreeSet::new();
    for number in numbers {
        answers.extend(held.get(&number));
        let waits = decider
            .state
            .placement
            .waiting_slot_by_number(&decider.state.agreements, number);
        let Some((agreement, index)) = waits.map(|(wait, index)| (wait.clone(), index)) else {
            continue;
        };
        // They count on its place.
        answers.extend(decider.state.table.held_choice_about(agreement.id));
        // It may have gone along with one before it that was lost, also to another resource.
        let lies = decider.state.schedules.place_of(&agreement.resource);
        if lies.is_some_and(|lies| decider.state.schedules.has_request(lies, number)) {
            continue;
        }
        let found = give_way::find_before_offers(
            &mut decider.bargaining(),
            &agreement,
            index,
            REPAIR,
            now,
            &mut answers,
        );
        let Some(FoundPlace { placed, others }) = found else {
            let at_peer = lost_work::end_lost_or_ask_peers(decider, agreement.clone(), index, &why);
            repaired.note(&agreement, at_peer.as_ref());
            repaired.broken += usize::from(at_peer.is_none());
            continue;
        };
        if placed != agreement {
            repaired.note(&agreement, Some(&placed));
            update::update_to_found_place(decider, placed, &format!("because {why}"));
        } else if placed.fixed {
            // Others may have made room for it in its old place.
            decider.state.placement.fix(&mut decider.state.schedules, &placed);
        }
        // Others may also have moved out of the place that it had.
        let before: Vec<_> = others
            .moved
            .iter()
            .filter_map(|one_move| {
                decider
                    .state
                    .placement
                    .slot_by_number(&decider.state.agreements, one_move.id)
            })
            .collect();
        let before: Vec<Agreement> = before.into_iter().map(|(each, _)| each.clone()).collect();
        for (before, after) in
            before
                .iter()
                .zip(update::update_after_moves(decider, &others.moved, REPAIR.others))
        {
            repaired.note(before, Some(&after));
        }
        for shape in others.new_shapes {
            let before = decider.state.agreements.get(shape.placed.id).cloned();
            let after = update::update_to_new_shape(decider, &shape, REPAIR.others);
            if let Some(before) = before {
                repaired.note(&before, after.as_ref());
            }
        }
    }
    // An agreement counts more than an offer: offers keep the rest.
    for answer in answers {
        repaired.withdrawn += keep_offers::keep_offers_again(decider, answer, &cause.words_before(&resource));
    }
}

/// Ends the work that ran on nodes that are gone, and notes it.
fn lose_unrepaired(decider: &mut Decider<'_>, id: Uuid, repaired: &mut Repaired) {
    let before = decider.state.agreements.get(id).cloned();
    if lost_work::lose_work_on_nodes(decider, id).is_some() {
        repaired.lost += 1;
        if let Some(before) = before {
            repaired.note(&before, None);
        }
    }
}

#[cfg(test)]
mod tests;
