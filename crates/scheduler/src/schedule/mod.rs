//! Admission to one resource: accepted requests move inside their own windows to let another one in.
//!
//! Papers 000 and 001, section 3, algorithm 1. A newcomer is put in order among the waiting requests; those behind it are lifted,
//! it is placed, and they are placed again, in order, each at its first fit. If one of them finds no place, the newcomer goes
//! directly behind that one and the rest is tried again (`fixqueue`), until it fits or has no place itself. An accepted request
//! is never lost: a refusal leaves every placement exactly where it was.
//!
//! Placing thousands of requests again for each newcomer makes the algorithm slow, and almost all of them get the place that they
//! had. [`Schedule`] therefore keeps, for each waiting request, whether it lies at its first fit given those before it, and
//! `attempt` places only the ones that a change can reach. Every attempt has to try some requests again, far from the newcomer;
//! their outcomes are kept in `memory`. Where this is nearly as much work as placing everything, everything behind the newcomer
//! is lifted and placed in order. The decisions are those of the plain algorithm, which the tests keep as the oracle.
//!
//! By [`DecisionRule::Standing`] a newcomer that fits the plan as it stands takes that place, and no request moves. For
//! others `displacement` looks for few that have other places, and a makeshift for a place where all in the way have some. Where
//! both find none, algorithm 1 says whether the newcomer can be let in.
//!
//! A decision may be given a budget of counted work ([`Schedule::budgeted`]). Where that is spent before algorithm 1 ends, the
//! search for a place is cut short; by [`DecisionRule::Published`] the makeshift is tried then.

mod admit;
mod attempt;
mod blocks;
mod decision;
mod displacement;
mod fault;
mod improve;
mod intervals;
mod journal;
mod least_gain;
mod leaving;
mod lifted;
mod marks;
mod memory;
mod newcomer;
mod portfolio;
mod trial;
mod waiting;
mod window;
mod work;

use crate::fraction::Fraction;
use crate::queue::{Key, Order};
use crate::refusal::Reason;
use crate::request::{Placement, Request};
use crate::slot_tree::{SlotError, SlotTree};
use crate::time::{Interval, Time};
use attempt::Attempt;
use journal::{Change, Journal};
use memory::Memory;
use std::collections::BTreeMap;
use trial::Obstacle;
use waiting::{GivenUpPlace, WaitingList, WaitingRequest};
use work::LOOK;

pub(crate) use work::Work;

pub use decision::{Decision, Move};
pub use fault::Fault;
pub use improve::Improvement;
pub use journal::Mark;
pub use least_gain::LeastGain;
pub use portfolio::TRIES;

/// A budget that keeps decisions below about ten milliseconds on one processor of today.
pub const BUDGET: u64 = 80_000;

/// A newcomer has no place.
#[derive(Debug, Clone, Copy)]
struct NoPlace {
    /// The budget was spent before everything was tried.
    cut_short: bool,
}

crate::worded! {
    /// What is decided about a newcomer that fits the plan as it stands. By both, others are accepted wherever algorithm 1 accepts them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DecisionRule {
        /// It gets its first fit in the plan as it stands, and no other request moves. For one that does not fit, few others move.
        Standing = "standing",
        /// Algorithm 1 decides, as papers 000 and 001 print it: requests behind it may move, though it fits.
        Published = "published",
    }
}

/// Where an accepted request is kept.
#[derive(Debug, Clone, Copy)]
enum RequestPlace {
    Waiting(u32),
    /// Under its completion time.
    Running(Time),
}

/// The accepted requests of one resource and their placements.
///
/// Time is an argument of every call and never goes back. Ids are unique among the requests that wait or run.
///
/// ```
/// use scheduler::{Decision, Order, Request, Schedule, Time};
/// let flexible = |id| Request {
///     id,
///     submitted: Time(0),
///     ready: Time(100),
///     deadline: Time(1_000),
///     duration: 100,
///     nodes: 3,
///     revenue: 0,
/// };
/// let mut schedule = Schedule::new(4, Order::Edf);
/// for id in 0..3 {
///     schedule.submit(Time(0), &flexible(id));
/// }
/// let rigid = Request { ready: Time(150), deadline: Time(250), nodes: 4, ..flexible(3) };
/// let Decision::Accepted { moved, .. } = schedule.submit(Time(10), &rigid) else {
///     panic!("it fits once they move")
/// };
/// assert_eq!(moved.len(), 3);
/// ```
#[derive(Debug, Clone)]
pub struct Schedule {
    tree: SlotTree,
    now: Time,
    waiting: WaitingList,
    by_id: BTreeMap<u64, RequestPlace>,
    /// By completion time and id.
    running: BTreeMap<(Time, u64), Placement>,
    /// The results of attempts about waiting requests.
    memory: Memory,
    /// The changes that may be taken back.
    journal: Journal,
    /// What is decided about a newcomer that fits the plan as it stands.
    rule: DecisionRule,
    /// Work that a decision may do.
    budget: Option<u64>,
    /// In how many other orders a request is tried that one order refuses.
    tries: usize,
    /// The least gain of a move that is not forced.
    least_gain: LeastGain,
    /// Decisions that spent their budget.
    cut_short: u64,
    /// The first fault, if there was one.
    fault: Option<Fault>,
}

