//! Admission to one resource: accepted requests move inside their own windows to let another one in.
//!
//! Papers 000 and 001, section 3, algorithm 1. A newcomer is put in order among the waiting requests; those behind it are
//! lifted, it is placed, and they are placed again, in order, each at its first fit. If one of them finds no place, the
//! newcomer goes directly behind that one and the rest is tried again (`fixqueue`), until it fits or has no place itself.
//! What was accepted before is never lost: a refusal leaves every placement exactly where it was.
//!
//! Placing thousands of requests again for each newcomer is what makes the algorithm slow, and almost all of them come
//! to lie where they were. [`Schedule`] therefore keeps, for each waiting request, whether it lies at its first fit given
//! those before it, and `trial` places only the ones that a change can reach; what it finds out about those that every
//! attempt has to try again, far from the newcomer, is kept in `memory`. The decisions are those of the plain algorithm,
//! which the tests keep as the oracle.

mod blocks;
mod capacity;
mod exchange;
mod fault;
mod memory;
mod transfer;
mod trial;
mod waiting;

use crate::queue::{Key, Order};
use crate::refusal::Reason;
use crate::request::{Placement, Request};
use crate::slot_tree::{SlotError, SlotTree};
use crate::time::{Interval, Seconds, Time};
pub use fault::Fault;
use memory::Memory;
use std::collections::{BTreeMap, BTreeSet};
use trial::{Obstacle, Trial};
use waiting::Waiting;

/// A part of a whole, for instance of a wait: `numerator` / `denominator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction {
    /// Parts.
    pub numerator: u32,
    /// Of how many; at least 1.
    pub denominator: u32,
}

impl Fraction {
    /// So many hundredths.
    pub const fn percent(numerator: u32) -> Self {
        Self {
            numerator,
            denominator: 100,
        }
    }

    /// Whether `part` is at least this fraction of `whole`.
    pub fn reached(self, part: Seconds, whole: Seconds) -> bool {
        i128::from(part) * i128::from(self.denominator) >= i128::from(self.numerator) * i128::from(whole)
    }

    /// The least part that reaches this fraction of `whole`; at most `i64::MAX`.
    pub fn rounded_up(self, whole: Seconds) -> Seconds {
        let product = i128::from(self.numerator) * i128::from(whole);
        let part = -(-product).div_euclid(i128::from(self.denominator));
        Seconds::try_from(part).unwrap_or(Seconds::MAX)
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        let (a, b) = (u64::from(self.numerator), u64::from(other.numerator));
        if a * u64::from(other.denominator) <= b * u64::from(self.denominator) {
            self
        } else {
            other
        }
    }

    /// Whether `part` is more than this fraction of `whole`.
    pub fn exceeded(self, part: Seconds, whole: Seconds) -> bool {
        i128::from(part) * i128::from(self.denominator) > i128::from(self.numerator) * i128::from(whole)
    }
}

/// An accepted request was placed anew inside its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// The request's id.
    pub id: u64,
    /// Its start so far.
    pub from: Time,
    /// Its start from now on.
    pub to: Time,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It has a place.
    Accepted {
        /// Where.
        placement: Placement,
        /// The requests that moved to make room, by id.
        moved: Vec<Move>,
    },
    /// It has none; nothing was changed.
    Refused {
        /// Why.
        reason: Reason,
    },
}

/// A newcomer has a place.
#[derive(Debug)]
struct Admitted {
    trial: Trial,
    /// The key that it went behind.
    behind: Key,
    /// Whether it lies where it would if everything behind its own key were lifted.
    at_first_fit: bool,
}

/// Where an accepted request is kept.
#[derive(Debug, Clone, Copy)]
enum Place {
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
    order: Order,
    fixing: Option<Fraction>,
    now: Time,
    /// The waiting requests; places are used again.
    waiting: Vec<Option<Waiting>>,
    vacant: Vec<u32>,
    by_id: BTreeMap<u64, Place>,
    /// The waiting requests by start.
    by_start: BTreeSet<(Time, u32)>,
    /// Waiting requests that may not lie at their first fit given those before them in order.
    loose: BTreeSet<(Key, u32)>,
    /// What attempts found out about them.
    memory: Memory,
    /// By completion time and id.
    running: BTreeMap<(Time, u64), Placement>,
    /// No waiting request is longer.
    duration_max: Seconds,
    /// No waiting request has a window longer than its duration by more.
    slack_max: Seconds,
    /// The first thing that must never happen and did.
    fault: Option<Fault>,
}

