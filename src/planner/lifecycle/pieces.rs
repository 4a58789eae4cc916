//! Work that is done in pieces: what becomes of the agreement at the end of each, and of a piece that has lost its place.
//!
//! Each piece is a request of its own in its resource's schedule, with a window of its own in which it moves for others like
//! anything that waits. The windows of an agreement's pieces never overlap, so that the pieces keep their order; they are
//! drawn anew whenever one of them moves, begins or ends. One that has lost its nodes before it began goes
//! elsewhere between its neighbours (`docs/design/planning.md`).

use std::collections::BTreeSet;

use scheduler::{Interval, Request, Seconds, Time};
use uuid::Uuid;

use crate::agreement::{Agreement, AgreementState, EventKind, JobEnd, ServiceState, Shape, Slot, Stretch};
use crate::planner::decide::Decider;
use crate::planner::placement::admit::shape_of;
use crate::planner::plan::{Plan, placed_request, request_of};
use crate::planner::resources::Wish;
use crate::planner::resources::repair::{CROWDED_MAX, by};
use crate::planner::resources::resource::Resource;

/// The kind of resources that others use, too.
pub(in crate::planner) const CLUSTER: &str = "slurm";

impl Decider<'_> {
    /// Records that a piece has ended and its work is saved: it gives its nodes back, and the next one is waited for.
    pub(in crate::planner) fn slot_over(&mut self, mut agreement: Agreement, end: &JobEnd) {
        let (number, of) = (agreement.slot_number(), agreement.slots.len());
        agreement.has_started(end.started);
        agreement.end_slot(end.ended);
        agreement.service = ServiceState::Idle;
        let detail = format!("piece {number} of {of} is over, its work saved");
        let mut events = vec![self.event(EventKind::Checkpointed, detail)];
        events.extend(self.assess(&mut agreement));
        self.update(agreement, events);
    }

    /// Gives a piece that has not begun another place between its neighbours on its resource, where it is not on the plan
    /// any more; none where there is none.
    fn another_place(&mut self, agreement: &Agreement, index: usize, now: Time) -> Option<Stretch> {
        let window = between_neighbours(agreement, index, now);
        let at = self.plan.resources.must_place(&agreement.resource)?;
        let inside = self.place_in(at, agreement, index, window, now);
        if inside.is_some() || !agreement.adds_to_contract(index) {
            return inside;
        }
        // What the provider adds is not late.
        let beyond = Interval::new(window.start, now + self.settings.horizon);
        self.place_in(at, agreement, index, beyond, now)
    }

    /// Gives a slot the first place on a resource in a window; on fewer nodes for longer only where it has none on as many,
    /// and may have another size than the others. None where there is none.
    fn place_in(
        &mut self,
        at: usize,
        agreement: &Agreement,
        index: usize,
        window: Interval,
        now: Time,
    ) -> Option<Stretch> {
        let (from, first) = self.plan.planned_at(agreement)?;
        let number = first + index as u64;
        let slot = agreement.slots.get(index)?;
        let (of, from) = (self.plan.resources.get(at)?, self.plan.resources.get(from)?);
        let tree = of.schedule.tree();
        let fit = |shape: Shape| {
            let fits = window.duration() >= shape.duration && shape.nodes <= tree.capacity();
            let start = tree.earliest_fit(shape.nodes, shape.duration, window);
            Some((Interval::of(start.filter(|_| fits)?, shape.duration), shape.nodes))
        };
        let own = size_on(agreement, slot, &from.resource, &of.resource)?;
        let smaller = || {
            let smaller = smaller_sizes(agreement, own, &of.resource);
            smaller.filter_map(fit).min_by_key(|(slot, _)| slot.end)
        };
        // What was added to its contract is as much as it may have.
        let agreed = !agreement.adds_to_contract(index);
        let stretch = fit(own).or_else(|| smaller().filter(|_| agreed))?;
        let request = request_of_stretch(agreement, number, stretch);
        self.plan
            .resources
            .put(at, now, &request, stretch.0.start)
            .then_some(stretch)
    }

    /// The agreement of a lost piece, which has left the plan, with another place for it: between its neighbours, or else
    /// for it and those that follow, one after another.
    pub(in crate::planner) fn place_lost_pieces(
        &mut self,
        agreement: &Agreement,
        next: Time,
    ) -> Option<Agreement> {
        let index = agreement.slots_over();
        let mut placed = agreement.clone();
        if let Some(stretch) = self.another_place(agreement, index, next) {
            placed.place_slot(index, stretch);
            return Some(placed);
        }
        let at = self.plan.resources.must_place(&agreement.resource)?;
        let rest = self.take_slots_out(agreement, next);
        let window = Interval::new(next.max(agreement.ready), agreement.deadline);
        let placed = self
            .place_in_turn(at, agreement, window, next)
            .or_else(|| self.place_elsewhere(agreement, window, false, next));
        if placed.is_none() {
            self.put_all_back(at, &rest, next);
        }
        placed
    }

    /// Takes the slots of an agreement that are not over out of the plan, those that are on it: what has lost its nodes is not.
    /// Answers with them.
    pub(in crate::planner) fn take_slots_out(
        &mut self,
        agreement: &Agreement,
        now: Time,
    ) -> Vec<(Request, Time)> {
        let Some((at, number)) = self.plan.planned_at(agreement) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        let slots = agreement.slots.iter().enumerate();
        for (index, slot) in slots.skip(agreement.slots_over()) {
            let request = request_of_slot(agreement, number + index as u64, index);
            if self.plan.resources.has(at, request.id) {
                self.plan.resources.vacate(at, now, request.id);
                taken.push((request, slot.placement.start));
            }
        }
        taken
    }

    /// Puts them back.
    pub(in crate::planner) fn put_all_back(&mut self, at: usize, taken: &[(Request, Time)], now: Time) {
        for (request, start) in taken {
            self.plan.resources.put_back(at, now, request, *start);
        }
    }

    /// An agreement whose slots to come have left the plan, with these one after another where they are first free on a resource
    /// inside a window; none where one of them has no place, and nothing has changed then.
    fn place_in_turn(
        &mut self,
        at: usize,
        agreement: &Agreement,
        mut window: Interval,
        now: Time,
    ) -> Option<Agreement> {
        let (_, number) = self.plan.planned_at(agreement)?;
        let first = agreement.slots_over();
        let mut placed = agreement.clone();
        for index in first..agreement.slots.len() {
            let Some(stretch) = self.place_in(at, agreement, index, window, now) else {
                for index in first..index {
                    self.plan.resources.vacate(at, now, number + index as u64);
                }
                return None;
            };
            placed.place_slot(index, stretch);
            window.start = stretch.0.end;
        }
        placed.resource = self.plan.resources.name(at);
        Some(placed)
    }

    /// The same on another resource, where its filters and sizes allow that. What is saved stays where it is: only work that
    /// begins at its start goes to another.
    pub(in crate::planner) fn place_elsewhere(
        &mut self,
        agreement: &Agreement,
        window: Interval,
        is_new: bool,
        now: Time,
    ) -> Option<Agreement> {
        let (from, _) = self.plan.planned_at(agreement)?;
        let (shape, scaling) = shape_of(agreement);
        let wish = Wish {
            shape,
            scaling,
            window,
            filters: &agreement.leeway.filters,
            barred: &agreement.leeway.barred,
            except: Some(from),
            is_new,
        };
        if agreement.slots_over() > 0 {
            return None;
        }
        let mut others = self.plan.resources.hopeful(&wish, CROWDED_MAX);
        others.retain(|to| self.may_go_to(*to, agreement));
        others
            .into_iter()
            .find_map(|to| self.place_in_turn(to, agreement, window, now))
    }

    /// Finds another place for a piece whose nodes are out of use and that has left the plan, at last where something is kept
    /// for offers, or ends its agreement. The answers whose offers have made room go to `given_way`.
    pub(in crate::planner) fn place_piece_again(
        &mut self,
        agreement: Agreement,
        index: usize,
        now: Time,
        given_way: &mut BTreeSet<Uuid>,
    ) -> PieceAgain {
        let why = format!("nodes of {} are out of use", agreement.resource);
        if let Some(again) = self.any_place_again(&agreement, index, &why, now) {
            return again;
        }
        let window = between_neighbours(&agreement, index, now);
        given_way.extend(self.give_way_in(&agreement.resource, window));
        if let Some(again) = self.any_place_again(&agreement, index, &why, now) {
            return again;
        }
        if agreement.adds_to_contract(index) {
            self.give_up_rest(&agreement, &why, now);
        } else {
            let lost = format!("{why}, and no others are free for its piece {}", index + 1);
            self.lose_because(agreement, EventKind::Broken, lost);
        }
        PieceAgain::Broken
    }

    /// Puts a piece back that has left the plan, or in another place, for which others may move; none where there is none.
    fn any_place_again(
        &mut self,
        agreement: &Agreement,
        index: usize,
        why: &str,
        now: Time,
    ) -> Option<PieceAgain> {
        let (at, first) = self.plan.planned_at(agreement)?;
        let number = first + index as u64;
        let request = request_of_slot(agreement, number, index);
        let start = agreement.slots[index].placement.start;
        if self.plan.resources.put(at, now, &request, start) {
            return Some(PieceAgain::Stayed);
        }
        if let Some(stretch) = self.another_place(agreement, index, now) {
            self.piece_moved(agreement.clone(), index, stretch, why);
            return Some(PieceAgain::Moved);
        }
        if agreement.adds_to_contract(index) {
            return None;
        }
        if let Some((placement, moves)) = self.plan.resources.submit(at, now, &request) {
            self.piece_moved(agreement.clone(), index, (placement.slot, request.nodes), why);
            self.moved(&moves, "to let one in whose nodes are out of use");
            return Some(PieceAgain::Moved);
        }
        let window = Interval::new(agreement.ready.max(now), agreement.deadline);
        let rest = self.take_slots_out(agreement, now);
        let Some(placed) = self.place_elsewhere(agreement, window, false, now) else {
            self.put_all_back(at, &rest, now);
            return None;
        };
        self.went_elsewhere(placed, why);
        Some(PieceAgain::Moved)
    }

    /// Takes over that an agreement has gone to another resource with all of its slots.
    pub(in crate::planner) fn went_elsewhere(&mut self, placed: Agreement, why: &str) -> Option<Agreement> {
        let before = self.plan.must_get(placed.id)?;
        let later = by(placed.slot().start - before.slot().start);
        let event = self.event(
            EventKind::Moved,
            format!("to {}, {later}, {why}", placed.resource),
        );
        if placed.fixed {
            self.plan.fix(&placed);
        }
        Some(self.update(placed, vec![event]))
    }

    fn piece_moved(&mut self, mut agreement: Agreement, index: usize, stretch: Stretch, why: &str) {
        let ((slot, nodes), old) = (stretch, agreement.slots[index]);
        let (number, of) = (index + 1, agreement.slots.len());
        let mut detail = format!("piece {number} of {of} {}", by(slot.start - old.placement.start));
        if nodes != old.nodes {
            detail += &format!(", with {nodes} nodes for {} seconds", slot.duration());
        }
        detail += &format!(": {why}");
        agreement.place_slot(index, stretch);
        let event = self.event(EventKind::Moved, detail);
        self.update(agreement, vec![event]);
    }

    /// Ends an agreement that cannot be carried out any more, and what runs of it.
    pub(in crate::planner) fn lose_because(
        &mut self,
        mut agreement: Agreement,
        kind: EventKind,
        why: String,
    ) -> Option<Agreement> {
        let had_job = agreement.service == ServiceState::Processing;
        agreement.outcome = Some(agreement.lose());
        let mut events = vec![self.event(kind, why)];
        events.extend(
            self.must_close(&mut agreement, AgreementState::Complete, self.now)
                .ok()?,
        );
        let lost = self.update(agreement, events);
        if had_job {
            self.plan.stop_later(lost.clone());
        }
        Some(lost)
    }
}

