//! The requests that wait: in order, by the slots that they have, by the spans in which they could lie, and which of them
//! may not lie at their first fit.

mod free_runs;
mod freed_time;
mod looking;
mod loosening;
mod size_classes;
mod starts_by_size;

pub(super) use looking::Looking;

use super::intervals::{Intervals, LiveIntervals, STARTED_MAX};
use super::marks::{MarkPosition, Marks};
use super::work::{LOOK, STRAY, Work};
use super::{Move, RequestPlace, Schedule};
use crate::fraction::Fraction;
use crate::queue::{Key, Order};
use crate::request::{Placement, Request};
use crate::starts::StartCounts;
use crate::time::{Interval, Time};
use freed_time::FreedTime;
use looking::LooksByFreedTime;
use std::collections::BTreeSet;

/// The most requests that rise in the queue one by one: when more do, the whole queue is sorted again at the next attempt.
const RISEN_MAX: usize = 1_024;
/// Where more have started than are sorted at once, more have risen.
const _: () = assert!(RISEN_MAX < STARTED_MAX);

/// This many at the end of the queue are looked at one by one, wherever they lie.
const FEW: usize = 32;

/// A waiting request, its start, and its place in the queue at present.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingRequest {
    pub(super) request: Request,
    pub(super) start: Time,
    pub(super) key: Key,
}

impl WaitingRequest {
    pub(super) fn slot(&self) -> Interval {
        self.request.slot(self.start)
    }

    pub(super) fn placement(&self) -> Placement {
        self.request.placed(self.start)
    }

    fn moved_to(&self, to: Time) -> Move {
        Move {
            id: self.request.id,
            from: self.start,
            to,
        }
    }

    /// Where it could lie if it moved up; none where it starts at its ready time.
    fn span(&self) -> Option<Interval> {
        let ready = self.request.ready;
        (ready < self.start).then(|| Interval::new(ready, self.slot().end))
    }
}

impl Schedule {
    /// Takes in a waiting request after the slot tree has got its slot.
    pub(super) fn take_in_waiting(&mut self, request: &Request, start: Time) -> u32 {
        let h = self.waiting.insert(request, start, self.now);
        self.memory.set_grain(self.waiting.usual_length());
        self.memory.forget(h);
        self.memory.note_change(request.slot(start));
        self.note_id_or_fault(request.id, RequestPlace::Waiting(h));
        self.journal.note_came(h);
        h
    }

    /// Takes out a waiting request; the slot tree and its number are left as they are.
    pub(super) fn take_out_waiting(&mut self, h: u32) -> Option<WaitingRequest> {
        let waiting = self.waiting.remove(h);
        let waiting = self.kept_or_fault(waiting)?;
        self.memory.forget(h);
        self.memory.note_change(waiting.slot());
        Some(waiting)
    }

    /// Puts the queue in order as of now, if its keys are of an earlier time.
    pub(super) fn freshen_waiting(&mut self) {
        if self.waiting.is_stale() {
            self.waiting.freshen(self.now);
            self.memory.clear();
            self.journal.is_requeued = true;
        }
    }

    /// Notes new starts of many waiting requests; the slot tree is left as it is.
    pub(super) fn shift_many(&mut self, moves: &[(u32, Time)]) -> Vec<Move> {
        for (h, _) in moves {
            if let Some(from) = self.waiting.get(*h).map(|waiting| waiting.start) {
                self.journal.note_shifted(*h, from);
            }
        }
        self.memory.clear();
        self.waiting.shift_many(moves)
    }
}

/// The waiting requests of one resource.
#[derive(Debug, Clone)]
pub(super) struct WaitingList {
    order: Order,
    fixing: Option<Fraction>,
    /// By handle; handles are used again.
    entries: Vec<Option<WaitingRequest>>,
    vacant: Vec<u32>,
    queue: BTreeSet<(Key, u32)>,
    /// The keys are of an earlier time.
    is_stale: bool,
    slots: Intervals,
    /// How many start when.
    start_counts: StartCounts,
    spans: LiveIntervals,
    /// When each flexible request is fixed; empty where none ever is.
    fixings: BTreeSet<(Time, u32)>,
    /// Requests that may not lie at their first fit given those before them in order.
    loose: Marks,
    /// Those of them that have not been tried since.
    unseen: Marks,
    /// The places that were given up, around which no requests are marked yet: another request may take the same place.
    given_up: Vec<GivenUpPlace>,
    /// The places that requests have left by moving up, as far as no others were looked at for them: only where they are looked at in order.
    left_by_moves_up: Vec<Interval>,
    /// The requests by start and the time that became free, where they are looked at by that; none where they are looked at in order.
    by_freed_time: Option<LooksByFreedTime>,
}

