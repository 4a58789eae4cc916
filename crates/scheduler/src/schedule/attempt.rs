//! One attempt to place a newcomer and everything behind it, made on the plan itself and taken back where it fails.
//!
//! Why most requests need not be placed again. Let j lie at its first fit given those before it. When they are placed again, j
//! finds another plan than at its own placement. The two differ in two things: added slots (the newcomer's slot, the new slots of
//! requests that moved) and freed slots (their old slots). If nothing was added to j's slot and nothing freed between its ready
//! time and its completion, j's first fit is its slot. If something was freed, a start that is new to j must lie within j's
//! duration of it. So an agenda, in queue order, holds exactly the requests that a change reaches and those not known to lie at
//! their first fit.
//!
//! The requests behind j are still in the plan when it is j's turn, and count as free where j searches: their slots are laid over
//! the plan. The requests placed so far are in the plan, which may therefore hold more than its capacity until their turn has
//! come.
//!
//! The makeshift places a newcomer without an attempt: where it fits the plan as it stands, else where all in its way fit
//! elsewhere as the plan stands. This costs a few searches for each of these, for any number of waiting requests. By the standing
//! rule it comes before algorithm 1; by the published one after it, where the work of a decision is spent.

use super::least_gain::LeastGain;
use super::memory::{Memory, Moves, NewPlace};
use super::newcomer::Newcomer;
use super::trial::{Obstacle, Trial, Undo};
use super::waiting::{WaitingList, WaitingRequest};
use super::work::{BORDER, LOOK, SEARCH, TURN, VISIT, Work};
use crate::queue::Key;
use crate::request::Request;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};
use std::collections::BTreeMap;

/// How much longer each part of a window is that is searched after the last one,
const REACH_GROWTH: Seconds = 4;
/// as long as the last one took no more work than this: work beyond the place that is found is of no use.
const REACH_WORK_MAX: u64 = 2_000;

/// Places that are tried for a newcomer that does not fit as the plan stands.
const PLACES_MAX: u32 = 8;
/// Blocks of slots that are looked at for the other place of one request, from either end of its window.
const VISITS_MAX: u64 = 24;
/// Requests in the way of one place that are looked at.
const LOOKED_AT_MAX: u64 = 4_096;

/// Why a request is to be placed again.
#[derive(Debug, Clone, Copy)]
struct AttemptTurn {
    handle: u32,
    /// Starts before its old one that are to be tried: from here
    from: Time,
    /// to here, exclusive.
    until: Time,
    /// Something was added to its old slot.
    contested: bool,
}

impl AttemptTurn {
    /// Also for another reason.
    fn join(&mut self, other: Self) {
        self.from = self.from.min(other.from);
        self.until = self.until.max(other.until);
        self.contested |= other.contested;
    }
}

/// The parts that an attempt works on.
pub(super) struct Attempt<'a> {
    pub(super) list: &'a WaitingList,
    pub(super) tree: &'a mut SlotTree,
    pub(super) memory: &'a mut Memory,
    pub(super) work: &'a mut Work,
    pub(super) now: Time,
    pub(super) least_gain: LeastGain,
}

