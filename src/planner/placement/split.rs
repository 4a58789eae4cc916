//! Work that is let in in pieces.
//!
//! A request that may be cut is cut in two cases: where it then completes earlier than in one piece, on the plan as it stands;
//! or where it has no place in one piece, and others can make room for its pieces inside their windows. Its pieces are let in
//! all or none, each with a number of nodes of its own where the requester has it so and there are sizes to choose from
//! (`docs/design/planning.md`).

use crate::planner::admission::budget;
use std::collections::{BTreeMap, BTreeSet};

use scheduler::domain::Objective;
use scheduler::moldable::{Law, Shapes, Sizes};
use scheduler::preemptive::Preemption;
use scheduler::{Fraction, Interval, Move, Reason, Request, Time};

use super::admit::{Admitted, Wanted, evenly};
use crate::agreement::{OfferKind, OfferTerms, Shape, Slot, Slots, Stretch};
use crate::planner::admission::pricing::Priced;
use crate::planner::decide::Decider;
use crate::planner::offers::quote::{Candidate, HOLD_MIN, QuoteContext};
use crate::planner::plan::revenue;
use crate::planner::resources::resource::Resource;

/// Resources on which pieces are looked for.
const RESOURCES_MAX: usize = 4;
/// Searches of one resource's plan for pieces up to which more than one size is tried, some at even distances where there are
/// more; all commands wait meanwhile. The work for one size is bounded when the offer is read.
const SEARCHES_OF_SIZES_MAX: u64 = 3_000;
/// Resources on which others are asked to make room for pieces, and how many of them at most are taken out in each attempt:
/// admission to a crowded resource may take milliseconds.
const CROWDED_MAX: usize = 2;
const LIFTED: [usize; 3] = [1, 4, 16];