impl Plan {
    /// The agreement whose slot has this number, and which of its slots that is.
    pub(in crate::planner) fn slot_of(&self, number: u64) -> Option<(&Agreement, usize)> {
        let agreement = self.by_number(number)?;
        let index = usize::try_from(number - self.number(agreement.id)?).ok()?;
        (index < agreement.slots.len()).then_some((agreement, index))
    }

    /// The same where that slot has not begun.
    pub(in crate::planner) fn slot_that_waits(&self, number: u64) -> Option<(&Agreement, usize)> {
        let (agreement, index) = self.slot_of(number)?;
        let waits = agreement.state == AgreementState::Observed && agreement.slots_begun() <= index;
        waits.then_some((agreement, index))
    }

    /// Has the slots of an agreement that have not begun move in the windows that they have now.
    pub(in crate::planner) fn open_windows(&mut self, agreement: &Agreement) {
        // The window of one alone follows from nothing that moves.
        if !agreement.slots.is_split() {
            return;
        }
        let Some((at, number)) = self.planned_at(agreement) else {
            return;
        };
        for index in agreement.slots_begun()..agreement.slots.len() {
            let number = number + index as u64;
            // It may have lost its place, or be about to begin.
            let Some((old, start)) = self.resources.waiting(at, number) else {
                continue;
            };
            let mut request = request_of_slot(agreement, number, index);
            if agreement.fixed || self.table.is_counted_on(agreement.id) {
                request = request.fixed_to(start);
            }
            // Most of them are as they were, and to take one out has the schedule look at all others again.
            if request.window() != old.window() && self.resources.withdraw(at, number).is_some() {
                self.resources.put_back(at, Time::MIN, &request, start);
            }
        }
    }
}

