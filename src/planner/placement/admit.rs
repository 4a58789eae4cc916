//! Which resource takes a request, and which agreements move for it: first where it fits as the plans stand, then where
//! others move inside their windows, then where some waiting agreements go to another resource (design of many
//! resources). Changes that do not lead to a place are taken back, so a refusal leaves every agreement where it was.

use scheduler::domain::Objective;
use scheduler::{Fraction, Interval, Move, Reason, Request, Time};

use crate::agreement::{Agreement, Barred, Filter, Money, Shape, Slots};
use crate::planner::admission::budget::Payer;
use crate::planner::admission::pricing::Priced;
use crate::planner::decide::Decider;
use crate::planner::plan::revenue;
use crate::planner::resources::{IN_THE_WAY_MAX, Need};
use crate::planner::{Proposal, Scaling};

/// Resources on which others are asked to move for one request, and sizes of the request that are tried there: admission to a
/// crowded resource may take milliseconds, and all commands wait meanwhile.
const CROWDED_MAX: usize = 16;
const SHAPES_MAX: usize = 4;
/// Trials of sending others elsewhere, each of which may take many decisions.
const DISPLACING_MAX: usize = 4;

/// Something that is to be let in.
pub(in crate::planner) struct Wanted<'a> {
    pub(in crate::planner) number: u64,
    pub(in crate::planner) payer: Payer<'a>,
    pub(in crate::planner) submitted: Time,
    pub(in crate::planner) window: Interval,
    /// From most nodes to fewest.
    pub(in crate::planner) shapes: &'a [Shape],
    pub(in crate::planner) scaling: Scaling,
    pub(in crate::planner) filters: &'a [Filter],
    pub(in crate::planner) barred: &'a [Barred],
    /// How far outside the window alternatives may lie, where the requester says.
    pub(in crate::planner) deviation_max: Option<Fraction>,
}

impl<'a> Wanted<'a> {
    /// The request of a proposal in a window, submitted now.
    pub(in crate::planner) fn of(proposal: &'a Proposal, number: u64, window: Interval, now: Time) -> Self {
        Self {
            number,
            payer: Payer::of(proposal),
            submitted: now,
            window,
            shapes: &proposal.shapes,
            scaling: proposal.scaling,
            filters: &proposal.filters,
            barred: &proposal.barred,
            deviation_max: proposal.deviation_max,
        }
    }
}

/// Something that was let in.
#[derive(Clone)]
pub(in crate::planner) struct Admitted {
    pub(in crate::planner) resource: usize,
    pub(in crate::planner) slots: Slots,
    pub(in crate::planner) moved: Vec<Move>,
    pub(in crate::planner) transferred: Vec<Transfer>,
    pub(in crate::planner) price: Option<Money>,
}

/// A waiting agreement that went from one resource to another.
#[derive(Clone)]
pub(in crate::planner) struct Transfer {
    /// As it is now.
    placed: Agreement,
    /// Its old resource, and its requests there with their starts.
    from: usize,
    was: Vec<(Request, Time)>,
}

impl Wanted<'_> {
    fn wish(&self, shape: Shape, window: Interval) -> Need<'_> {
        Need {
            shape,
            scaling: self.scaling,
            window,
            filters: self.filters,
            barred: self.barred,
            except: None,
            is_new: true,
        }
    }

    /// The request of one size on a resource of that rate.
    pub(in crate::planner) fn request(&self, shape: Shape, rate: scheduler::Rate) -> Request {
        let shape = self.scaling.shape(shape, rate);
        Request {
            id: self.number,
            submitted: self.submitted,
            ready: self.window.start,
            deadline: self.window.end,
            duration: shape.duration,
            nodes: shape.nodes,
            revenue: 0,
        }
    }

    /// A few of its sizes, from largest to smallest.
    pub(in crate::planner) fn some_shapes(&self) -> Vec<Shape> {
        evenly(self.shapes, SHAPES_MAX)
    }
}