impl Schedule {
    /// A resource of `capacity` nodes with no accepted request. It places its waiting requests in `order`, by
    /// [`DecisionRule::Published`].
    ///
    /// # Panics
    /// If `capacity` exceeds [`crate::slot_tree::MAX_CAPACITY`].
    pub fn new(capacity: u32, order: Order) -> Self {
        Self {
            tree: SlotTree::new(capacity),
            now: Time::MIN + 1,
            waiting: WaitingList::new(order),
            by_id: BTreeMap::new(),
            running: BTreeMap::new(),
            memory: Memory::default(),
            journal: Journal::default(),
            rule: DecisionRule::Published,
            budget: None,
            tries: 0,
            least_gain: LeastGain::ANY,
            cut_short: 0,
            fault: None,
        }
    }

    /// Fixes every flexible request to its slot once it has waited for this fraction of its wait (paper 000, section
    /// 4.2): 0 fixes at acceptance, `None` never. Looked at on each submission, before the newcomer is put in order.
    #[must_use]
    pub fn fixing(mut self, fraction: Option<Fraction>) -> Self {
        self.waiting.set_fixing(fraction);
        self
    }

    /// Decides by this rule about requests that fit the plan as it stands.
    #[must_use]
    pub fn deciding(mut self, rule: DecisionRule) -> Self {
        self.rule = rule;
        self.waiting.look_by_freed_time(rule == DecisionRule::Standing);
        self
    }

    /// Lets a decision do at most `work` where 65,536 requests wait or more, and up to four times as much where fewer do: a
    /// search of the plan counts 8, `None` sets no bound. Decisions are those of algorithm 1 where the budget is not spent. Where
    /// it is, every request that fits the plan as it stands is accepted. Beside it, a decision that has others move may do as much again
    /// for fewer moves, and a bounded work for a makeshift and for the places that are left.
    #[must_use]
    pub fn budgeted(mut self, work: Option<u64>) -> Self {
        self.budget = work;
        self
    }

    /// Tries requests that the schedule's order refuses in up to `tries` other orders, within the budget: a portfolio of orders;
    /// [`TRIES`] of them are enough. 0 decides by algorithm 1 alone.
    #[must_use]
    pub fn trying(mut self, tries: usize) -> Self {
        self.tries = tries;
        self
    }

    /// Lets each decision from now on do at most `work`, as [`Schedule::budgeted`] does.
    pub fn set_budget(&mut self, work: Option<u64>) {
        self.budget = work;
    }

    /// How many decisions have spent their budget.
    pub fn cut_short(&self) -> u64 {
        self.cut_short
    }

    /// Decides about `request` at `now`: by algorithm 1, or where it fits the plan as it stands by the schedule's
    /// [`DecisionRule`].
    ///
    /// By [`DecisionRule::Standing`] a request that fits costs one search of the plan, however many requests wait.
    /// Each attempt costs as much as placing again the requests that move and the requests in their way, plus a look at the
    /// memory of each request that is not known to lie at its first fit.
    pub fn submit(&mut self, now: Time, request: &Request) -> Decision {
        self.submit_gaining(now, request, Time::MIN, |_| true)
    }