/// From the end of the piece before, and from `now`, to the start of the next.
fn between_neighbours(agreement: &Agreement, index: usize, now: Time) -> Interval {
    let slots = &agreement.slots;
    let before = index.checked_sub(1).and_then(|before| slots.get(before));
    let ready = before.map_or(agreement.ready, |slot| slot.occupied().end);
    let next = slots.get(index + 1);
    let deadline = next.map_or(agreement.deadline, |next| next.placement.start);
    Interval::new(ready.max(agreement.ready).max(now), deadline)
}

/// An agreement as its resource's schedule has it: one request for each of its slots that is not over, each with its own number
/// and its own window.
pub(in crate::planner) fn requests_of(agreement: &Agreement, number: u64) -> Vec<Request> {
    let open = agreement.slots.iter().zip(0..);
    let open = open.filter(|(slot, _)| slot.ended.is_none());
    open.map(|(_, index)| request_of_slot(agreement, number + index as u64, index))
        .collect()
}

/// A slot of an agreement where it lies, with its window, as its resource's schedule sees it.
pub(in crate::planner) fn request_of_slot(agreement: &Agreement, number: u64, index: usize) -> Request {
    // One slot alone may move in all of its window.
    if !agreement.slots.is_split() {
        return placed_request(agreement, number);
    }
    let slot = &agreement.slots[index];
    let request = request_of_stretch(agreement, number, slot.stretch());
    if agreement.fixed || index < agreement.slots_begun() {
        return request;
    }
    let window = agreement.slot_window(index);
    Request {
        ready: window.start.min(slot.placement.start),
        deadline: window.end,
        ..request
    }
}