/// The places for which waiting requests are still to be looked at or marked.
#[derive(Debug, Clone, Default)]
pub(super) struct NotedPlaces {
    /// See [`WaitingList::given_up`].
    given_up: Vec<GivenUpPlace>,
    /// See [`WaitingList::left_by_moves_up`].
    left_by_moves_up: Vec<Interval>,
    /// See [`LooksByFreedTime::freed`].
    freed: Option<FreedTime>,
}

/// A place that a request has given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GivenUpPlace {
    pub(super) slot: Interval,
    pub(super) nodes: u32,
    /// The place in the queue that it had; none where it ran.
    pub(super) key: Option<Key>,
}

impl WaitingList {
    pub(super) fn new(order: Order) -> Self {
        Self {
            order,
            fixing: None,
            entries: Vec::new(),
            vacant: Vec::new(),
            queue: BTreeSet::new(),
            is_stale: false,
            slots: Intervals::default(),
            start_counts: StartCounts::default(),
            spans: LiveIntervals::default(),
            fixings: BTreeSet::new(),
            loose: Marks::default(),
            unseen: Marks::default(),
            given_up: Vec::new(),
            left_by_moves_up: Vec::new(),
            by_freed_time: None,
        }
    }

    /// Has those looked at that can use what becomes free, the last one first; or else all that are marked, in order.
    pub(super) fn look_by_freed_time(&mut self, is_by_freed_time: bool) {
        if is_by_freed_time == self.by_freed_time.is_some() {
            return;
        }
        self.by_freed_time = is_by_freed_time.then(|| {
            let mut looks = LooksByFreedTime::default();
            looks.starts.replace(numbered_waiting(&self.entries));
            looks
        });
        if self.len() > 0 {
            self.unseen.add_all();
        }
    }

    /// Whether the requests by start are those of the list.
    #[cfg(test)]
    pub(super) fn starts_are_kept(&self) -> bool {
        let Some(looks) = &self.by_freed_time else {
            return true;
        };
        looks.starts.are_of(numbered_waiting(&self.entries))
    }

    /// Fixes requests from now on after this fraction of their wait.
    pub(super) fn set_fixing(&mut self, fixing: Option<Fraction>) {
        self.fixing = fixing;
        self.fixings = fixing_times(fixing, &self.entries);
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    pub(super) fn get(&self, handle: u32) -> Option<&WaitingRequest> {
        self.entries.get(handle as usize)?.as_ref()
    }

    /// The entry of a handle, to be damaged.
    #[cfg(test)]
    pub(super) fn entry_mut(&mut self, handle: u32) -> &mut Option<WaitingRequest> {
        &mut self.entries[handle as usize]
    }

    /// The requests that are loose, and those of them that are unseen, in order.
    #[cfg(test)]
    pub(super) fn marked(&self) -> [Vec<(Key, u32)>; 2] {
        [&self.loose, &self.unseen].map(|marks| marks.behind(&self.queue, Key::FIRST).collect())
    }

    /// All of them with their handles, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &WaitingRequest)> {
        numbered_waiting(&self.entries)
    }

    /// All of them by start.
    pub(super) fn by_start(&self) -> Vec<&WaitingRequest> {
        let mut all: Vec<&WaitingRequest> = self.iter().map(|(_, waiting)| waiting).collect();
        all.sort_unstable_by_key(|waiting| (waiting.start, waiting.request.id));
        all
    }

    /// The one that starts first.
    pub(super) fn first(&self) -> Option<(Time, u32)> {
        self.slots.first()
    }

    /// Those behind a key, in order.
    pub(super) fn behind(&self, key: Key) -> impl Iterator<Item = (Key, u32, &WaitingRequest)> {
        let behind = self.queue.range((key, u32::MAX)..);
        behind.filter_map(|(key, handle)| Some((*key, *handle, self.get(*handle)?)))
    }

    /// How many are behind a key; `most` + 1 where they are more than `most`.
    pub(super) fn count_behind(&self, key: Key, most: usize) -> usize {
        self.queue
            .range((key, u32::MAX)..)
            .take(most.saturating_add(1))
            .count()
    }