    /// Decides as [`Schedule::submit`] does. Where others make room for the request, `may_move` says by its id which of the rest may move up
    /// now without need, into the places that are left: to no start before `not_before`.
    pub fn submit_gaining(
        &mut self,
        now: Time,
        request: &Request,
        not_before: Time,
        may_move: impl FnMut(u64) -> bool,
    ) -> Decision {
        self.begin_decision(now);
        if let Some(reason) = request.impossible(self.tree.capacity(), self.now) {
            let cut_short = false;
            return Decision::Refused { reason, cut_short };
        }
        match self.admit_in_any_order(request, &mut self.work()) {
            Ok(mut admitted) => {
                self.use_left_places(&mut admitted, not_before, may_move);
                let (start, moved) = self.commit_admitted(&admitted, request);
                let placement = request.placed(start);
                Decision::Accepted { placement, moved }
            }
            Err(NoPlace { cut_short }) => Decision::Refused {
                reason: Reason::NoCapacityInWindow,
                cut_short,
            },
        }
    }

    /// Takes over a request that was accepted before, where it lies: a plan is rebuilt from the store with this, in any order.
    /// One that starts by now runs; one that has completed is left out. The window is as fixed as the given request has it.
    ///
    /// # Errors
    /// The stored placements exceed the capacity, or the slot is none. Nothing is changed then.
    pub fn restore(&mut self, request: &Request, start: Time) -> Result<(), SlotError> {
        if let Some(h) = self.restore_unmarked(request, start)? {
            // Which requests it was placed after is not known any more.
            self.waiting.loosen(h);
        }
        Ok(())
    }

    /// Takes over a request as [`Schedule::restore`] does, one of many: all are taken not to lie at their first fit, until
    /// [`Schedule::find_improvable`] has looked at them together.
    ///
    /// # Errors
    /// The errors of [`Schedule::restore`].
    pub fn restore_one_of_many(&mut self, request: &Request, start: Time) -> Result<(), SlotError> {
        if self.restore_unmarked(request, start)?.is_some() {
            self.waiting.loosen_all();
        }
        Ok(())
    }

    /// Takes over a request; its handle where it waits.
    fn restore_unmarked(&mut self, request: &Request, start: Time) -> Result<Option<u32>, SlotError> {
        let slot = request.slot(start);
        // Time before the present is outside the plan.
        let rest = Interval::new(slot.start.max(self.now).min(slot.end), slot.end);
        let held = if slot.is_empty() { slot } else { rest };
        if slot.is_empty() || !rest.is_empty() {
            self.tree.reserve(held, request.nodes)?;
        }
        if slot.end < self.now {
            return Ok(None);
        }
        let is_standing = self.rule == DecisionRule::Standing;
        let own = self.waiting.order().key(request, self.now);
        // What stands in order before the place's last request might lie there instead of one behind it.
        let stood_before = |key: Option<Key>| is_standing || key.is_some_and(|key| own <= key);
        self.waiting.take_up((rest, request.nodes), stood_before);
        if start > self.now {
            return Ok(Some(self.take_in_waiting(request, start)));
        }
        self.memory.note_change(slot);
        self.note_id_or_fault(request.id, RequestPlace::Running(slot.end));
        let placement = request.placed(start);
        self.running.insert((slot.end, request.id), placement);
        self.journal.note(|| Change::Ran(placement, held));
        Ok(None)
    }

    /// Frees the rest of a request that has ended at `now`, before its time or by being cancelled, and lets the waiting requests
    /// move up. They are placed again, in order, from nothing; if one would then have no place, each by itself, in order. `None`
    /// if no such request waits or runs.
    pub fn end(&mut self, now: Time, id: u64) -> Option<Vec<Move>> {
        self.advance(now);
        let left = self.take_out(id)?;
        Some(self.move_up(left.slot))
    }

    /// Takes out a request that waits or runs, and frees the rest of its slot; answers with the place that it gave up.
    fn take_out(&mut self, id: u64) -> Option<GivenUpPlace> {
        let (placement, waited) = match self.by_id.remove(&id)? {
            RequestPlace::Waiting(h) => {
                let waited = self.take_out_waiting(h)?;
                (waited.placement(), Some(waited))
            }
            RequestPlace::Running(end) => {
                let placement = self.running.remove(&(end, id));
                (self.kept_or_fault(placement)?, None)
            }
        };
        let Interval { start, end } = placement.slot;
        let rest = Interval::new(start.max(self.now), end);
        self.journal.note(|| match waited {
            Some(waited) => Change::Left(waited),
            None => Change::Stopped(placement, rest),
        });
        if !rest.is_empty() {
            self.free_or_fault(rest, placement.nodes);
        }
        Some(GivenUpPlace {
            slot: rest,
            nodes: placement.nodes,
            key: waited.map(|waited| waited.key),
        })
    }