impl Schedule {
    /// A resource of `capacity` nodes with nothing accepted, whose waiting requests are placed in `order`.
    ///
    /// # Panics
    /// If `capacity` exceeds [`crate::slot_tree::MAX_CAPACITY`].
    pub fn new(capacity: u32, order: Order) -> Self {
        Self {
            tree: SlotTree::new(capacity),
            order,
            fixing: None,
            now: Time::MIN + 1,
            waiting: Vec::new(),
            vacant: Vec::new(),
            by_id: BTreeMap::new(),
            by_start: BTreeSet::new(),
            loose: BTreeSet::new(),
            memory: Memory::default(),
            running: BTreeMap::new(),
            duration_max: 0,
            slack_max: 0,
            fault: None,
        }
    }

    /// Fixes every flexible request to its slot once it has waited for this fraction of its wait (paper 000, section
    /// 4.2): 0 fixes at acceptance, `None` never. Looked at on each submission, before the newcomer is put in order.
    #[must_use]
    pub fn fixing(mut self, fraction: Option<Fraction>) -> Self {
        self.fixing = fraction;
        self
    }

    /// Decides about `request` at `now`, by algorithm 1.
    ///
    /// Each attempt costs what the requests that move and those whose slots they meet cost to place again, plus a look at what
    /// is remembered of each request that is not known to lie at its first fit.
    pub fn submit(&mut self, now: Time, request: &Request) -> Decision {
        self.begin(now);
        if let Some(reason) = request.impossible(self.tree.capacity(), self.now) {
            return Decision::Refused { reason };
        }
        match self.admit(request) {
            Ok(admitted) => {
                let (start, moved) = self.commit(admitted, request);
                let placement = Placement {
                    id: request.id,
                    slot: request.slot(start),
                    nodes: request.nodes,
                };
                Decision::Accepted { placement, moved }
            }
            Err(_) => Decision::Refused {
                reason: Reason::NoCapacityInWindow,
            },
        }
    }

    /// Takes over a request that was accepted before, where it lies: how a plan is rebuilt from what is stored, in any
    /// order. One that starts by now runs; one that has completed is left out. The window is as fixed as the given request has it.
    ///
    /// # Errors
    /// The stored placements exceed the capacity, or the slot is none. Nothing is changed then.
    pub fn restore(&mut self, request: &Request, start: Time) -> Result<(), SlotError> {
        let slot = request.slot(start);
        self.tree.reserve(slot, request.nodes)?;
        if slot.end < self.now {
            return Ok(());
        }
        if start > self.now {
            let h = self.keep(request, start);
            // Which requests it was placed after is not known any more.
            self.loosen(h);
        } else {
            self.memory.clear();
            let placement = Placement {
                id: request.id,
                slot,
                nodes: request.nodes,
            };
            self.known_as(request.id, Place::Running(slot.end));
            self.running.insert((slot.end, request.id), placement);
        }
        Ok(())
    }

    /// Frees what is left of a request that has come to its end at `now`, before its time or by being cancelled, and lets
    /// the waiting requests move up: placed again, in order, from nothing; if one would then have no place, each by
    /// itself, in order. `None` if no such request waits or runs.
    pub fn end(&mut self, now: Time, id: u64) -> Option<Vec<Move>> {
        self.advance(now);
        let rest = match self.by_id.remove(&id)? {
            Place::Waiting(h) => {
                let waiting = self.take(h)?;
                self.free(waiting.slot(), waiting.request.nodes);
                waiting.slot()
            }
            Place::Running(end) => {
                let placement = self.take_running(end, id)?;
                let rest = Interval::new(self.now, end);
                if !rest.is_empty() {
                    self.free(rest, placement.nodes);
                    self.forget_around(rest, rest);
                }
                rest
            }
        };
        Some(self.move_up(rest))
    }

    /// Fixes a waiting request to its current slot, as its requester or the provider may ask; whether it waits.
    pub fn fix(&mut self, id: u64) -> bool {
        let Some(Place::Waiting(h)) = self.by_id.get(&id).copied() else {
            return false;
        };
        self.fix_to_slot(h);
        true
    }