impl Decider<'_> {
    /// Accepts a request: in pieces where that completes it earlier, else in one, and else in pieces for which others move.
    ///
    /// # Errors
    /// Why it has no place; everything is as it was then.
    pub(in crate::planner) fn admit_cut_or_whole(
        &mut self,
        wanted: &Wanted<'_>,
        preemption: Option<&Preemption>,
        now: Time,
    ) -> Result<Admitted, Reason> {
        let Some(preemption) = preemption else {
            return self.admit(wanted, now);
        };
        if let Some(admitted) = self.admit_in_pieces(wanted, preemption, now) {
            return Ok(admitted);
        }
        self.admit(wanted, now).or_else(|reason| {
            let among = (reason == Reason::NoCapacityInWindow)
                .then(|| self.admit_pieces_among(wanted, preemption, now))
                .flatten();
            among.ok_or(reason)
        })
    }

    /// Accepts a request in pieces, on the resource where its last piece completes first; none where it would not
    /// complete earlier than in one piece, or cannot pay.
    fn admit_in_pieces(
        &mut self,
        wanted: &Wanted<'_>,
        preemption: &Preemption,
        now: Time,
    ) -> Option<Admitted> {
        let window = wanted.window;
        let mut end = window.end + 1;
        if let Ok((_, _, slot)) = self.best(wanted) {
            // A request that is not to complete early stays in one piece.
            if self.settings.objective != Objective::EarliestCompletion {
                return None;
            }
            end = end.min(slot.end);
        }
        let mut best: Option<(usize, Slots)> = None;
        for at in self.resources_for_pieces(wanted) {
            let rest = Interval::new(window.start, end - 1);
            if let Some(pieces) = self.pieces_on(at, wanted, preemption, rest) {
                end = pieces.placement().end;
                best = Some((at, pieces));
            }
        }
        let (at, pieces) = best.filter(|(_, pieces)| pieces.is_split())?;
        let load = self.load(at, window);
        self.put_pieces((at, load), wanted, pieces, now)
    }

    /// Accepts a request in pieces that has no place as the plan stands, where others move for it inside their windows. The
    /// agreements in its way are taken out, first one of them and then more. Its pieces are put where they complete first.
    /// Then the others are put where they were, or where there is room. Nothing has changed where one of them has no place.
    fn admit_pieces_among(
        &mut self,
        wanted: &Wanted<'_>,
        preemption: &Preemption,
        now: Time,
    ) -> Option<Admitted> {
        let least = *wanted.shapes.last()?;
        for at in self.resources_for_pieces(wanted).into_iter().take(CROWDED_MAX) {
            let rate = self.plan.resources.get(at)?.resource.rate;
            let request = wanted.request(least, rate);
            let load = self.load(at, wanted.window);
            let mut movable = self.plan.resources.in_the_way(at, now, &request);
            movable.retain(|number| self.may_move(at, *number));
            let counts = LIFTED.into_iter().take_while(|most| most / 4 < movable.len());
            for count in counts {
                let some = &movable[..count.min(movable.len())];
                let admitted = self.put_pieces_among((at, load), wanted, preemption, some, now);
                if admitted.is_some() {
                    return admitted;
                }
            }
        }
        None
    }

    /// Whether the waiting slot with this number may move on its resource.
    fn may_move(&self, at: usize, number: u64) -> bool {
        let waiting = self.plan.resources.waiting(at, number);
        waiting.is_some_and(|(request, _)| !request.is_rigid())
    }

    /// Accepts a request in pieces where some of the waiting agreements may move. Nothing has changed where it finds no
    /// place.
    fn put_pieces_among(
        &mut self,
        (at, load): (usize, Fraction),
        wanted: &Wanted<'_>,
        preemption: &Preemption,
        movable: &[u64],
        now: Time,
    ) -> Option<Admitted> {
        self.attempt(|this| {
            let resources = &mut this.plan.resources;
            let lifted = movable
                .iter()
                .filter_map(|number| resources.withdraw(at, *number));
            let mut lifted: Vec<(Request, Time)> = lifted.collect();
            // As in the order of deadlines: the agreement with the least time goes first.
            lifted.sort_by_key(|(request, _)| (request.deadline, request.id));
            let pieces = this.pieces_on(at, wanted, preemption, wanted.window);
            let pieces = pieces.filter(Slots::is_split)?;
            let admitted = this.put_pieces((at, load), wanted, pieces, now)?;
            let moved = this.put_again(at, &lifted, now)?;
            Some(Admitted { moved, ..admitted })
        })
    }

    /// Puts the removed agreements where they were, or where there is room for them. Returns the moved ones, or none where one
    /// has no place.
    fn put_again(&mut self, at: usize, lifted: &[(Request, Time)], now: Time) -> Option<Vec<Move>> {
        let mut moved = Vec::new();
        for (request, from) in lifted {
            let tree = self.plan.resources.get(at)?.schedule.tree();
            let to = if tree.min_free(request.slot(*from)) >= request.nodes {
                *from
            } else {
                tree.earliest_fit(request.nodes, request.duration, request.window_at(now))?
            };
            if !self.plan.resources.put(at, now, request, to) {
                return None;
            }
            moved.extend((to != *from).then_some(Move {
                id: request.id,
                from: *from,
                to,
            }));
        }
        Some(moved)
    }

    /// The resources on which the pieces of a request are looked for, the most hopeful first.
    fn resources_for_pieces(&self, wanted: &Wanted<'_>) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let candidates = self.crowded(wanted).into_iter().map(|(at, _)| at);
        candidates
            .filter(|at| seen.insert(*at))
            .take(RESOURCES_MAX)
            .collect()
    }

    /// The pieces in which work completes first on a resource inside a window, as its plan stands.
    fn pieces_on(
        &self,
        at: usize,
        wanted: &Wanted<'_>,
        preemption: &Preemption,
        window: Interval,
    ) -> Option<Slots> {
        let of = self.plan.resources.get(at)?;
        if window.duration() <= 0 {
            return None;
        }
        let shapes = shapes_on(&of.resource, wanted, preemption)?;
        let found = preemption.place(of.schedule.tree(), &shapes, &[], window)?;
        joined(found.iter().map(|piece| (piece.interval, piece.nodes)))
    }

    /// The possible offers in pieces for a request that has no place in one piece: where its last piece completes first, as the
    /// plans stand. Its first piece begins when the offer has lapsed or later. So it stays as it was offered, at any time of its
    /// acceptance.
    pub(in crate::planner) fn quote_in_pieces(
        &self,
        search: &QuoteContext,
        wanted: &Wanted<'_>,
        why: Reason,
    ) -> Option<Candidate> {
        let preemption = search.ask.proposal.preemption.as_ref()?;
        if why != Reason::NoCapacityInWindow || search.until - search.now < HOLD_MIN {
            return None;
        }
        let window = Interval::new(wanted.window.start.max(search.until), wanted.window.end);
        let found = self.resources_for_pieces(wanted).into_iter().filter_map(|at| {
            let pieces = self.pieces_on(at, wanted, preemption, window)?;
            pieces.is_split().then_some((at, pieces))
        });
        let (at, pieces) = found.min_by_key(|(_, pieces)| pieces.placement().end)?;
        let charges = self.charges(search, self.price(at, priced(wanted, &pieces)));
        let terms = OfferTerms {
            resource: self.plan.resources.get(at)?.resource.name.clone(),
            ready: wanted.window.start,
            deadline: wanted.window.end,
            kept_until: pieces.placement().end,
            deviation: 0.0,
            kind: OfferKind::InPieces,
            confidence: None,
            price: charges.price,
            difference: charges.difference,
            fee: charges.fee,
            slots: pieces,
            promise: None,
        };
        let expires = search.until;
        Some(Candidate { terms, expires })
    }

    /// Puts pieces where they were found to fit, all or none.
    fn put_pieces(
        &mut self,
        (at, load): (usize, Fraction),
        wanted: &Wanted<'_>,
        pieces: Slots,
        now: Time,
    ) -> Option<Admitted> {
        let price = self.price_under(load, at, priced(wanted, &pieces));
        if self.settings.pricing.is_some() {
            let budget = wanted.payer.budget;
            price.filter(|price| budget.is_none_or(|budget| budget::within(*price, budget)))?;
        }
        let requests = pieces.iter().zip(wanted.number..).map(|(piece, number)| {
            let (slot, nodes) = piece.stretch();
            let request = Request {
                id: number,
                submitted: wanted.submitted,
                ready: slot.start,
                deadline: slot.end,
                duration: slot.duration(),
                nodes,
                revenue: revenue(price),
            };
            (request, slot.start)
        });
        let requests: Vec<_> = requests.collect();
        if !self.plan.resources.put_all(at, now, &requests) {
            return None;
        }
        Some(Admitted {
            resource: at,
            slots: pieces,
            moved: Vec::new(),
            transferred: Vec::new(),
            price,
        })
    }
}