    /// Fixes a waiting request to its current slot, as its requester or the provider may ask; whether it waits.
    pub fn fix(&mut self, id: u64) -> bool {
        let Some(RequestPlace::Waiting(h)) = self.by_id.get(&id).copied() else {
            return false;
        };
        self.fix_to_slot(h);
        true
    }

    /// Fixes a request to its slot: with one possible start it lies at its first fit.
    fn fix_to_slot(&mut self, h: u32) {
        let before = self.waiting.get(h).copied();
        if let Some((before, slot)) = before.zip(self.waiting.fix(h, self.now)) {
            self.journal.note(|| Change::Fixed(h, before));
            self.memory.forget(h);
            self.memory.note_change(slot);
        }
    }

    /// Where `request` would start if it were submitted at `now`, others moving inside their windows where that lets it
    /// in; `None` where it would be refused. Changes nothing but the present. The cost is that of [`Schedule::submit`].
    pub fn would_start(&mut self, now: Time, request: &Request) -> Option<Time> {
        self.begin_decision(now);
        if request.impossible(self.tree.capacity(), self.now).is_some() {
            return None;
        }
        let admitted = self.admit_in_any_order(request, &mut self.work()).ok()?;
        Some(self.take_admitted_back(admitted))
    }

    /// Takes a request out of the plan, whether it waits or runs, and leaves every other where it lies, so that another one can
    /// have its room; answers the rest of its slot from `now` on. [`Schedule::restore`] puts another one in its place. `None` if
    /// no such request waits or runs. O(k log n) for k waiting requests that could use the room that is free then.
    pub fn vacate(&mut self, now: Time, id: u64) -> Option<Interval> {
        self.advance(now);
        self.leave(id)
    }

    /// Takes a request out as [`Schedule::vacate`] does, without letting time pass.
    fn leave(&mut self, id: u64) -> Option<Interval> {
        let left = self.take_out(id)?;
        if !left.slot.is_empty() {
            // Others could start earlier now, and have not been tried yet.
            self.waiting.give_up(left);
        }
        Some(left.slot)
    }

    /// The waiting requests that `request` would leave without a place if it went before them in order, by algorithm 1: the ones
    /// behind which it is put in turn. Empty where it displaces no other, or finds no place whichever requests leave. Changes
    /// nothing.
    pub fn displaced(&mut self, now: Time, request: &Request) -> Vec<u64> {
        self.begin_decision(now);
        let mut displaced = Vec::new();
        if request.impossible(self.tree.capacity(), self.now).is_some() {
            return displaced;
        }
        let mut work = self.work();
        self.freshen_waiting();
        let mut newcomer = self.newcomer_to_admit(request, &mut work);
        loop {
            match self.attempt(&mut work).run(Some(&newcomer), None) {
                Err(Obstacle::Waiting { key, placed }) => {
                    displaced.push(key.id());
                    newcomer.go_behind(key, placed);
                }
                Ok(trial) => {
                    trial.take_back(&mut self.tree);
                    return displaced;
                }
                Err(Obstacle::Newcomer | Obstacle::Spent) => return displaced,
            }
        }
    }

    /// Takes a waiting request out and leaves all others where they are; answers with it, its window as fixed by now, and its
    /// start. [`Schedule::restore`] puts it back. `None` where no such request waits.
    pub fn withdraw(&mut self, id: u64) -> Option<(Request, Time)> {
        let RequestPlace::Waiting(_) = self.by_id.get(&id)? else {
            return None;
        };
        let waiting = self.waiting_at(id);
        self.leave(id)?;
        waiting
    }

    /// The parts that an attempt works on.
    fn attempt<'a>(&'a mut self, work: &'a mut Work) -> Attempt<'a> {
        self.waiting.mark_around_given_up();
        Attempt {
            list: &self.waiting,
            tree: &mut self.tree,
            memory: &mut self.memory,
            work,
            now: self.now,
            least_gain: self.least_gain,
        }
    }

    /// Notes that a waiting request starts at `to`; the slot tree is left as it is.
    fn shift(&mut self, h: u32, to: Time) -> Option<Move> {
        let before = self.waiting.get(h)?.slot();
        let moved = self.waiting.shift(h, to)?;
        self.journal.note_shifted(h, before.start);
        self.memory.note_change(before);
        self.memory.note_change(Interval::of(to, before.duration()));
        Some(moved)
    }

