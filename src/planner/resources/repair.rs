//! Failures: nodes go away or come back, and the plan is put right.
//!
//! What ran on nodes that are gone is lost. Who waits and no longer fits is placed again, those with least slack first: where
//! he was if others' leaving has made room, else elsewhere on the resource, on another resource, where others move inside
//! their windows, and where he has sizes to choose from on another size. Nobody who still fits is hurt. Who finds no place
//! is told at once. What is kept for offers is kept where it can be, and gives way before an agreement is broken.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{Interval, Request, Seconds, Time};
use uuid::Uuid;

use super::nodes::{NodeReport, Reporter};
use crate::agreement::{Agreement, AgreementState, EventKind, ServiceState, Shape, Slots};
use crate::clock::second_of;
use crate::planner::admission::budget::Payer;
use crate::planner::decide::{Decider, execution};
use crate::planner::lifecycle::pieces::PieceAgain;
use crate::planner::lifecycle::retry::Why;
use crate::planner::placement::admit::{Wanted, shape_of};
use crate::planner::plan::{placed_request, request_of};
use crate::planner::resources::Wish;
use crate::planner::{Error, Repaired};
use crate::store::{Change, NodeRow};

/// Resources on which others are asked to move for one that lost its place.
pub(in crate::planner) const CROWDED_MAX: usize = 4;

/// Why offers are withdrawn, in words for their party.
const OUT_OF_USE: &str = "nodes are out of use";

/// A place for it.
pub(in crate::planner) struct Found {
    pub(in crate::planner) resource: usize,
    pub(in crate::planner) slot: Interval,
    pub(in crate::planner) nodes: u32,
}