impl Attempt<'_> {
    /// Where a request fits as the plan stands.
    pub(super) fn standing_fit(&mut self, request: &Request) -> Option<Time> {
        self.search(request, request.window_at(self.now), u64::MAX)
    }

    /// The earliest fit in a window, if it is found within this many visits of blocks.
    pub(super) fn search(&mut self, request: &Request, window: Interval, most: u64) -> Option<Time> {
        let mut visits = most;
        let found = self
            .tree
            .earliest_fit_within(request.nodes, request.duration, window, &mut visits);
        self.work.spend(VISIT * (most - visits));
        found
    }

    /// Places the newcomer, if any, and everything behind it again, as if those had been lifted before, without one everything;
    /// and looks at the moves that `freed` allows. Costs as much as placing again the requests that move and the requests in their way,
    /// plus a look at the memory of each request that is not known to lie at its first fit.
    ///
    /// # Errors
    /// The first request that finds no place, or that the work is spent; the plan is as it was then.
    pub(super) fn run(
        &mut self,
        newcomer: Option<&Newcomer>,
        freed: Option<Interval>,
    ) -> Result<Trial, Obstacle> {
        let mut trial = Trial::new();
        match self.place(&mut trial, newcomer, freed) {
            // A place found with the work spent may not be the first fit.
            Ok(()) if !self.work.is_spent() => Ok(trial),
            result => {
                trial.take_back(self.tree);
                let spent = self.work.is_spent();
                Err(result.err().filter(|_| !spent).unwrap_or(Obstacle::Spent))
            }
        }
    }

    fn place(
        &mut self,
        trial: &mut Trial,
        newcomer: Option<&Newcomer>,
        freed: Option<Interval>,
    ) -> Result<(), Obstacle> {
        let list = self.list;
        let behind = newcomer.map_or(Key::FIRST, |newcomer| newcomer.behind);
        let mut agenda = BTreeMap::new();
        let mut loose = list.loose_behind(behind).peekable();
        // Where all requests lie at their first fit, an attempt stays near the newcomer: not worth remembering.
        let mut moves = if loose.peek().is_some() {
            self.memory.moves()
        } else {
            Moves::default()
        };
        if let Some(newcomer) = newcomer {
            let request = &newcomer.request;
            let start = self.newcomers_start(newcomer).ok_or(Obstacle::Newcomer)?;
            let slot = request.slot(start);
            trial.start = start;
            self.lay(trial, slot, -i64::from(request.nodes));
            moves.add(slot, -i64::from(request.nodes));
            self.note_in_the_way(behind, slot, &mut agenda);
        }
        if let Some(freed) = freed {
            self.note_moving_up(behind, freed, &mut agenda);
        }
        loop {
            let noted = agenda.first_key_value().map(|(key, _)| *key);
            let next = loose.next_if(|(key, _)| noted.is_none_or(|noted| *key <= noted));
            let (key, turn) = match next {
                Some((key, handle)) => {
                    let Some(waiting) = list.get(handle) else { continue };
                    let mut turn = AttemptTurn {
                        handle,
                        from: waiting.request.window_at(self.now).start,
                        until: waiting.start,
                        contested: false,
                    };
                    if let Some(also) = agenda.remove(&key) {
                        turn.join(also);
                    }
                    (key, turn)
                }
                None => match agenda.pop_first() {
                    Some(next) => next,
                    None => return Ok(()),
                },
            };
            self.work.spend(TURN);
            if self.work.is_spent() {
                return Err(Obstacle::Spent);
            }
            let Some(waiting) = list.get(turn.handle) else {
                continue;
            };
            let request = &waiting.request;
            let window = request.window_at(self.now);
            let start = if let Some(NewPlace(start)) = self.memory.recall(turn.handle, window.start, &moves) {
                start
            } else {
                let start = self.new_start(key, &turn, waiting);
                if self.work.is_spent() {
                    return Err(Obstacle::Spent);
                }
                let end = start.map_or(window.end, |start| start + request.duration);
                let region = Interval::new(window.start, end);
                self.memory.keep(turn.handle, region, &moves, start);
                start
            };
            let Some(start) = start else {
                let placed = trial.start;
                return Err(Obstacle::Waiting { key, placed });
            };
            if start != waiting.start {
                let (old, new) = (waiting.slot(), request.slot(start));
                let nodes = i64::from(request.nodes);
                self.note_in_the_way(key, new, &mut agenda);
                self.note_moving_up(key, old, &mut agenda);
                trial.moved.push((turn.handle, start));
                self.lay(trial, old, nodes);
                self.lay(trial, new, -nodes);
                // The cost of the move where it is taken over.
                self.work.spend(2 * SEARCH);
                moves.add(old, nodes);
                moves.add(new, -nodes);
            }
        }
    }

    /// Gives nodes back in a slot of the plan, or takes them if negative.
    pub(super) fn lay(&mut self, trial: &mut Trial, slot: Interval, nodes: i64) {
        self.work.spend(SEARCH);
        self.tree.lay(slot, nodes);
        if let Undo::Changes(changes) = &mut trial.undo {
            // To take it back costs the same again.
            self.work.spend(SEARCH);
            changes.push((slot, nodes));
        }
    }

    /// The first fit of a newcomer when nothing behind it is there.
    fn newcomers_start(&mut self, one_newcomer: &Newcomer) -> Option<Time> {
        // With the later ones still there it cannot start earlier, so only the time before matters.
        let end = one_newcomer.request.window_at(self.now).end - (one_newcomer.request.duration - 1);
        let starts = (one_newcomer.not_before, one_newcomer.standing.unwrap_or(end));
        let sooner = self.first_fit(one_newcomer.behind, &one_newcomer.request, starts, None);
        sooner.or(one_newcomer.standing)
    }

    /// The first fit of a request at its turn.
    fn new_start(&mut self, key: Key, turn: &AttemptTurn, waiting: &WaitingRequest) -> Option<Time> {
        let WaitingRequest { request, start, .. } = waiting;
        let own = Some(waiting.slot());
        let until = if turn.contested {
            turn.until
        } else {
            let enough = self.least_gain.of(request, *start);
            turn.until.min(*start - (enough - 1))
        };
        let found = self.first_fit(key, request, (turn.from, until), own);
        if found.is_some() {
            return found;
        }
        if !turn.contested {
            return Some(*start);
        }
        let end = request.deadline - (request.duration - 1);
        self.first_fit(key, request, (*start, end), own)
    }

    /// The first fit that starts in `starts` when no request behind `key` is there, nor the one that lies in the slot `own` by
    /// itself. Near first, since each search looks at everything in its window.
    fn first_fit(
        &mut self,
        key: Key,
        request: &Request,
        starts: (Time, Time),
        own: Option<Interval>,
    ) -> Option<Time> {
        let own = own.map(|slot| (slot, i64::from(request.nodes)));
        let (mut from, until) = starts;
        let mut reach = request.duration;
        while from < until && !self.work.is_spent() {
            let to = until.min(from + reach);
            let left = self.work.left();
            let window = Interval::new(from, to + (request.duration - 1));
            let later = self.list.meeting(key, window, self.work);
            let later = later.map(|(_, w)| (w.slot(), i64::from(w.request.nodes)));
            let mut borders: Vec<(Time, i64)> = later
                .chain(own)
                .flat_map(|(slot, nodes)| [(slot.start, nodes), (slot.end, -nodes)])
                .collect();
            self.work.spend(SEARCH + BORDER * borders.len() as u64);
            if self.work.is_spent() {
                return None;
            }
            let mut met = 0;
            let found = self.tree.earliest_fit_changed(
                request.nodes,
                request.duration,
                window,
                &mut borders,
                &mut met,
            );
            self.work.spend(LOOK * met);
            if found.is_some() {
                return found;
            }
            from = to;
            if left - self.work.left() <= REACH_WORK_MAX {
                reach = reach.saturating_mul(REACH_GROWTH);
            }
        }
        None
    }

    /// Notes the requests behind `key` with slots that meet the added one: they must be checked whether they can stay.
    fn note_in_the_way(&mut self, key: Key, added: Interval, agenda: &mut BTreeMap<Key, AttemptTurn>) {
        let list = self.list;
        let mut noted = 0;
        for (handle, waiting) in list.meeting(key, added, self.work) {
            noted += TURN;
            let turn = AttemptTurn {
                handle,
                from: Time::MAX,
                until: Time::MIN,
                contested: true,
            };
            note_attempt_turn(agenda, waiting.key, turn);
        }
        self.work.spend(noted);
    }

    /// Notes the requests behind `key` that could start earlier because of the freed interval.
    fn note_moving_up(&mut self, key: Key, freed: Interval, agenda: &mut BTreeMap<Key, AttemptTurn>) {
        let list = self.list;
        let mut noted = 0;
        for (handle, waiting) in list.requests_near(freed, self.work) {
            if waiting.key <= key {
                continue;
            }
            noted += TURN;
            let request = &waiting.request;
            let ready = request.window_at(self.now).start;
            let turn = AttemptTurn {
                handle,
                from: ready.max(freed.start - (request.duration - 1)),
                until: waiting.start.min(freed.end),
                contested: false,
            };
            if turn.from < turn.until {
                note_attempt_turn(agenda, waiting.key, turn);
            }
        }
        self.work.spend(noted);
    }
}