/// The price of pieces: the same as in one piece that completes with the last of them.
fn priced<'a>(wanted: &Wanted<'a>, pieces: &Slots) -> Priced<'a> {
    let end = pieces.placement().end;
    Priced {
        payer: wanted.payer,
        node_seconds: pieces.node_seconds(),
        slot: Interval::new(end - pieces.seconds(), end),
        window: wanted.window,
    }
}

/// The sizes that a request may have on a resource, as many as may be tried, with the durations there; none where it may
/// have none.
fn shapes_on(resource: &Resource, wanted: &Wanted<'_>, preemption: &Preemption) -> Option<Shapes> {
    let fits = |shape: &&Shape| {
        let mut required = wanted
            .filters
            .iter()
            .map(|filter| filter.requirement(shape.nodes));
        let is_barred = wanted.barred.iter().any(|of| of.keeps(**shape, &resource.name));
        shape.nodes <= resource.capacity && !is_barred && required.all(|of| of.holds(&resource.attributes))
    };
    let able: Vec<Shape> = wanted.shapes.iter().filter(fits).copied().collect();
    let most = SEARCHES_OF_SIZES_MAX / preemption.searches_max(1).max(1);
    let some = evenly(&able, usize::try_from(most).unwrap_or(usize::MAX));
    let there = some
        .iter()
        .map(|shape| wanted.scaling.shape(*shape, resource.rate));
    let table: BTreeMap<u32, _> = there.map(|shape| (shape.nodes, shape.duration)).collect();
    let listed = Sizes::List(table.keys().copied().collect());
    Shapes::new(&Law::Table(table), 1..=resource.capacity, &listed).ok()
}

/// The pieces of stretches in order of time. Stretches without a break between them on the same number of nodes are one
/// piece: no work has to be saved between them. None where there is none.
fn joined(stretches: impl Iterator<Item = Stretch>) -> Option<Slots> {
    let mut joined: Vec<Slot> = Vec::new();
    for (slot, nodes) in stretches {
        match joined.last_mut() {
            Some(last) if last.placement.end == slot.start && last.nodes == nodes => {
                last.placement.end = slot.end;
            }
            _ => joined.push(Slot::planned((slot, nodes))),
        }
    }
    Slots::of(joined)
}