impl Decider<'_> {
    /// Takes what is reported about the nodes of a resource and puts the plan right.
    pub(in crate::planner) fn set_nodes(
        &mut self,
        resource: &str,
        by: Reporter,
        report: &NodeReport,
    ) -> Result<Repaired, Error> {
        let at = self.plan.resources.place(resource).ok_or(Error::NotFound)?;
        let now = second_of(self.now);
        let settle = self.settings.failures.settle;
        let hear = |of: &mut crate::planner::resources::ResourcePlan| {
            of.nodes.hear(by, report, of.resource.capacity, now, settle)
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
        let repaired = self.repair(at, now);
        if by == Reporter::Executor {
            self.note_reported(resource);
        }
        Ok(repaired)
    }

    /// Puts right what the passing of time has made wrong: what was thought repaired by now, what is no longer others'.
    pub(in crate::planner) fn look_after_nodes(&mut self) {
        let now = second_of(self.now);
        for at in self.plan.resources.to_look_at(now) {
            self.repair(at, now);
        }
    }

    /// Makes the plan of a resource what its nodes allow.
    fn repair(&mut self, at: usize, now: Time) -> Repaired {
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
        // What is kept for offers stands where it stands: it leaves after those that may move, and before who may not.
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
        for (number, start) in homeless {
            answers.extend(held.get(&number));
            let Some(agreement) = self.plan.by_number(number).cloned() else {
                continue;
            };
            // They count on its place.
            answers.extend(self.plan.table.answers_about(agreement.id));
            if let Some((_, index)) = self
                .plan
                .slot_that_waits(number)
                .filter(|_| agreement.slots.is_split())
            {
                // It may have gone along with one before it that was lost, also to another resource.
                let lies = self.plan.resources.place(&agreement.resource);
                if lies.is_some_and(|lies| self.plan.resources.has(lies, number)) {
                    continue;
                }
                match self.place_piece_again(agreement, index, now, &mut answers) {
                    PieceAgain::Stayed => {}
                    PieceAgain::Moved => repaired.moved += 1,
                    PieceAgain::Broken => repaired.broken += 1,
                }
                continue;
            }
            let request = placed_request(&agreement, number);
            match self.place_again(at, agreement, &request, start, now, &mut answers) {
                Again::Stayed => {}
                Again::Moved => repaired.moved += 1,
                Again::Broken => repaired.broken += 1,
            }
        }
        // An agreement counts more than an offer: what is left is kept for those.
        for answer in answers {
            repaired.withdrawn += self.keep_again(answer, OUT_OF_USE);
        }
        repaired
    }

    /// Ends what ran on nodes that are gone.
    pub(in crate::planner) fn lose(&mut self, id: Uuid) -> Option<Agreement> {
        let agreement = self.plan.get(id).cloned()?;
        let detail = format!("its nodes of {} are gone", agreement.resource);
        let had_job = agreement.service == ServiceState::Processing;
        let end = self.lost_now(&agreement);
        let lost = self.lose_because(agreement, EventKind::Ended, detail)?;
        let record = had_job.then(|| execution(&lost, &end)).flatten();
        self.batch
            .extend(record.map(|of| Change::RecordExecution(Box::new(of))));
        Some(lost)
    }

    /// Finds another place for one that waits, at last where something is kept for offers, or ends it. The answers whose
    /// offers have made room go to `given_way`.
    fn place_again(
        &mut self,
        at: usize,
        agreement: Agreement,
        request: &Request,
        start: Time,
        now: Time,
        given_way: &mut BTreeSet<Uuid>,
    ) -> Again {
        if self.plan.resources.put(at, now, request, start) {
            return Again::Stayed;
        }
        let mut found = self.any_place(at, &agreement, request, now);
        if found.is_none() {
            let window = Interval::new(agreement.ready.max(now), agreement.deadline);
            given_way.extend(self.give_way_in(&agreement.resource, window));
            if self.plan.resources.put(at, now, request, start) {
                return Again::Stayed;
            }
            found = self.any_place(at, &agreement, request, now);
        }
        if let Some(found) = found {
            self.moved_to(agreement, &found);
            Again::Moved
        } else {
            let resource = &agreement.resource;
            let lost = format!("nodes of {resource} are out of use, and no others are free in its window");
            self.break_off(agreement, &lost, now);
            Again::Broken
        }
    }

    fn any_place(&mut self, at: usize, agreement: &Agreement, request: &Request, now: Time) -> Option<Found> {
        self.free_place(at, agreement, request, now)
            .or_else(|| self.crowded_place(at, agreement, request, now, "whose nodes are out of use"))
            .or_else(|| self.place_of_another_size(agreement, request, now))
    }

    /// A place that is free for it as it is: on its resource, and if there is none on the best of the others.
    fn free_place(
        &mut self,
        at: usize,
        agreement: &Agreement,
        request: &Request,
        now: Time,
    ) -> Option<Found> {
        let window = Interval::new(agreement.ready.max(now), agreement.deadline);
        let here = self.plan.resources.get(at)?.schedule.tree();
        // One whose slot was to move no more keeps it on another resource rather than another one here.
        let pinned = (agreement.fixed).then(|| request.slot(request.ready));
        let (shape, scaling) = shape_of(agreement);
        for window in pinned.into_iter().chain([window]) {
            if let Some(start) = here.earliest_fit(request.nodes, request.duration, window) {
                let open = open(agreement, request);
                return self
                    .plan
                    .resources
                    .put(at, now, &open, start)
                    .then(|| found(at, request.slot(start), request.nodes));
            }
            let wish = Wish {
                shape,
                scaling,
                window,
                filters: &agreement.leeway.filters,
                barred: &agreement.leeway.barred,
                except: Some(at),
                is_new: false,
            };
            let best = self.plan.resources.best(&wish, self.settings.objective);
            if let Some((to, best)) = best.ok().filter(|(to, _)| self.may_go_to(*to, agreement)) {
                let there = Request {
                    duration: best.slot.duration(),
                    ..open(agreement, request)
                };
                return self
                    .plan
                    .resources
                    .put(to, now, &there, best.slot.start)
                    .then(|| found(to, best.slot, request.nodes));
            }
        }
        None
    }

    /// A place where others make room inside their windows, on its resource or on a few others; `whose` tells them for which.
    pub(in crate::planner) fn crowded_place(
        &mut self,
        at: usize,
        agreement: &Agreement,
        request: &Request,
        now: Time,
        whose: &str,
    ) -> Option<Found> {
        let (shape, scaling) = shape_of(agreement);
        let window = Interval::new(agreement.ready.max(now), agreement.deadline);
        let wish = Wish {
            shape,
            scaling,
            window,
            filters: &agreement.leeway.filters,
            barred: &agreement.leeway.barred,
            except: Some(at),
            is_new: false,
        };
        let others = self.plan.resources.hopeful(&wish, CROWDED_MAX);
        for resource in [at].into_iter().chain(others) {
            if !self.may_go_to(resource, agreement) {
                continue;
            }
            let rate = self.plan.resources.get(resource)?.resource.rate;
            let there = Request {
                duration: scaling.shape(shape, rate).duration,
                ..open(agreement, request)
            };
            if let Some((placement, moves)) = self.plan.resources.submit(resource, now, &there) {
                self.moved(&moves, &format!("to let one in {whose}"));
                return Some(found(resource, placement.slot, request.nodes));
            }
        }
        None
    }

    /// A place for another of its sizes, the one that completes first.
    pub(in crate::planner) fn place_of_another_size(
        &mut self,
        agreement: &Agreement,
        request: &Request,
        now: Time,
    ) -> Option<Found> {
        let (_, scaling) = shape_of(agreement);
        let mut window = Interval::new(agreement.ready.max(now), agreement.deadline);
        let mut best: Option<(usize, Shape, Interval)> = None;
        for shape in &agreement.leeway.shapes {
            let wish = Wish {
                shape: *shape,
                scaling,
                window,
                filters: &agreement.leeway.filters,
                barred: &agreement.leeway.barred,
                except: None,
                is_new: false,
            };
            let found = self.plan.resources.best(&wish, self.settings.objective);
            if let Some((resource, found)) = found.ok().filter(|(to, _)| self.may_go_to(*to, agreement)) {
                window.end = found.slot.end - 1;
                best = Some((resource, *shape, found.slot));
            }
        }
        let (resource, shape, slot) = best?;
        let there = Request {
            nodes: shape.nodes,
            duration: slot.duration(),
            ..open(agreement, request)
        };
        self.plan
            .resources
            .put(resource, now, &there, slot.start)
            .then(|| found(resource, slot, shape.nodes))
    }

    /// Takes over another place of an agreement.
    fn moved_to(&mut self, mut agreement: Agreement, found: &Found) {
        let name = self.plan.resources.name(found.resource);
        let mut detail = by(found.slot.start - agreement.placement().start);
        if name != agreement.resource {
            detail = format!("to {name}, {detail}");
        }
        if found.nodes != agreement.nodes() {
            let (nodes, seconds) = (found.nodes, found.slot.duration());
            detail += &format!(", with {nodes} nodes for {seconds} seconds");
        }
        detail += &format!(", because nodes of {} are out of use", agreement.resource);
        agreement.resource = name;
        agreement.slots = Slots::one((found.slot, found.nodes));
        agreement.duration = found.slot.duration();
        if agreement.fixed {
            self.plan.fix(&agreement);
        }
        let event = self.event(EventKind::Moved, detail);
        self.update(agreement, vec![event]);
    }

    /// Ends one that waits and has no place any more, and tells its party why and what it could have instead.
    pub(in crate::planner) fn break_off(&mut self, mut agreement: Agreement, lost: &str, now: Time) {
        let detail = self.broken(&agreement, lost, now);
        agreement.outcome = Some(agreement.lose());
        let mut events = vec![self.event(EventKind::Broken, detail)];
        // One that waits may always be closed.
        if let Ok(closing) = self.must_close(&mut agreement, AgreementState::Complete, self.now) {
            events.extend(closing);
            self.update(agreement, events);
        }
    }

    /// Why an agreement is `lost` and which slots outside its window there are, in words for its party.
    fn broken(&mut self, agreement: &Agreement, lost: &str, now: Time) -> String {
        let (shape, scaling) = shape_of(agreement);
        let shapes = [shape];
        let wanted = Wanted {
            number: u64::MAX,
            payer: Payer::of_agreement(agreement),
            submitted: now,
            window: Interval::new(agreement.ready.max(now), agreement.deadline),
            shapes: &shapes,
            scaling,
            filters: &agreement.leeway.filters,
            barred: &agreement.leeway.barred,
            deviation_max: None,
        };
        let requests = self.requests(&wanted);
        let slots: Vec<String> = self
            .alternatives(&wanted, &requests, now)
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

/// What became of one that lost its place.
enum Again {
    Stayed,
    Moved,
    Broken,
}

/// A request with the window that its agreement has, also when its slot was fixed.
fn open(agreement: &Agreement, request: &Request) -> Request {
    Request {
        ready: agreement.ready,
        deadline: agreement.deadline,
        ..*request
    }
}

pub(in crate::planner) fn found(resource: usize, slot: Interval, nodes: u32) -> Found {
    Found {
        resource,
        slot,
        nodes,
    }
}

/// How much earlier or later, in words.
pub(in crate::planner) fn by(seconds: Seconds) -> String {
    let direction = if seconds < 0 { "earlier" } else { "later" };
    format!("{} seconds {direction}", seconds.abs())
}

#[cfg(test)]
mod tests;