impl Attempt<'_> {
    /// Places a newcomer without placing everything behind it again. `None` where no such place is found; the plan is as it was
    /// then.
    pub(super) fn run_makeshift(&mut self, newcomer: &Newcomer) -> Option<Trial> {
        let Newcomer {
            request, standing, ..
        } = newcomer;
        let window = request.window_at(self.now);
        if let Some(start) = *standing {
            return Some(self.run_standing(request, start));
        }
        let last = window.end - request.duration;
        // The nearest places first, then ever further ones, and the last one.
        let mut step = request.duration.max((last - window.start) >> PLACES_MAX);
        let mut start = window.start;
        for _ in 0..PLACES_MAX {
            if self.work.is_spent() {
                return None;
            }
            if let Some(trial) = self.make_way(request, start) {
                return Some(trial);
            }
            if start >= last {
                return None;
            }
            start = last.min(start + step);
            step = step.saturating_mul(2);
        }
        self.make_way(request, last)
    }

    /// Places a newcomer at `start`, where it fits as the plan stands.
    pub(super) fn run_standing(&mut self, request: &Request, start: Time) -> Trial {
        let mut trial = Trial::new();
        trial.start = start;
        self.take(&mut trial, request, start);
        trial
    }

    /// Places a newcomer where those in its way, the most flexible first, have other places.
    fn make_way(&mut self, request: &Request, start: Time) -> Option<Trial> {
        let slot = request.slot(start);
        let list = self.list;
        let mut others: Vec<(Seconds, u32)> = self.work.within(LOOK * LOOKED_AT_MAX, |work| {
            let meeting = list.meeting(Key::FIRST, slot, work);
            let flexible = meeting.filter(|(_, other)| !other.request.is_rigid());
            flexible
                .map(|(handle, other)| (other.request.deadline - other.slot().end, handle))
                .collect()
        });
        others.sort_unstable_by(|a, b| b.cmp(a));
        let mut trial = Trial::new();
        let mut lifted = Vec::new();
        for (_, handle) in others {
            if self.tree.min_free(slot) >= request.nodes || self.work.is_spent() {
                break;
            }
            let Some(other) = list.get(handle) else { continue };
            self.give_back(&mut trial, &other.request, other.start);
            lifted.push((handle, other));
        }
        self.work.spend(SEARCH * (1 + lifted.len() as u64));
        if self.tree.min_free(slot) < request.nodes {
            trial.take_back(self.tree);
            return None;
        }
        trial.start = start;
        self.take(&mut trial, request, start);
        // Those lifted last are the least flexible.
        for (handle, other) in lifted.into_iter().rev() {
            let to = self.other_place(&other.request, other.start);
            let Some(to) = to.filter(|_| !self.work.is_spent()) else {
                trial.take_back(self.tree);
                return None;
            };
            self.take(&mut trial, &other.request, to);
            if to != other.start {
                trial.moved.push((handle, to));
            }
        }
        Some(trial)
    }

    /// Where a lifted request goes: where it was if that is still free, else to the earliest place, or where that is far from
    /// its window's begin to the latest.
    pub(super) fn other_place(&mut self, request: &Request, old: Time) -> Option<Time> {
        self.work.spend(SEARCH);
        if self.tree.min_free(request.slot(old)) >= request.nodes {
            return Some(old);
        }
        self.place_near_an_end(request, VISITS_MAX)
    }

    /// A free place for a request: the earliest one, or where that is far from its window's begin the latest, as far as it is found
    /// within so many visits of blocks from either end.
    pub(super) fn place_near_an_end(&mut self, request: &Request, most: u64) -> Option<Time> {
        let window = request.window_at(self.now);
        let earliest = self.search(request, window, most);
        earliest.or_else(|| {
            let mut visits = most;
            let latest = self
                .tree
                .latest_fit_within(request.nodes, request.duration, window, &mut visits);
            self.work.spend(VISIT * (most - visits));
            latest
        })
    }

    pub(super) fn take(&mut self, trial: &mut Trial, request: &Request, start: Time) {
        self.lay(trial, request.slot(start), -i64::from(request.nodes));
    }

    pub(super) fn give_back(&mut self, trial: &mut Trial, request: &Request, start: Time) {
        self.lay(trial, request.slot(start), request.nodes.into());
    }
}

fn note_attempt_turn(agenda: &mut BTreeMap<Key, AttemptTurn>, key: Key, turn: AttemptTurn) {
    let noted = agenda.entry(key);
    noted.and_modify(|noted| noted.join(turn)).or_insert(turn);
}