    /// Takes in a request that was placed at `start`; answers with its handle.
    pub(super) fn insert(&mut self, request: &Request, start: Time, now: Time) -> u32 {
        self.put_in(WaitingRequest {
            request: *request,
            start,
            key: self.order.key(request, now),
        })
    }

    /// Takes in a request with its place in the queue; answers with its handle.
    pub(super) fn put_in(&mut self, waiting: WaitingRequest) -> u32 {
        let handle = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            // A resource does not hold 2³² requests at a time: the slot tree's indices end first.
            u32::try_from(self.entries.len() - 1).expect("fewer than 2³² requests wait")
        });
        self.queue.insert((waiting.key, handle));
        self.note(handle, waiting);
        handle
    }

    /// A request with its place in the queue as of `now`, where places change with time.
    pub(super) fn keyed(&self, waiting: WaitingRequest, now: Time) -> WaitingRequest {
        if !self.order.changes_with_time() {
            return waiting;
        }
        let key = self.order.key(&waiting.request, now);
        WaitingRequest { key, ..waiting }
    }

    /// Takes out a request.
    pub(super) fn remove(&mut self, handle: u32) -> Option<WaitingRequest> {
        let waiting = self.take_out(handle)?;
        self.unmark(handle, waiting.key);
        Some(waiting)
    }

    /// Takes out a request, and leaves its marks.
    pub(super) fn take_out(&mut self, handle: u32) -> Option<WaitingRequest> {
        let waiting = self.entries.get_mut(handle as usize)?.take()?;
        self.forget(handle, &waiting);
        self.queue.remove(&(waiting.key, handle));
        self.vacant.push(handle);
        Some(waiting)
    }

    /// Notes that a request starts at `to`.
    pub(super) fn shift(&mut self, handle: u32, to: Time) -> Option<Move> {
        let old = *self.get(handle)?;
        self.forget(handle, &old);
        self.note(handle, WaitingRequest { start: to, ..old });
        Some(old.moved_to(to))
    }

    /// Has a request be so again, with its place in the queue; its marks are left.
    pub(super) fn put_as(&mut self, handle: u32, waiting: WaitingRequest) {
        if let Some(old) = self.get(handle).copied() {
            self.forget(handle, &old);
            self.queue.remove(&(old.key, handle));
            self.queue.insert((waiting.key, handle));
            self.note(handle, waiting);
        }
    }

    /// Has changes of marks noted, so that they can be taken back, or not any more.
    pub(super) fn note_marks(&mut self, is_noted: bool) {
        self.loose.note_changes(is_noted);
        self.unseen.note_changes(is_noted);
    }

    /// The numbers of the noted changes of both kinds of marks.
    pub(super) fn mark_positions(&self) -> (MarkPosition, MarkPosition) {
        (self.loose.position(), self.unseen.position())
    }

    /// The places that are noted now.
    pub(super) fn noted_places(&self) -> NotedPlaces {
        NotedPlaces {
            given_up: self.given_up.clone(),
            left_by_moves_up: self.left_by_moves_up.clone(),
            freed: self.by_freed_time.as_ref().map(|looks| looks.freed.clone()),
        }
    }

    /// Has the marks be as they were at these positions, when these places were noted.
    pub(super) fn take_marks_back(
        &mut self,
        (loose, unseen): (MarkPosition, MarkPosition),
        places: NotedPlaces,
    ) {
        self.loose.take_back(loose);
        self.unseen.take_back(unseen);
        (self.given_up, self.left_by_moves_up) = (places.given_up, places.left_by_moves_up);
        if let (Some(looks), Some(freed)) = (&mut self.by_freed_time, places.freed) {
            looks.freed = freed;
        }
    }

    /// Notes new starts of many requests. O(n log n), for any moves.
    pub(super) fn shift_many(&mut self, moves: &[(u32, Time)]) -> Vec<Move> {
        let mut moved = Vec::with_capacity(moves.len());
        for (handle, to) in moves {
            if let Some(waiting) = self.entries.get_mut(*handle as usize).and_then(Option::as_mut) {
                moved.push(waiting.moved_to(*to));
                waiting.start = *to;
            }
        }
        let all = || numbered_waiting(&self.entries);
        self.slots
            .replace(all().map(|(handle, each)| (each.slot(), handle)));
        self.start_counts = all().map(|(_, each)| each.start).collect();
        self.spans
            .replace(all().filter_map(|(handle, each)| Some((each.span()?, handle))));
        self.fixings = fixing_times(self.fixing, &self.entries);
        if let Some(looks) = &mut self.by_freed_time {
            looks.starts.replace(numbered_waiting(&self.entries));
        }
        moved
    }

    fn note(&mut self, handle: u32, waiting: WaitingRequest) {
        self.slots.insert(waiting.slot(), handle);
        self.start_counts.add(waiting.start);
        if let Some(span) = waiting.span() {
            self.spans.insert(span, handle);
        }
        if let Some(at) = fixed_from(self.fixing, &waiting) {
            self.fixings.insert((at, handle));
        }
        if let Some(looks) = &mut self.by_freed_time {
            looks.starts.insert(handle, &waiting);
        }
        self.entries[handle as usize] = Some(waiting);
    }

    fn forget(&mut self, handle: u32, waiting: &WaitingRequest) {
        self.slots.remove(waiting.slot(), handle);
        self.start_counts.remove(waiting.start);
        if let Some(span) = waiting.span() {
            self.spans.remove(span, handle);
        }
        if let Some(at) = fixed_from(self.fixing, waiting) {
            self.fixings.remove(&(at, handle));
        }
        if let Some(looks) = &mut self.by_freed_time {
            looks.starts.remove(handle, waiting.start);
        }
    }

    /// The next request that has waited long enough by `now` to be fixed.
    pub(super) fn to_be_fixed(&self, now: Time) -> Option<u32> {
        let (at, handle) = self.fixings.first()?;
        (*at <= now).then_some(*handle)
    }

    /// Fixes a request to its slot: with one possible start it lies at its first fit. Answers with its slot.
    pub(super) fn fix(&mut self, handle: u32, now: Time) -> Option<Interval> {
        let old = *self.get(handle)?;
        let request = old.request.fixed_to(old.start);
        let key = self.order.key(&request, now);
        let new = WaitingRequest { request, key, ..old };
        self.forget(handle, &old);
        self.queue.remove(&(old.key, handle));
        self.unmark(handle, old.key);
        self.queue.insert((key, handle));
        self.note(handle, new);
        Some(new.slot())
    }

    /// Lets time pass, and gives the requests that may have risen by `now` their new places in the queue: they were placed after
    /// some that they now precede. Answers with the end of the last slot of these; `None` where none has risen, [`Time::MAX`]
    /// where the whole queue has to be sorted again.
    pub(super) fn advance(&mut self, now: Time) -> Option<Time> {
        let entries = &self.entries;
        let entry = |handle: u32| entries.get(handle as usize).and_then(Option::as_ref);
        self.spans.advance(now, |handle| Some(entry(handle)?.span()?.end));
        if !self.order.changes_with_time() || self.queue.is_empty() {
            return None;
        }
        let risen: Vec<u32> = match self.order {
            Order::Lff if !self.is_stale => self.spans.started().take(RISEN_MAX + 1).collect(),
            _ => Vec::new(),
        };
        if !matches!(self.order, Order::Lff) || self.is_stale || risen.len() > RISEN_MAX {
            self.is_stale = true;
            self.loosen_all();
            return Some(Time::MAX);
        }
        let mut reach = None;
        for handle in risen {
            let Some(waiting) = &mut self.entries[handle as usize] else {
                continue;
            };
            let (old, new) = (waiting.key, self.order.key(&waiting.request, now));
            waiting.key = new;
            self.queue.remove(&(old, handle));
            self.queue.insert((new, handle));
            self.loose.remove(old, handle);
            self.loose.add(new, handle);
            // Others stand where they stood: only one that has not been tried yet is to be tried.
            if self.unseen.remove(old, handle) {
                self.unseen.add(new, handle);
            }
            reach = reach.max(Some(waiting.slot().end));
        }
        reach
    }

    /// Whether the keys are of an earlier time.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Puts the whole queue in order as of `now`. O(n log n).
    pub(super) fn freshen(&mut self, now: Time) {
        let mut queue = Vec::with_capacity(self.queue.len());
        for (handle, entry) in (0_u32..).zip(&mut self.entries) {
            if let Some(waiting) = entry {
                waiting.key = self.order.key(&waiting.request, now);
                queue.push((waiting.key, handle));
            }
        }
        queue.sort_unstable();
        self.queue = queue.into_iter().collect();
        self.is_stale = false;
        self.loosen_all();
    }

    /// Notes that all behind a key lie at their first fit.
    pub(super) fn tighten_behind(&mut self, key: Key) {
        self.loose.clear_behind(key);
        self.unseen.clear_behind(key);
        if key == Key::FIRST
            && let Some(looks) = &mut self.by_freed_time
        {
            looks.freed.clear();
        }
    }

    /// Those behind a key not known to lie at their first fit, in order.
    pub(super) fn loose_behind(&self, key: Key) -> impl Iterator<Item = (Key, u32)> {
        self.loose.behind(&self.queue, key)
    }

    /// The first marked request in order that may be able to move up as the plan stands, which is not looked at any more then.
    fn next_marked(&mut self) -> Option<u32> {
        let (key, handle) = self.unseen.behind(&self.queue, Key::FIRST).next()?;
        self.unseen.clear_up_to(key);
        Some(handle)
    }

    /// The requests behind `key` with slots that meet `interval`, as far as the work lasts: each one that is looked at counts.
    pub(super) fn meeting<'a>(
        &'a self,
        key: Key,
        interval: Interval,
        work: &mut Work,
    ) -> impl Iterator<Item = (u32, &'a WaitingRequest)> {
        // Near the end of the queue there are fewer behind the key than near the interval.
        let few = self.count_behind(key, FEW) <= FEW;
        let behind = self.queue.range((key, u32::MAX)..).map(|(_, handle)| *handle);
        let behind = few.then_some(behind).into_iter().flatten();
        let near = (!few).then(|| self.slots.near(interval)).into_iter().flatten();
        let looked = behind.chain(near).take_while(move |_| work.looks(LOOK));
        looked.filter_map(move |handle| {
            let waiting = self.get(handle)?;
            (waiting.key > key && waiting.slot().meets(interval)).then_some((handle, waiting))
        })
    }

    /// The requests with slots that meet `interval`.
    pub(super) fn lying_in(&self, interval: Interval) -> impl Iterator<Item = &WaitingRequest> {
        let near = self.slots.near(interval).filter_map(|handle| self.get(handle));
        near.filter(move |waiting| waiting.slot().meets(interval))
    }

    /// The requests that start in `interval`.
    pub(super) fn starting_in(&self, interval: Interval) -> impl Iterator<Item = &WaitingRequest> {
        let starting = self.slots.starting_in(interval);
        starting.filter_map(|handle| self.get(handle))
    }

    /// The first requests that start in `interval`, at most `most` of each length, and how many start there in all.
    pub(super) fn first_starting_in(
        &self,
        interval: Interval,
        most: usize,
    ) -> (impl Iterator<Item = &WaitingRequest>, usize) {
        let first = self.slots.first_starting_in(interval, most);
        let walk = |part| self.slots.starting_in(part).count();
        let count = self.start_counts.within(interval, walk);
        (first.filter_map(|handle| self.get(handle)), count)
    }

    /// The requests that may be able to start earlier when something in `freed` is free, as far as the work lasts: each one that
    /// is looked at counts.
    pub(super) fn requests_near<'a>(
        &'a self,
        freed: Interval,
        work: &mut Work,
    ) -> impl Iterator<Item = (u32, &'a WaitingRequest)> {
        let looked = self.spans.near(freed).take_while(move |_| work.looks(STRAY));
        looked.filter_map(move |handle| {
            let waiting = self.get(handle)?;
            waiting.span()?.meets(freed).then_some((handle, waiting))
        })
    }

    /// The length in binary orders of magnitude that three quarters of the requests do not exceed.
    pub(super) fn usual_length(&self) -> u32 {
        self.slots.class_of_most()
    }
}

/// The requests of a list with their handles, in no order.
fn numbered_waiting(entries: &[Option<WaitingRequest>]) -> impl Iterator<Item = (u32, &WaitingRequest)> {
    let numbered = (0_u32..).zip(entries);
    numbered.filter_map(|(handle, entry)| Some((handle, entry.as_ref()?)))
}

/// When each of them is fixed.
fn fixing_times(fixing: Option<Fraction>, entries: &[Option<WaitingRequest>]) -> BTreeSet<(Time, u32)> {
    let at = |(handle, each)| Some((fixed_from(fixing, each)?, handle));
    numbered_waiting(entries).filter_map(at).collect()
}

/// When a request is fixed: after `fixing` of its wait from submission to start.
fn fixed_from(fixing: Option<Fraction>, waiting: &WaitingRequest) -> Option<Time> {
    let fraction = fixing.filter(|_| !waiting.request.is_rigid())?;
    let submitted = waiting.request.submitted;
    Some(submitted + fraction.rounded_up(waiting.start - submitted))
}
