//! Work that is done in pieces: where they go, and what becomes of the agreement at the end of each.
//!
//! A request that may be cut is cut where that lets it complete earlier than in one, on the plan as it stands. Its pieces are
//! let in all or none, and from then on they are fixed where they lie: each is a request of its own in its resource's
//! schedule, for its own slot alone. Only one that has lost its nodes before it began goes elsewhere, between its
//! neighbours (`docs/decisions/0413`).

use scheduler::moldable::Shapes;
use scheduler::preemptive::Preemption;
use scheduler::{Interval, Request, Seconds, Time};

use super::admit::{Admitted, Wanted};
use super::decide::Decider;
use super::plan::{Plan, placed_request, request_of, revenue};
use super::pricing::Priced;
use crate::agreement::{Agreement, AgreementState, EventKind, JobEnd, Outcome, Piece, ServiceState, whole};

/// The kind of resources that run one job for an agreement, and so none in pieces.
pub(super) const CLUSTER: &str = "slurm";
/// Resources on which pieces are looked for.
const RESOURCES_MAX: usize = 4;

impl Decider<'_> {
    /// Lets a request in in pieces, on the resource where its last one completes first; none where it would not complete
    /// earlier than in one, or cannot pay. Up to [`Preemption::searches_max`] searches for each of a few resources.
    pub(super) fn admit_in_pieces(
        &mut self,
        wanted: &Wanted<'_>,
        preemption: &Preemption,
        now: Time,
    ) -> Option<Admitted> {
        let (shape, window) = (*wanted.shapes.first()?, wanted.window);
        let in_one = self.best(wanted).map_or(Time::MAX, |(_, _, slot)| slot.end);
        let mut best: Option<(usize, Vec<Interval>)> = None;
        let mut end = in_one.min(window.end + 1);
        for at in self.hopeful(wanted, shape, RESOURCES_MAX) {
            let of = self.plan.resources.get(at)?;
            // A cluster runs one job for an agreement.
            if of.resource.kind == CLUSTER {
                continue;
            }
            let shape = wanted.scaling.shape(shape, of.resource.rate);
            let rest = Interval::new(window.start, end - 1);
            let Ok(shapes) = Shapes::rigid(shape.nodes, shape.duration) else {
                continue;
            };
            let tree = of.schedule.tree();
            if rest.duration() < shape.duration || shape.nodes > tree.capacity() {
                continue;
            }
            if let Some(found) = preemption.place(tree, &shapes, &[], rest) {
                let slots = joined(found.iter().map(|piece| piece.interval));
                end = slots.last().map_or(end, |slot| slot.end);
                best = Some((at, slots));
            }
        }
        let (at, slots) = best.filter(|(_, slots)| slots.len() > 1)?;
        self.put_pieces(at, wanted, &slots, now)
    }

    /// Puts pieces where they were found to fit, all or none.
    fn put_pieces(
        &mut self,
        at: usize,
        wanted: &Wanted<'_>,
        slots: &[Interval],
        now: Time,
    ) -> Option<Admitted> {
        let rate = self.plan.resources.get(at)?.resource.rate;
        let request = wanted.request(*wanted.shapes.first()?, rate);
        // They cost what they would in one that completes with the last of them.
        let priced = Priced {
            payer: wanted.payer,
            request: &request,
            slot: request.slot(slots.last()?.end - request.duration),
            window: wanted.window,
        };
        let price = self.price(at, priced);
        if self.settings.pricing.is_some() {
            let budget = wanted.payer.budget;
            price.filter(|price| budget.is_none_or(|budget| super::budget::within(*price, budget)))?;
        }
        for (slot, number) in slots.iter().zip(request.id..) {
            let piece = Request {
                id: number,
                ready: slot.start,
                deadline: slot.end,
                duration: slot.duration(),
                revenue: revenue(price),
                ..request
            };
            if !self.plan.resources.put(at, now, &piece, slot.start) {
                for number in request.id..number {
                    self.plan.resources.withdraw(at, number);
                }
                return None;
            }
        }
        let pieces: Vec<Piece> = slots.iter().copied().map(Piece::planned).collect();
        Some(Admitted {
            resource: at,
            nodes: request.nodes,
            slot: whole(&pieces)?,
            pieces,
            moved: Vec::new(),
            transferred: Vec::new(),
            price,
        })
    }

    /// Records that a piece has ended and its work is saved: it gives its nodes back, and the next one is waited for.
    pub(super) fn piece_over(&mut self, mut agreement: Agreement, end: &JobEnd) {
        let (number, of) = (agreement.piece_number(), agreement.pieces.len());
        agreement.has_started(end.started);
        agreement.end_piece(end.ended);
        agreement.service = ServiceState::Idle;
        let detail = format!("piece {number} of {of} is over, its work saved");
        let mut events = vec![self.event(EventKind::Checkpointed, detail)];
        events.extend(self.assess(&mut agreement));
        self.update(agreement, events);
    }

    /// Gives a piece that has not begun another place between its neighbours on its resource, where it is not on the plan
    /// any more; none where there is none.
    fn another_place(&mut self, agreement: &Agreement, index: usize, now: Time) -> Option<Interval> {
        let pieces = &agreement.pieces;
        let before = index.checked_sub(1).and_then(|before| pieces.get(before));
        let ready = before.map_or(agreement.ready, |piece| piece.occupied().end);
        let deadline = pieces
            .get(index + 1)
            .map_or(agreement.deadline, |next| next.placement.start);
        let window = Interval::new(ready.max(now), deadline);
        self.place_in(agreement, index, window, now)
    }

    /// Gives a piece the first place on its resource in a window; none where there is none.
    fn place_in(
        &mut self,
        agreement: &Agreement,
        index: usize,
        window: Interval,
        now: Time,
    ) -> Option<Interval> {
        let at = self.plan.resources.place(&agreement.resource)?;
        let number = self.plan.number(agreement.id)? + index as u64;
        let duration = agreement.pieces.get(index)?.placement.duration();
        let tree = self.plan.resources.get(at)?.schedule.tree();
        if window.duration() < duration {
            return None;
        }
        let slot = Interval::of(tree.earliest_fit(agreement.nodes, duration, window)?, duration);
        let request = request_of_piece(agreement, number, slot);
        self.plan
            .resources
            .put(at, now, &request, slot.start)
            .then_some(slot)
    }

    /// The agreement of a lost piece, which has left the plan, with another place for it: between its neighbours, or else
    /// for it and those that follow, one after another.
    pub(super) fn place_lost_pieces(&mut self, agreement: &Agreement, next: Time) -> Option<Agreement> {
        let index = agreement.pieces_over();
        let mut placed = agreement.clone();
        if let Some(slot) = self.another_place(agreement, index, next) {
            placed.place_piece(index, slot);
            return Some(placed);
        }
        let place = self.plan.resources.place(&agreement.resource);
        let (at, number) = place.zip(self.plan.number(agreement.id))?;
        let mut rest: Vec<usize> = (index + 1..agreement.pieces.len()).collect();
        // Those have left the plan, too, whose nodes are out of use.
        rest.retain(|of| self.plan.resources.has(at, number + *of as u64));
        for of in &rest {
            self.plan.resources.vacate(at, next, number + *of as u64);
        }
        let mut ready = next;
        for of in index..agreement.pieces.len() {
            let window = Interval::new(ready, agreement.deadline);
            let Some(slot) = self.place_in(agreement, of, window, next) else {
                for of in index..of {
                    self.plan.resources.vacate(at, next, number + of as u64);
                }
                for of in rest {
                    let slot = agreement.pieces[of].placement;
                    let request = request_of_piece(agreement, number + of as u64, slot);
                    let back = self.plan.resources.put(at, next, &request, slot.start);
                    debug_assert!(back, "nobody has taken its place meanwhile");
                }
                return None;
            };
            placed.place_piece(of, slot);
            ready = slot.end;
        }
        Some(placed)
    }

    /// Finds another place for a piece whose nodes are out of use and that has left the plan, or ends its agreement.
    pub(super) fn place_piece_again(&mut self, agreement: Agreement, index: usize, now: Time) -> PieceAgain {
        let Some(at) = self.plan.resources.place(&agreement.resource) else {
            return PieceAgain::Broken;
        };
        let number = self.plan.number(agreement.id).unwrap_or_default() + index as u64;
        let old = agreement.pieces[index].placement;
        let request = request_of_piece(&agreement, number, old);
        if self.plan.resources.put(at, now, &request, old.start) {
            return PieceAgain::Stayed;
        }
        let why = format!("nodes of {} are out of use", agreement.resource);
        if let Some(slot) = self.another_place(&agreement, index, now) {
            self.piece_moved(agreement, index, slot, &why);
            PieceAgain::Moved
        } else {
            let lost = format!("{why}, and no others are free for its piece {}", index + 1);
            self.lose_because(agreement, EventKind::Broken, lost);
            PieceAgain::Broken
        }
    }

    /// Finds another place for the next piece of an agreement, whose slot has passed while nobody could start it; whether
    /// there was one.
    pub(super) fn place_missed_piece(&mut self, agreement: &Agreement, now: Time) -> bool {
        let index = agreement.pieces_over();
        let place = self.plan.resources.place(&agreement.resource);
        let Some((at, number)) = place.zip(self.plan.number(agreement.id)) else {
            return false;
        };
        if agreement.pieces.is_empty() {
            return false;
        }
        self.plan.resources.vacate(at, now, number + index as u64);
        let Some(slot) = self.another_place(agreement, index, now) else {
            return false;
        };
        self.piece_moved(
            agreement.clone(),
            index,
            slot,
            "nobody could start it in its time",
        );
        true
    }

    fn piece_moved(&mut self, mut agreement: Agreement, index: usize, slot: Interval, why: &str) {
        let by: Seconds = slot.start - agreement.pieces[index].placement.start;
        let direction = if by < 0 { "earlier" } else { "later" };
        let (number, of) = (index + 1, agreement.pieces.len());
        let detail = format!("piece {number} of {of} {} seconds {direction}: {why}", by.abs());
        agreement.place_piece(index, slot);
        let event = self.event(EventKind::Moved, detail);
        self.update(agreement, vec![event]);
    }

    /// Ends an agreement that cannot be carried out any more, and what runs of it.
    pub(super) fn lose_because(
        &mut self,
        mut agreement: Agreement,
        kind: EventKind,
        why: String,
    ) -> Option<Agreement> {
        let had_job = agreement.service == ServiceState::Processing;
        agreement.outcome = Some(Outcome::Lost);
        let mut events = vec![self.event(kind, why)];
        events.extend(
            self.close(&mut agreement, AgreementState::Complete, self.now)
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
    /// The agreement whose piece has this number, and which of its pieces that is, if it has not begun.
    pub(super) fn piece_that_waits(&self, number: u64) -> Option<(&Agreement, usize)> {
        let agreement = self.by_number(number)?;
        let first = self.number(agreement.id)?;
        let index = usize::try_from(number - first).ok()?;
        let begun = agreement.pieces_over() + usize::from(agreement.service == ServiceState::Processing);
        let waits = agreement.state == AgreementState::Observed && begun <= index;
        (waits && index < agreement.pieces.len()).then_some((agreement, index))
    }
}

/// The numbers that an agreement takes up: one, or one for each of its pieces.
pub(super) fn numbers_of(agreement: &Agreement) -> u64 {
    agreement.pieces.len().max(1) as u64
}

/// An agreement as its resource's schedule has it: one request, or one for each of its pieces that is not over, each with its
/// own number and for its own slot alone.
pub(super) fn requests_of(agreement: &Agreement, number: u64) -> Vec<Request> {
    if agreement.pieces.is_empty() {
        return vec![placed_request(agreement, number)];
    }
    let open = agreement.pieces.iter().zip(number..);
    let open = open.filter(|(piece, _)| piece.ended.is_none());
    open.map(|(piece, number)| request_of_piece(agreement, number, piece.placement))
        .collect()
}

/// A piece of an agreement as its resource's schedule sees it.
pub(super) fn request_of_piece(agreement: &Agreement, number: u64, slot: Interval) -> Request {
    Request {
        ready: slot.start,
        deadline: slot.end,
        duration: slot.duration(),
        ..request_of(agreement, number)
    }
}

/// What became of a piece whose nodes are out of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceAgain {
    /// It has its place again.
    Stayed,
    /// It has another.
    Moved,
    /// There is none, and its agreement is over.
    Broken,
}

/// Slots in order of time, those in one that follow each other without a break: nothing is to be saved between them.
fn joined(slots: impl Iterator<Item = Interval>) -> Vec<Interval> {
    let mut joined: Vec<Interval> = Vec::new();
    for slot in slots {
        match joined.last_mut() {
            Some(last) if last.end == slot.start => last.end = slot.end,
            _ => joined.push(slot),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