/// Nodes of an agreement for one slot alone, as its resource's schedule sees them.
pub(in crate::planner) fn request_of_stretch(
    agreement: &Agreement,
    number: u64,
    (slot, nodes): Stretch,
) -> Request {
    Request {
        nodes,
        ready: slot.start,
        deadline: slot.end,
        duration: slot.duration(),
        ..request_of(agreement, number)
    }
}

/// A slot's size on a resource that its agreement has not been on until now; none where that cannot have it.
fn size_on(agreement: &Agreement, slot: &Slot, from: &Resource, to: &Resource) -> Option<Shape> {
    let (nodes, duration) = (slot.nodes, slot.placement.duration());
    let own = Shape { nodes, duration };
    if from.name == to.name {
        return Some(own);
    }
    let listed = agreement.leeway.shapes.iter().find(|of| of.nodes == nodes);
    let size = match listed {
        // Its part of the work takes as much longer there as the whole would.
        Some(shape) => Shape {
            duration: part_of(duration, shape.at(to.rate).duration, shape.at(from.rate).duration)?,
            ..own
        },
        None => own,
    };
    may_have(agreement, listed.copied().unwrap_or(own), to).then_some(size)
}

/// Whether a resource may take a size of an agreement.
fn may_have(agreement: &Agreement, shape: Shape, on: &Resource) -> bool {
    let leeway = &agreement.leeway;
    let is_barred = leeway.barred.iter().any(|of| of.keeps(shape, &on.name));
    let mut required = leeway.filters.iter().map(|of| of.requirement(shape.nodes));
    !is_barred && required.all(|of| of.holds(&on.attributes))
}

/// So many seconds of a whole in another measure of it, rounded up.
fn part_of(seconds: Seconds, there: Seconds, whole: Seconds) -> Option<Seconds> {
    let [seconds, there, whole] = [seconds, there, whole].map(|of| u128::try_from(of).ok());
    Seconds::try_from((seconds? * there?).div_ceil(whole?.max(1))).ok()
}

/// The sizes with fewer nodes that a piece may have on a resource, each for as long as its part of the work takes on it; none
/// where all pieces have one size.
fn smaller_sizes<'a>(
    agreement: &'a Agreement,
    own: Shape,
    resource: &'a Resource,
) -> impl Iterator<Item = Shape> + 'a {
    let leeway = &agreement.leeway;
    let whole = |shape: &&Shape| shape.nodes == own.nodes;
    let whole = leeway.shapes.iter().find(whole).filter(|_| leeway.pieces_differ);
    let smaller = leeway.shapes.iter().filter(move |shape| shape.nodes < own.nodes);
    smaller.filter_map(move |shape| {
        // As its own size has it: how fast the resource is shows in that.
        let duration = part_of(own.duration, shape.duration, whole?.duration)?;
        may_have(agreement, *shape, resource).then_some(Shape { duration, ..*shape })
    })
}

/// What became of a piece whose nodes are out of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::planner) enum PieceAgain {
    /// It has its place again.
    Stayed,
    /// It has another.
    Moved,
    /// There is none, and its agreement is over.
    Broken,
}

#[cfg(test)]
mod tests;
