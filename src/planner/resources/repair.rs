//! Failures: nodes go away or come back, and the plan is put right.
//!
//! Work on nodes that are gone is lost. Waiting slots that no longer fit are placed again, the ones with least slack first
//! ([`crate::planner::placement::find`]). Slots that still fit stay. A party with an agreement that has no place is told at once.
//! Holds of offers stay where possible, and give way before an agreement is broken.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::Interval;
use uuid::Uuid;

use crate::agreement::{Agreement, EventKind, ServiceState};
use crate::planner::decider::Decider;
use crate::planner::error::{Error, Result};
use crate::planner::lifecycle::retry::Why;
use crate::planner::placement::find::REPAIR;
use crate::planner::request::Repaired;
use crate::planner::requests::request_of;
use crate::planner::resources::need::Need;
use crate::planner::resources::nodes::{NodeReport, Reporter};
use crate::planner::resources::resource_plan::ResourcePlan;
use crate::planner::words::{by, piece_of};
use crate::store::{Change, NodeRow};

/// Why offers are withdrawn, in words for their party.
const OUT_OF_USE: &str = "nodes are out of use";

impl Decider<'_> {
    /// Takes a report about the nodes of a resource and repairs the plan.
    pub(in crate::planner) fn set_nodes(
        &mut self,
        resource: &str,
        by: Reporter,
        report: &NodeReport,
    ) -> Result<Repaired> {
        let at = self.plan.resources.place(resource).ok_or(Error::NotFound)?;
        let now = self.second();
        let settle = self.settings.failures.settle;
        let hear = |of: &mut ResourcePlan| {
            of.nodes
                .apply_report(by, report, of.resource.capacity, now, settle)
        };
        let changed = self.plan.resources.bindings(at, hear).unwrap_or_default();
        for (node, _) in changed {
            let said = self.plan.resources.get(at).and_then(|of| of.nodes.said(node, by));
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
        let repaired = self.repair(at);
        if by == Reporter::Executor {
            self.note_reported(resource);
        }
        Ok(repaired)
    }

    /// Corrects the plan as time passes: nodes that were expected back by now, and nodes that are no longer others'.
    pub(in crate::planner) fn look_after_nodes(&mut self) {
        for at in self.plan.resources.to_look_at(self.second()) {
            self.repair(at);
        }
    }

    /// Fits the plan of a resource to its nodes.
    fn repair(&mut self, at: usize) -> Repaired {
        let now = self.second();
        let mut repaired = Repaired::default();
        let lost: Vec<Uuid> = self.plan.on_lost_nodes(at, now);
        let mut again = Vec::new();
        for id in lost {
            let agreement = self.plan.get(id).filter(|of| self.may_restart(of)).cloned();
            if let Some(agreement) = agreement {
                self.vacate(&agreement);
                again.push(agreement);
            } else {
                repaired.lost += usize::from(self.lose(id).is_some());
            }
        }
        // Looking at all that wait is left for when nodes have come or gone.
        let changed = self.plan.resources.changes_use(at, now, &self.settings.failures);
        let mut known = BTreeMap::new();
        if changed {
            known = self.plan.waiting_on(at, now);
        }
        let resource = self.plan.resources.name(at);
        // A hold cannot move: it leaves after the agreements that may move, and before the ones that may not.
        let held = if changed {
            self.plan.held_on(&resource)
        } else {
            BTreeMap::new()
        };
        known.extend(held.keys().map(|number| (*number, 0)));
        // Slots of waiting commands leave, too: the commands try another slot.
        known.extend(
            self.plan
                .reserving
                .numbers_on(&resource)
                .map(|number| (number, 0)),
        );
        let homeless = self
            .plan
            .resources
            .put_out_of_use(at, now, &self.settings.failures, &known);
        again.sort_by_key(|agreement| (request_of(agreement, 0).slack(now), agreement.id));
        for agreement in again {
            let (id, end) = (agreement.id, self.lost_now(&agreement));
            let why = format!("its nodes of {} are gone", agreement.resource);
            if self.run_again(&agreement, &end, Why::Lost(&why)) {
                repaired.moved += 1;
            } else {
                repaired.lost += usize::from(self.lose(id).is_some());
            }
        }
        let Some(mut homeless) = homeless else {
            return repaired;
        };
        homeless.sort_by_key(|(number, _)| (known.get(number).copied(), *number));
        let mut answers = BTreeSet::new();
        for (number, _) in homeless {
            answers.extend(held.get(&number));
            let waits = self.plan.slot_that_waits(number);
            let Some((agreement, index)) = waits.map(|(of, index)| (of.clone(), index)) else {
                continue;
            };
            // They count on its place.
            answers.extend(self.plan.table.answers_about(agreement.id));
            // It may have gone along with one before it that was lost, also to another resource.
            let lies = self.plan.resources.place(&agreement.resource);
            if lies.is_some_and(|lies| self.plan.resources.has(lies, number)) {
                continue;
            }
            let found = self.find_before_offers(&agreement, index, REPAIR, now, &mut answers);
            let Some((placed, moves)) = found else {
                let why = format!("nodes of {} are out of use", agreement.resource);
                self.has_no_place(agreement, index, &why);
                repaired.broken += 1;
                continue;
            };
            if placed != agreement {
                let why = format!("because nodes of {} are out of use", agreement.resource);
                self.take_place(placed, &why);
                repaired.moved += 1;
            } else if placed.fixed {
                // Others may have made room for it in its old place.
                self.plan.fix(&placed);
            }
            // Others may also have moved out of the place that it had.
            self.moved(&moves, REPAIR.others);
        }
        // An agreement counts more than an offer: offers keep the rest.
        for answer in answers {
            repaired.withdrawn += self.keep_again(answer, OUT_OF_USE);
        }
        repaired
    }

    /// Ends the work that ran on nodes that are gone.
    pub(in crate::planner) fn lose(&mut self, id: Uuid) -> Option<Agreement> {
        let agreement = self.plan.get(id).cloned()?;
        let detail = format!("its nodes of {} are gone", agreement.resource);
        let had_job = agreement.service == ServiceState::Processing;
        let end = self.lost_now(&agreement);
        let lost = self.lose_because(agreement, EventKind::Ended, detail)?;
        if had_job {
            self.record_execution(&lost, &end);
        }
        Some(lost)
    }

    /// Ends an agreement with a slot that has no place any more, and tells its party the reason and the alternatives.
    /// Leaves the agreement at its contract where that slot would have added to it.
    pub(in crate::planner) fn has_no_place(&mut self, agreement: Agreement, index: usize, why: &str) {
        if agreement.adds_to_contract(index) {
            self.give_up_rest(&agreement, why);
            return;
        }
        let mut lost = format!("{why}, and there is no other place in its window");
        let piece = piece_of(&agreement, index);
        if !piece.is_empty() {
            lost += &format!(" for {}", piece.trim_end());
        }
        if agreement.slots_begun() == 0 {
            lost = self.broken(&agreement, &lost);
        }
        self.lose_because(agreement, EventKind::Broken, lost);
    }

    /// Why an agreement is `lost` and which slots outside its window there are, in words for its party.
    fn broken(&mut self, agreement: &Agreement, lost: &str) -> String {
        let now = self.second();
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
            .map(|alternative| by(alternative.slot.start - agreement.placement().start))
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
