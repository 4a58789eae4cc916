//! Failures: nodes go away or come back, and the plan is put right.
//!
//! Work on nodes that are gone is lost. Waiting slots that no longer fit are placed again, the ones with least slack first
//! ([`crate::placement::find`]). Slots that still fit stay. A party with an agreement that has no place is told at once.
//! Holds of offers stay where possible, and give way before an agreement is broken.

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::{Agreement, EventKind, ServiceState};
use domain::change::Change;
use domain::resources::{NodeReport, NodeRow, Repaired, Reporter};
use scheduler::{Interval, Seconds};
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::lifecycle::retry::RetryReason;
use crate::placement::find::REPAIR;
use crate::requests::request_of_agreement;
use crate::resources::need::Need;
use crate::resources::resource_plan::ResourcePlan;
use crate::words::{piece_in_words, time_difference_in_words};

/// Why something has to leave its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisplacementCause {
    /// Nodes are not up, or are left out by plan.
    OutOfUse,
    /// The resource has fewer nodes.
    Fewer,
    /// The resource is retired.
    Retired,
    /// The resource has other attributes.
    Unlike,
}

impl DisplacementCause {
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
    cause: DisplacementCause,
    /// The name of the resource.
    resource: String,
}

impl Decider<'_> {
    /// Takes a report about the nodes of a resource and repairs the plan.
    pub(crate) fn set_nodes(
        &mut self,
        resource: &str,
        by: Reporter,
        report: &NodeReport,
    ) -> Result<Repaired> {
        let at = self.plan.schedules.place_of(resource).ok_or(Error::NotFound)?;
        let now = self.present_second();
        let settle = self.settings.failures.settle;
        let hear = |resource_plan: &mut ResourcePlan| {
            let extent = resource_plan.extent();
            resource_plan.nodes.apply_report(by, report, extent, now, settle)
        };
        let changed = self.plan.schedules.change_bindings(at, hear).unwrap_or_default();
        for (node, _) in changed {
            let said = self
                .plan
                .schedules
                .get(at)
                .and_then(|resource| resource.nodes.report_on(node, by));
            let resource = resource.to_owned();
            self.batch.push(match said {
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
        let repaired = self.repair(at, DisplacementCause::OutOfUse);
        if by == Reporter::Executor {
            self.note_reported(resource);
        }
        Ok(repaired)
    }

    /// Corrects the plan as time passes: nodes that were expected back by now, and nodes that are no longer others'.
    pub fn look_after_nodes(&mut self) {
        for at in self.plan.schedules.places_to_look_at(self.present_second()) {
            self.repair(at, DisplacementCause::OutOfUse);
        }
    }

    /// Fits the plan of a resource to its nodes.
    pub(crate) fn repair(&mut self, at: usize, cause: DisplacementCause) -> Repaired {
        let now = self.present_second();
        let mut repaired = Repaired::default();
        let lost: Vec<Uuid> =
            self.plan
                .life
                .begun_on_lost_nodes(&self.plan.schedules, &self.plan.agreements, at, now);
        let mut again = Vec::new();
        for id in lost {
            let agreement = self
                .plan
                .agreements
                .get(id)
                .filter(|plan| self.may_restart(plan))
                .cloned();
            if let Some(agreement) = agreement {
                self.vacate(&agreement);
                again.push(agreement);
            } else {
                self.lose_and_note(id, &mut repaired);
            }
        }
        // Looking at all that wait is left for when nodes have come or gone.
        let changed = self.plan.schedules.changes_use(at, now, &self.settings.failures);
        let mut known = BTreeMap::new();
        if changed {
            known = self
                .plan
                .placement
                .waiting_on(&self.plan.schedules, &self.plan.agreements, at, now);
        }
        let resource = self.plan.schedules.name(at);
        // A hold cannot move: it leaves after the agreements that may move, and before the ones that may not.
        let held = if changed {
            self.plan.table.held_on(&resource)
        } else {
            BTreeMap::new()
        };
        known.extend(held.keys().map(|number| (*number, 0)));
        // Slots of waiting commands leave, too: the commands try another slot.
        known.extend(self.plan.waiting.numbers_on(&resource).map(|number| (number, 0)));
        let homeless = self
            .plan
            .schedules
            .put_out_of_use(at, now, &self.settings.failures, &known);
        again.sort_by_key(|agreement| (request_of_agreement(agreement, 0).slack(now), agreement.id));
        for agreement in again {
            let (id, end) = (agreement.id, self.end_of_lost_work(&agreement));
            let why = format!("its nodes of {} are gone", agreement.resource);
            if self.run_again(&agreement, &end, RetryReason::Lost(&why)) {
                repaired.note(&agreement, self.plan.agreements.get(id));
            } else {
                self.lose_and_note(id, &mut repaired);
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
            self.place_homeless_again(leaving, &mut repaired);
        }
        repaired.count_moved();
        repaired
    }

    /// Has all that waits on a resource leave it that it may not have any more: because it is retired, or is not what was asked
    /// for. Returns what became of it.
    pub(crate) fn send_waiting_away(&mut self, at: usize) -> Repaired {
        let now = self.present_second();
        let mut repaired = Repaired::default();
        let Some(resource_plan) = self.plan.schedules.get(at) else {
            return repaired;
        };
        let (resource, is_retired) = (
            resource_plan.resource.name.clone(),
            resource_plan.resource.is_retired(),
        );
        let mut known = self
            .plan
            .placement
            .waiting_on(&self.plan.schedules, &self.plan.agreements, at, now);
        known.retain(|number, _| {
            let waits = self
                .plan
                .placement
                .waiting_slot_by_number(&self.plan.agreements, *number);
            waits.is_some_and(|(agreement, _)| !resource_plan.may_have(agreement))
        });
        let cause = if is_retired {
            DisplacementCause::Retired
        } else {
            DisplacementCause::Unlike
        };
        // Offers keep again what they may still have, and waiting commands try another slot.
        let held = self.plan.table.held_on(&resource);
        let commands = self.plan.waiting.numbers_on(&resource);
        known.extend(held.keys().copied().chain(commands).map(|number| (number, 0)));
        for number in known.keys() {
            self.plan.schedules.vacate(at, now, *number);
        }
        let leaving = DisplacedSlots {
            numbers: known.keys().copied().collect(),
            known,
            held,
            cause,
            resource,
        };
        self.place_homeless_again(leaving, &mut repaired);
        repaired.count_moved();
        repaired
    }

    /// Finds other places for slots that have left the plan.
    fn place_homeless_again(&mut self, leaving: DisplacedSlots, repaired: &mut Repaired) {
        let now = self.present_second();
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
            let waits = self
                .plan
                .placement
                .waiting_slot_by_number(&self.plan.agreements, number);
            let Some((agreement, index)) = waits.map(|(wait, index)| (wait.clone(), index)) else {
                continue;
            };
            // They count on its place.
            answers.extend(self.plan.table.choice_about(agreement.id));
            // It may have gone along with one before it that was lost, also to another resource.
            let lies = self.plan.schedules.place_of(&agreement.resource);
            if lies.is_some_and(|lies| self.plan.schedules.has_request(lies, number)) {
                continue;
            }
            let found = self.find_before_offers(&agreement, index, REPAIR, now, &mut answers);
            let Some((placed, moves)) = found else {
                if let Some(sought) = self.seek_at_peers(&agreement, index, &why) {
                    repaired.note(&agreement, Some(&sought));
                    continue;
                }
                repaired.note(&agreement, None);
                self.end_without_place(agreement, index, &why);
                repaired.broken += 1;
                continue;
            };
            if placed != agreement {
                repaired.note(&agreement, Some(&placed));
                self.take_found_place(placed, &format!("because {why}"));
            } else if placed.fixed {
                // Others may have made room for it in its old place.
                self.plan.placement.fix(&mut self.plan.schedules, &placed);
            }
            // Others may also have moved out of the place that it had.
            let before: Vec<_> = moves
                .iter()
                .filter_map(|one_move| {
                    self.plan
                        .placement
                        .slot_by_number(&self.plan.agreements, one_move.id)
                })
                .collect();
            let before: Vec<Agreement> = before.into_iter().map(|(each, _)| each.clone()).collect();
            for (before, after) in before.iter().zip(self.apply_moves(&moves, REPAIR.others)) {
                repaired.note(before, Some(&after));
            }
        }
        // An agreement counts more than an offer: offers keep the rest.
        for answer in answers {
            repaired.withdrawn += self.hold_offers_again(answer, &cause.words_before(&resource));
        }
    }

    /// Ends the work that ran on nodes that are gone, and notes it.
    fn lose_and_note(&mut self, id: Uuid, repaired: &mut Repaired) {
        let before = self.plan.agreements.get(id).cloned();
        if self.lose(id).is_some() {
            repaired.lost += 1;
            if let Some(before) = before {
                repaired.note(&before, None);
            }
        }
    }

    /// Ends the work that ran on nodes that are gone.
    pub(crate) fn lose(&mut self, id: Uuid) -> Option<Agreement> {
        let agreement = self.plan.agreements.get(id).cloned()?;
        let detail = format!("its nodes of {} are gone", agreement.resource);
        let had_job = agreement.service == ServiceState::Processing;
        let end = self.end_of_lost_work(&agreement);
        let lost = self.lose_agreement_because(agreement, EventKind::Ended, detail)?;
        if had_job {
            self.record_execution(&lost, &end);
        }
        Some(lost)
    }

    /// Ends an agreement with a slot that has no place any more, unless peers can be asked for one.
    pub(crate) fn end_without_place(&mut self, agreement: Agreement, index: usize, why: &str) {
        if self.seek_at_peers(&agreement, index, why).is_none() {
            self.break_without_place(agreement, index, why);
        }
    }

    /// Ends an agreement with a slot that has no place any more, and tells its party the reason and the alternatives.
    /// Leaves the agreement at its contract where that slot would have added to it.
    pub(crate) fn break_without_place(&mut self, agreement: Agreement, index: usize, why: &str) {
        if agreement.adds_to_contract(index) {
            self.give_up_rest_of_saved(&agreement, why);
            return;
        }
        let mut lost = format!("{why}, and there is no other place in its window");
        let piece = piece_in_words(&agreement, index);
        if !piece.is_empty() {
            lost += &format!(" for {}", piece.trim_end());
        }
        if agreement.slots_begun() == 0 {
            lost = self.loss_in_words(&agreement, &lost);
        }
        self.lose_agreement_because(agreement, EventKind::Broken, lost);
    }

    /// Why an agreement is `lost` and which slots outside its window there are, in words for its party.
    fn loss_in_words(&mut self, agreement: &Agreement, lost: &str) -> String {
        let now = self.present_second();
        let window = Interval::new(agreement.ready.max(now), agreement.deadline);
        let need = Need {
            submitted: now,
            is_new: true,
            ..Need::of_agreement(agreement, window)
        };
        let requests = self.requests(&need);
        let slots: Vec<String> = self
            .alternatives(&need, &requests)
            .iter()
            .map(|alternative| time_difference_in_words(alternative.slot.start - agreement.placement().start))
            .collect();
        if slots.is_empty() {
            lost.to_owned()
        } else {
            format!("{lost}; there is room {}", slots.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