    /// Where an accepted request lies; `None` once it has completed.
    pub fn placement(&self, id: u64) -> Option<Placement> {
        match self.by_id.get(&id)? {
            Place::Waiting(h) => {
                let waiting = self.waiting[*h as usize].as_ref()?;
                Some(Placement {
                    id,
                    slot: waiting.slot(),
                    nodes: waiting.request.nodes,
                })
            }
            Place::Running(end) => self.running.get(&(*end, id)).copied(),
        }
    }

    /// All placements that have not completed: the running ones by completion, then the waiting ones by start.
    pub fn placements(&self) -> impl Iterator<Item = Placement> + '_ {
        let waiting = self
            .by_start
            .iter()
            .filter_map(|(_, h)| self.waiting[*h as usize].as_ref());
        self.running.values().copied().chain(waiting.map(|w| Placement {
            id: w.request.id,
            slot: w.slot(),
            nodes: w.request.nodes,
        }))
    }

    /// The requests that wait, with their windows as fixed by now, by start.
    pub fn waiting(&self) -> impl Iterator<Item = &Request> + '_ {
        self.by_start
            .iter()
            .filter_map(|(_, h)| Some(&self.waiting[*h as usize].as_ref()?.request))
    }

    /// A waiting request, its window as fixed by now, and its start; `None` where no such request waits. O(log n).
    pub fn waiting_at(&self, id: u64) -> Option<(Request, Time)> {
        let Place::Waiting(h) = *self.by_id.get(&id)? else {
            return None;
        };
        let waiting = self.waiting[h as usize].as_ref()?;
        Some((waiting.request, waiting.start))
    }

    /// The latest time that it was told.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The plan as a step function.
    pub fn tree(&self) -> &SlotTree {
        &self.tree
    }

    /// Lets time pass: what has started runs and no longer moves, what has completed is forgotten.
    pub fn advance(&mut self, now: Time) {
        let now = now.max(self.now);
        if now > self.now {
            self.now = now;
            self.tree.forget(now);
        }
        while let Some(&(start, h)) = self.by_start.first() {
            if start > now {
                break;
            }
            self.by_start.pop_first();
            if let Some(waiting) = self.take(h) {
                let id = waiting.request.id;
                let placement = Placement {
                    id,
                    slot: waiting.slot(),
                    nodes: waiting.request.nodes,
                };
                self.by_id.insert(id, Place::Running(placement.slot.end));
                self.running.insert((placement.slot.end, id), placement);
            }
        }
        while let Some(entry) = self.running.first_entry() {
            let (end, id) = *entry.key();
            if end >= now {
                break;
            }
            entry.remove();
            self.by_id.remove(&id);
        }
        if self.by_start.is_empty() {
            (self.duration_max, self.slack_max) = (0, 0);
        }
        if self.order.changes_with_time() {
            self.queue_anew();
        }
    }

    /// What comes before a decision: time passes, and those who have waited long enough are fixed.
    pub(crate) fn begin(&mut self, now: Time) {
        self.advance(now);
        let Some(fraction) = self.fixing else { return };
        for h in (0_u32..).take(self.waiting.len()) {
            let Some(Waiting { request, start, .. }) = self.waiting[h as usize] else {
                continue;
            };
            let (age, wait) = (self.now - request.submitted, start - request.submitted);
            if fraction.reached(age, wait) && !request.is_rigid() {
                self.fix_to_slot(h);
            }
        }
    }

    /// The slots of what runs, and of what waits up to the key `behind`, that meet `window`.
    pub(crate) fn fixed_slots(&self, behind: Key, window: Interval) -> Vec<Interval> {
        let waiting = self
            .handles()
            .filter(|(_, w)| w.key <= behind)
            .map(|(_, w)| w.slot());
        let slots = self.running.values().map(|p| p.slot).chain(waiting);
        slots.filter(|slot| slot.meets(window)).collect()
    }

    /// Whether `request` would be let in, and if not, the key behind which it was tried last. Changes nothing.
    pub(crate) fn would_admit(&mut self, request: &Request) -> Result<(), Key> {
        self.admit(request).map(|_| ())
    }

    /// Algorithm 1: the change that lets `request` in, or, where it has no place, the key behind which it was tried last.
    fn admit(&mut self, request: &Request) -> Result<Admitted, Key> {
        self.remembering(|schedule, memory| schedule.admit_with(request, memory))
    }

    fn admit_with(&self, request: &Request, memory: &mut Memory) -> Result<Admitted, Key> {
        let mut behind = self.order.key(request, self.now);
        let mut first_fit = None;
        loop {
            match self.attempt(Some(request), behind, None, memory) {
                Ok(trial) => {
                    let at_first_fit = first_fit.is_none_or(|start| start == trial.start);
                    return Ok(Admitted {
                        trial,
                        behind,
                        at_first_fit,
                    });
                }
                // Fixqueue: directly behind the one that found no place.
                Err(Obstacle::Waiting { key, placed }) => {
                    behind = key;
                    first_fit.get_or_insert(placed);
                }
                Err(Obstacle::Newcomer) => return Err(behind),
            }
        }
    }

    /// Everything that waits placed again, in order, from nothing; `freed` is what it may not know of yet.
    fn attempt_alone(&mut self, freed: Option<Interval>) -> Result<Trial, Obstacle> {
        self.remembering(|schedule, memory| schedule.attempt(None, Key::FIRST, freed, memory))
    }

    /// Looks at the plan as it stands with what is remembered at hand.
    fn remembering<T>(&mut self, look: impl FnOnce(&Self, &mut Memory) -> T) -> T {
        let mut memory = std::mem::take(&mut self.memory);
        let found = look(self, &mut memory);
        self.memory = memory;
        found
    }

    /// Makes a trial the plan: the start of `request`, and who moved.
    fn commit(&mut self, admitted: Admitted, request: &Request) -> (Time, Vec<Move>) {
        let start = admitted.trial.start;
        let moved = self.apply(admitted.trial, admitted.behind);
        self.occupy(request.slot(start), request.nodes);
        let h = self.keep(request, start);
        if !admitted.at_first_fit {
            self.loosen(h);
        }
        (start, moved)
    }

    /// Takes over the moves of a trial in which everything behind a key was placed again.
    fn apply(&mut self, trial: Trial, behind: Key) -> Vec<Move> {
        let mut moved = Vec::with_capacity(trial.moved.len());
        for (h, _) in &trial.moved {
            if let Some(Waiting { request, start, .. }) = self.waiting[*h as usize] {
                self.free(request.slot(start), request.nodes);
            }
        }
        for (h, to) in trial.moved {
            let of = self.shift(h, to);
            moved.extend(of);
            if let Some((Waiting { request, .. }, of)) = self.waiting[h as usize].zip(of) {
                self.occupy(request.slot(to), request.nodes);
                // What lies beyond its deadline already may move up beyond it.
                let late = of.to > of.from && request.slot(to).end > request.deadline;
                if late || to < request.window_at(self.now).start {
                    self.report(Fault::OutsideWindow { id: of.id, start: to });
                }
            }
        }
        self.loose.split_off(&(behind, u32::MAX));
        moved.sort_unstable();
        moved
    }

    /// Lets the waiting requests use what was freed.
    fn move_up(&mut self, freed: Interval) -> Vec<Move> {
        if freed.is_empty() {
            return Vec::new();
        }
        match self.attempt_alone(Some(freed)) {
            Ok(trial) => self.apply(trial, Key::FIRST),
            Err(_) => self.move_up_one_by_one(),
        }
    }

    fn move_up_one_by_one(&mut self) -> Vec<Move> {
        let mut queue: Vec<(Key, u32)> = self.handles().map(|(h, w)| (w.key, h)).collect();
        queue.sort_unstable();
        let mut moved = Vec::new();
        for (_, h) in queue {
            let Some(Waiting { request, start, .. }) = self.waiting[h as usize] else {
                continue;
            };
            self.free(request.slot(start), request.nodes);
            let window = Interval::new(request.window_at(self.now).start, start + request.duration);
            let to = self
                .tree
                .earliest_fit(request.nodes, request.duration, window)
                .unwrap_or(start);
            self.occupy(request.slot(to), request.nodes);
            if to != start {
                moved.extend(self.shift(h, to));
            }
            self.loosen(h);
        }
        moved.sort_unstable();
        moved
    }
}