impl Decider<'_> {
    /// Accepts a request: with the best size and resource as the plans stand, else on a resource where others move, else
    /// where some go elsewhere.
    ///
    /// # Errors
    /// Why it has no place; everything is as it was then.
    pub(in crate::planner) fn admit(&mut self, wanted: &Wanted<'_>, now: Time) -> Result<Admitted, Reason> {
        match self.best_to_pay(wanted) {
            Ok((resource, shape, slot)) => {
                let admitted = match self.settings.objective {
                    Objective::LatestStart if !self.is_budgeted(wanted) => {
                        self.put_at(resource, wanted, shape, slot, now)
                    }
                    _ => self.let_in(resource, wanted, shape, now),
                };
                if let Some(admitted) = admitted {
                    return Ok(admitted);
                }
            }
            Err(Reason::NoCapacityInWindow) => {}
            Err(reason) => return Err(reason),
        }
        let admitted = self.admit_where_others_move(wanted, now);
        self.plan.resources.share_work(1);
        admitted.ok_or(Reason::NoCapacityInWindow)
    }

    /// Accepts a request where others move, else where some go elsewhere: each with the work of one decision.
    fn admit_where_others_move(&mut self, wanted: &Wanted<'_>, now: Time) -> Option<Admitted> {
        let crowded = self.crowded(wanted);
        self.plan.resources.share_work(crowded.len());
        for (resource, shape) in &crowded {
            if let Some(admitted) = self.let_in(*resource, wanted, *shape, now) {
                return Some(admitted);
            }
        }
        let displacing = crowded.len().min(DISPLACING_MAX);
        // The search finds the agreements in the way, and a place for the new request as each of them leaves.
        self.plan.resources.share_work(displacing * (1 + IN_THE_WAY_MAX));
        let mut crowded = crowded.into_iter().take(displacing);
        crowded.find_map(|(resource, shape)| self.displace(resource, wanted, shape, now))
    }

    /// Whether its price limits its places.
    fn is_budgeted(&self, wanted: &Wanted<'_>) -> bool {
        wanted.payer.budget.is_some() && self.settings.pricing.is_some()
    }

    /// The size and the resource that are best as the plans stand, of the ones that its payer can pay.
    pub(in crate::planner) fn best_to_pay(
        &self,
        wanted: &Wanted<'_>,
    ) -> Result<(usize, Shape, Interval), Reason> {
        match self.best(wanted) {
            Ok(_) if self.is_budgeted(wanted) => self.best_payable(wanted),
            best => best,
        }
    }

    /// A request from when on its payer can pay for it on a resource; none where it never can.
    pub(in crate::planner) fn paying(
        &self,
        resource: usize,
        wanted: &Wanted<'_>,
        request: &Request,
    ) -> Option<Request> {
        let load = self.load(resource, wanted.window);
        let ready = self.affordable_from(resource, load, wanted.payer, request, wanted.window)?;
        Some(Request { ready, ..*request })
    }

    /// The size and the resource that are best as the plans stand; of equal ones the larger, then the first configured.
    pub(in crate::planner) fn best(&self, wanted: &Wanted<'_>) -> Result<(usize, Shape, Interval), Reason> {
        let objective = self.settings.objective;
        let mut best: Option<((i128, Time), usize, Shape, Interval)> = None;
        let mut why = Reason::ResourceNotOffered;
        let mut window = wanted.window;
        for shape in wanted.shapes {
            match self.plan.resources.best(&wanted.wish(*shape, window), objective) {
                Ok((resource, found)) => {
                    let rank = (found.rank.objective, found.rank.completion);
                    if best.as_ref().is_none_or(|(before, ..)| rank < *before) {
                        best = Some((rank, resource, *shape, found.slot));
                    }
                    if objective == Objective::EarliestCompletion {
                        // A smaller size has to complete earlier.
                        window.end = window.end.min(found.slot.end - 1);
                    }
                }
                Err(reason) => why = nearer(why, reason),
            }
        }
        best.map(|(_, resource, shape, slot)| (resource, shape, slot))
            .ok_or(why)
    }

    /// Where others may be asked to move, and for which sizes, the most hopeful first.
    pub(in crate::planner) fn crowded(&self, wanted: &Wanted<'_>) -> Vec<(usize, Shape)> {
        let shapes = wanted.some_shapes();
        let each = CROWDED_MAX / shapes.len().max(1);
        let of = |shape: &Shape| {
            let hopeful = self
                .plan
                .resources
                .hopeful(&wanted.wish(*shape, wanted.window), each);
            let shape = *shape;
            hopeful.into_iter().map(move |resource| (resource, shape))
        };
        shapes.iter().flat_map(of).collect()
    }

    /// The best size, resource and slot of the ones that the payer can pay, among the most hopeful resources.
    fn best_payable(&self, wanted: &Wanted<'_>) -> Result<(usize, Shape, Interval), Reason> {
        let window = wanted.window;
        let candidates = self.crowded(wanted);
        let mut best: Option<((Time, usize), Shape, Interval)> = None;
        for (resource, shape) in candidates {
            let Some(of) = self.plan.resources.get(resource) else {
                continue;
            };
            let request = wanted.request(shape, of.resource.rate);
            let load = self.load(resource, window);
            let Some(ready) = self.affordable_from(resource, load, wanted.payer, &request, window) else {
                continue;
            };
            let payable = Interval::new(ready, window.end);
            let tree = of.schedule.tree();
            let Some(start) = tree.earliest_fit(request.nodes, request.duration, payable) else {
                continue;
            };
            let slot = request.slot(start);
            if best
                .as_ref()
                .is_none_or(|(before, ..)| (slot.end, resource) < *before)
            {
                best = Some(((slot.end, resource), shape, slot));
            }
        }
        best.map(|((_, resource), shape, slot)| (resource, shape, slot))
            .ok_or(Reason::NoCapacityInWindow)
    }

    /// Accepts a request on a resource by algorithm 1, from the time on at which its payer can pay.
    fn let_in(&mut self, resource: usize, wanted: &Wanted<'_>, shape: Shape, now: Time) -> Option<Admitted> {
        // The load without the new request.
        let load = self.load(resource, wanted.window);
        self.let_in_under(load, resource, wanted, shape, now)
    }

    /// The same under a load factor that was found before any agreement made room.
    fn let_in_under(
        &mut self,
        load: Fraction,
        resource: usize,
        wanted: &Wanted<'_>,
        shape: Shape,
        now: Time,
    ) -> Option<Admitted> {
        let rate = self.plan.resources.get(resource)?.resource.rate;
        let request = wanted.request(shape, rate);
        if wanted.window.duration() < request.duration {
            return None;
        }
        // From when on it can pay.
        let ready = self.affordable_from(resource, load, wanted.payer, &request, wanted.window)?;
        let priced = |slot| Priced::of(wanted.payer, &request, slot, wanted.window);
        let least = request.slot(wanted.window.end - request.duration);
        let paying = Request {
            ready,
            revenue: revenue(self.price_under(load, resource, priced(least))),
            ..request
        };
        let (placement, moved) = self.plan.resources.submit(resource, now, &paying)?;
        Some(Admitted {
            resource,
            slots: Slots::one((placement.slot, request.nodes)),
            moved,
            transferred: Vec::new(),
            price: self.price_under(load, resource, priced(placement.slot)),
        })
    }

    /// Puts a request where it was found to fit.
    fn put_at(
        &mut self,
        resource: usize,
        wanted: &Wanted<'_>,
        shape: Shape,
        slot: Interval,
        now: Time,
    ) -> Option<Admitted> {
        let rate = self.plan.resources.get(resource)?.resource.rate;
        let request = wanted.request(shape, rate);
        let priced = Priced::of(wanted.payer, &request, slot, wanted.window);
        let price = self.price(resource, priced);
        let paying = Request {
            revenue: revenue(price),
            ..request
        };
        let put = self.plan.resources.put(resource, now, &paying, slot.start);
        put.then(|| Admitted {
            resource,
            slots: Slots::one((slot, request.nodes)),
            moved: Vec::new(),
            transferred: Vec::new(),
            price,
        })
    }

    /// Accepts a request where some waiting agreements can go to free places on other resources.
    fn displace(
        &mut self,
        resource: usize,
        wanted: &Wanted<'_>,
        shape: Shape,
        now: Time,
    ) -> Option<Admitted> {
        let rate = self.plan.resources.get(resource)?.resource.rate;
        let request = wanted.request(shape, rate);
        // Making room does not lower the price.
        let load = self.load(resource, wanted.window);
        self.attempt(|this| {
            let mut transferred: Vec<Transfer> = Vec::new();
            for number in this.plan.resources.in_the_way(resource, now, &request) {
                let Some(transfer) = this.send_elsewhere(resource, number, now) else {
                    continue;
                };
                transferred.push(transfer);
                if let Some(admitted) = this.let_in_under(load, resource, wanted, shape, now) {
                    // The first agreements that left may not have had to leave.
                    transferred.retain(|of| !this.take_back(of, now));
                    return Some(Admitted {
                        transferred,
                        ..admitted
                    });
                }
            }
            None
        })
    }

    /// Moves a waiting agreement to another resource where it fits as the plan stands.
    fn send_elsewhere(&mut self, from: usize, number: u64, now: Time) -> Option<Transfer> {
        let agreement = self.plan.by_number(number)?;
        let moves = agreement.is_waiting() && !agreement.fixed;
        // It may have gone with another of its slots.
        let is_here = self.plan.resources.has(from, number);
        if !moves || !is_here || self.plan.table.is_counted_on(agreement.id) {
            return None;
        }
        let agreement = agreement.clone();
        // A slot that starts in this second could not be taken back.
        let window = Interval::new(agreement.ready.max(now + 1), agreement.deadline);
        self.attempt(|this| {
            let was = this.take_slots_out(&agreement, 0, now);
            let placed = this.place_elsewhere(&agreement, 0, (window, Some(from)), true, now)?;
            Some(Transfer { placed, from, was })
        })
    }

    /// Moves an agreement back to where it was, if there is room.
    #[must_use]
    fn take_back(&mut self, of: &Transfer, now: Time) -> bool {
        let back = self.plan.resources.put_all(of.from, now, &of.was);
        if back && let Some(to) = self.plan.resources.must_place(&of.placed.resource) {
            for (request, _) in &of.was {
                let left = self.plan.resources.withdraw(to, request.id).is_some();
                let what = || format!("{} has no place where it went", request.id);
                self.plan.resources.impossible.unless(left, what);
            }
        }
        back
    }

    /// Takes over the agreements that went to other resources. Returns them as they are now.
    pub(in crate::planner) fn transferred(&mut self, transfers: &[Transfer], why: &str) -> Vec<Agreement> {
        let gone = transfers.iter();
        gone.filter_map(|of| self.take_place(of.placed.clone(), why))
            .collect()
    }
}