    /// Where an accepted request lies; `None` once it has completed.
    pub fn placement(&self, id: u64) -> Option<Placement> {
        match self.by_id.get(&id)? {
            RequestPlace::Waiting(h) => self.waiting.get(*h).map(WaitingRequest::placement),
            RequestPlace::Running(end) => self.running.get(&(*end, id)).copied(),
        }
    }

    /// All placements that have not completed: the running ones by completion, then the waiting ones by start. O(n log n).
    pub fn placements(&self) -> impl Iterator<Item = Placement> + '_ {
        let waiting = self.waiting.by_start().into_iter().map(WaitingRequest::placement);
        self.running.values().copied().chain(waiting)
    }

    /// The requests that wait, with their windows as fixed by now, by start. O(n log n).
    pub fn waiting(&self) -> impl Iterator<Item = &Request> + '_ {
        self.waiting.by_start().into_iter().map(|w| &w.request)
    }

    /// How many requests wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// The requests that wait for slots that meet an interval, in no order.
    pub fn waiting_in(&self, interval: Interval) -> impl Iterator<Item = &Request> + '_ {
        self.waiting.lying_in(interval).map(|waiting| &waiting.request)
    }

    /// A waiting request, its window as fixed by now, and its start; `None` where no such request waits. O(log n).
    pub fn waiting_at(&self, id: u64) -> Option<(Request, Time)> {
        let RequestPlace::Waiting(h) = *self.by_id.get(&id)? else {
            return None;
        };
        let waiting = self.waiting.get(h)?;
        Some((waiting.request, waiting.start))
    }

    /// The latest time that it got.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The plan as a step function.
    pub fn tree(&self) -> &SlotTree {
        &self.tree
    }

    /// Lets time pass: requests that have started run and no longer move, completed ones are forgotten.
    pub fn advance(&mut self, now: Time) {
        let passes = now > self.now;
        if passes {
            let before = std::mem::replace(&mut self.now, now);
            // What is forgotten cannot be taken back.
            if self.journal.is_open {
                self.journal.note(|| Change::Passed(before));
            } else {
                self.tree.forget(now);
            }
        }
        while let Some((start, h)) = self.waiting.first() {
            if start > self.now {
                break;
            }
            let Some(waiting) = self.take_out_waiting(h) else {
                break;
            };
            self.journal.note(|| Change::Began(waiting));
            let placement = waiting.placement();
            let (id, end) = (placement.id, placement.slot.end);
            self.by_id.insert(id, RequestPlace::Running(end));
            self.running.insert((end, id), placement);
        }
        while let Some(entry) = self.running.first_entry() {
            let (end, id) = *entry.key();
            if end >= self.now {
                break;
            }
            let completed = entry.remove();
            self.journal.note(|| Change::Completed(completed));
            self.by_id.remove(&id);
        }
        if !passes {
            return;
        }
        let requeued = self.waiting.advance(self.now);
        self.journal.is_requeued |= requeued.is_some();
        match requeued {
            None => {}
            Some(Time::MAX) => self.memory.clear(),
            Some(end) => self.memory.note_change(Interval::new(self.now, end)),
        }
    }

    /// The steps before a decision: time passes, and requests that have waited long enough are fixed.
    pub(crate) fn begin_decision(&mut self, now: Time) {
        self.advance(now);
        while let Some(h) = self.waiting.to_be_fixed(self.now) {
            self.fix_to_slot(h);
        }
    }

    /// The slots of running requests, and of requests that wait up to the key `behind`, that meet `window` and start in `starts`
    /// or end in `ends`.
    pub(crate) fn fixed_slots(
        &self,
        behind: Key,
        window: Interval,
        starts: Interval,
        ends: Interval,
        work: &mut Work,
    ) -> Vec<Interval> {
        let within = |at: Time, interval: Interval| interval.start <= at && at < interval.end;
        let running = self.running.values().map(|p| (p.slot, true));
        let starting = self.waiting.starting_in(starts);
        // A slot that ends in there may meet it with its last second only.
        let ending = Interval::new(ends.start - 1, ends.end);
        let waiting = starting.chain(self.waiting.lying_in(ending));
        let waiting = waiting.map(|w| (w.slot(), w.key <= behind));
        // The later ones cost a look as well.
        let slots = running.chain(waiting).take_while(|_| work.looks(LOOK));
        let edges = |slot: &Interval| within(slot.start, starts) || within(slot.end, ends);
        slots
            .filter_map(|(slot, fixed)| fixed.then_some(slot))
            .filter(|slot| slot.meets(window) && edges(slot))
            .collect()
    }
}