/// The size that an agreement has, as other resources have to be asked for it.
pub(in crate::planner) fn shape_of(agreement: &Agreement) -> (Shape, Scaling) {
    let in_one = !agreement.slots.is_split();
    let granted = |shape: &&Shape| in_one && shape.nodes == agreement.nodes();
    match agreement.leeway.shapes.iter().find(granted) {
        Some(shape) => (*shape, Scaling::ReferenceRate),
        None => (
            Shape {
                nodes: agreement.nodes(),
                duration: agreement.duration,
            },
            Scaling::Contract,
        ),
    }
}

/// At most `most` of some sizes, at even distances with the first and the last among them; of one, or none, the first.
pub(in crate::planner) fn evenly(shapes: &[Shape], most: usize) -> Vec<Shape> {
    let most = most.max(1);
    if shapes.len() <= most {
        return shapes.to_vec();
    }
    let (last, steps) = (shapes.len() - 1, (most - 1).max(1));
    (0..most).map(|step| shapes[last * step / steps]).collect()
}

/// How an agreement came to its place, in words for its party.
pub(in crate::planner) fn placed(agreement: &Agreement, admitted: &Admitted) -> String {
    let resource = &agreement.resource;
    let mut detail = match admitted.moved.len() {
        0 => format!("placed on {resource} as the first fit in its window"),
        count => format!("placed on {resource}; {count} others moved inside their windows"),
    };
    if !agreement.leeway.shapes.is_empty() {
        detail += &format!(
            "; {} nodes for {} seconds of {} sizes",
            agreement.nodes(),
            agreement.duration,
            agreement.leeway.shapes.len()
        );
    }
    if admitted.slots.is_split() {
        let (count, end) = (admitted.slots.len(), admitted.slots.placement().duration());
        detail += &format!(
            "; in {count} pieces, the last of which ends {end} seconds after the start of the first"
        );
    }
    match admitted.transferred.len() {
        0 => {}
        count => detail += &format!("; {count} others went to another resource"),
    }
    detail
}

/// The reason that came nearer to a place.
fn nearer(one: Reason, other: Reason) -> Reason {
    let steps = |reason: &Reason| match reason {
        Reason::ResourceNotOffered => 0,
        Reason::SizeExceedsCapacity => 1,
        Reason::WindowContradictory => 2,
        Reason::WindowInThePast => 3,
        _ => 4,
    };
    if steps(&one) >= steps(&other) { one } else { other }
}

#[cfg(test)]
mod tests;
