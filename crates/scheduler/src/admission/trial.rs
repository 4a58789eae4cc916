//! One attempt to place a newcomer and everything behind it. The plan itself is only read: what the attempt changes is laid
//! over it where somebody searches, so an attempt that fails leaves nothing to undo.
//!
//! Why most requests need not be placed again. Let j lie at its first fit given those before it. When they are placed
//! again, the plan that j finds differs from the one it was placed in by what was added (the newcomer's slot, the new slots
//! of requests that moved) and by what was freed (their old slots). If nothing was added to j's slot and nothing freed
//! between its ready time and its completion, j's first fit is its slot. If something was freed, a start that is new to j
//! must lie within j's duration of it. So an agenda, in queue order, holds exactly the requests that a change reaches and
//! those not known to lie at their first fit.

use super::memory::{Memory, Moves};
use super::{Schedule, Waiting};
use crate::queue::Key;
use crate::request::Request;
use crate::time::{Interval, Seconds, Time};
use std::collections::BTreeMap;
use std::iter::Peekable;

/// How much longer each part of a window is that is searched after the last one.
const REACH_GROWTH: Seconds = 4;

/// Why a request is to be placed again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    handle: u32,
    /// Starts before its old one that are to be tried: from here
    from: Time,
    /// to here, exclusive.
    until: Time,
    /// Something was added to its old slot.
    contested: bool,
}

/// Who found no place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Obstacle {
    Newcomer,
    Waiting {
        /// Its place in the queue.
        key: Key,
        /// Where the newcomer had been placed.
        placed: Time,
    },
}

/// Nodes that an attempt took or gave back.
#[derive(Debug, Clone, Copy)]
struct Change {
    slot: Interval,
    nodes: i64,
}

/// What an attempt has come to so far.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Start of the newcomer.
    pub(super) start: Time,
    /// Requests that came to lie elsewhere, with their new starts.
    pub(super) moved: Vec<(u32, Time)>,
    agenda: BTreeMap<Key, Turn>,
    /// How the plan would change by what was placed so far.
    changes: Vec<Change>,
}

impl Turn {
    /// Also for another reason.
    fn join(&mut self, other: Self) {
        self.from = self.from.min(other.from);
        self.until = self.until.max(other.until);
        self.contested |= other.contested;
    }
}

impl Trial {
    /// Whose turn it is: the first in order of those noted and those that are loose.
    fn next_turn(&mut self, loose: &mut Peekable<impl Iterator<Item = (Key, Turn)>>) -> Option<(Key, Turn)> {
        let noted = self.agenda.first_key_value().map(|(key, _)| *key);
        let Some((key, mut turn)) = loose.next_if(|(key, _)| noted.is_none_or(|noted| *key <= noted)) else {
            return self.agenda.pop_first();
        };
        if let Some(also) = self.agenda.remove(&key) {
            turn.join(also);
        }
        Some((key, turn))
    }

    fn change(&mut self, slot: Interval, nodes: i64, moves: &mut Moves) {
        self.changes.push(Change { slot, nodes });
        moves.add(slot, nodes);
    }

    fn shift(&mut self, handle: u32, waiting: &Waiting, to: Time, moves: &mut Moves) {
        let (old, new) = (waiting.slot(), waiting.request.slot(to));
        let nodes = i64::from(waiting.request.nodes);
        self.moved.push((handle, to));
        self.change(old, nodes, moves);
        self.change(new, -nodes, moves);
    }
}

impl Schedule {
    /// Places the newcomer, if any, and everything behind the key `behind` again, as if those had been lifted before; and
    /// looks at what `freed` lets move.
    ///
    /// # Errors
    /// The first request that finds no place.
    pub(super) fn attempt(
        &self,
        newcomer: Option<&Request>,
        behind: Key,
        freed: Option<Interval>,
        memory: &mut Memory,
    ) -> Result<Trial, Obstacle> {
        let mut trial = Trial::default();
        // Where everybody lies at its first fit, an attempt stays near the newcomer: not worth remembering.
        let mut moves = if self.loose.is_empty() {
            Moves::default()
        } else {
            memory.moves()
        };
        if let Some(request) = newcomer {
            let start = self.newcomers_start(behind, request).ok_or(Obstacle::Newcomer)?;
            let slot = request.slot(start);
            trial.start = start;
            trial.change(slot, -i64::from(request.nodes), &mut moves);
            self.note(&mut trial, &self.in_the_way(behind, slot));
        }
        if let Some(freed) = freed {
            self.note(&mut trial, &self.moving_up(behind, freed));
        }
        let mut loose = self.loose_behind(behind).peekable();
        while let Some((key, turn)) = trial.next_turn(&mut loose) {
            let Some(waiting) = &self.waiting[turn.handle as usize] else {
                continue;
            };
            let request = &waiting.request;
            let window = request.window_at(self.now);
            if let Some(outcome) = memory.recall(turn.handle, window.start, &moves) {
                let Some(start) = outcome.start else {
                    let placed = trial.start;
                    return Err(Obstacle::Waiting { key, placed });
                };
                if start != waiting.start {
                    self.note(&mut trial, &outcome.turns);
                    trial.shift(turn.handle, waiting, start, &mut moves);
                }
                continue;
            }
            let Some(start) = self.new_start(&trial, key, &turn, waiting) else {
                memory.keep(turn.handle, window, &moves, None, Vec::new());
                let placed = trial.start;
                return Err(Obstacle::Waiting { key, placed });
            };
            let mut turns = Vec::new();
            if start != waiting.start {
                turns = self.in_the_way(key, request.slot(start));
                turns.append(&mut self.moving_up(key, waiting.slot()));
                self.note(&mut trial, &turns);
            }
            let region = Interval::new(window.start, start + request.duration);
            memory.keep(turn.handle, region, &moves, Some(start), turns);
            if start != waiting.start {
                trial.shift(turn.handle, waiting, start, &mut moves);
            }
        }
        Ok(trial)
    }

    /// The first fit of a newcomer when nothing behind the key `behind` is there.
    fn newcomers_start(&self, behind: Key, request: &Request) -> Option<Time> {
        let window = request.window_at(self.now);
        // With the later ones still there it cannot start earlier, so only what lies before matters.
        let latest = self.tree.earliest_fit(request.nodes, request.duration, window);
        if latest == Some(window.start) {
            return latest;
        }
        let end = latest.map_or(window.end, |start| start + request.duration);
        let trial = Trial::default();
        let sooner = self.first_fit(&trial, behind, request, Interval::new(window.start, end), None);
        sooner.or(latest)
    }

    /// The first fit of a request whose turn it is.
    fn new_start(&self, trial: &Trial, key: Key, turn: &Turn, waiting: &Waiting) -> Option<Time> {
        let Waiting { request, start, .. } = waiting;
        let own = Some(waiting.slot());
        if turn.from < turn.until {
            let earlier = Interval::new(turn.from, turn.until + (request.duration - 1));
            if let Some(start) = self.first_fit(trial, key, request, earlier, own) {
                return Some(start);
            }
        }
        if !turn.contested {
            return Some(*start);
        }
        // Near its old slot first, since each search looks at everything in its window.
        let mut reach = request.duration;
        let mut from = *start;
        loop {
            let last = request.deadline - request.duration;
            let until = last.min(*start + reach);
            let later = Interval::new(from, until + request.duration);
            let found = self.first_fit(trial, key, request, later, own);
            if found.is_some() || until == last {
                return found;
            }
            from = until;
            reach *= REACH_GROWTH;
        }
    }

    /// The first fit in `window` when nothing that comes behind `key` is there, nor what lies in the slot `own` by itself.
    fn first_fit(
        &self,
        trial: &Trial,
        key: Key,
        request: &Request,
        window: Interval,
        own: Option<Interval>,
    ) -> Option<Time> {
        let own = own.map(|slot| (slot, i64::from(request.nodes)));
        let later = self
            .meeting(key, window)
            .map(|(_, w)| (w.slot(), i64::from(w.request.nodes)));
        let placed = trial.changes.iter().map(|c| (c.slot, c.nodes));
        let changes = later
            .chain(own)
            .chain(placed.filter(|(slot, _)| slot.meets(window)));
        let mut borders: Vec<(Time, i64)> = changes
            .flat_map(|(slot, nodes)| [(slot.start, nodes), (slot.end, -nodes)])
            .collect();
        self.tree
            .earliest_fit_changed(request.nodes, request.duration, window, &mut borders)
    }

    /// Those behind `behind` not known to lie at their first fit, which are placed again whatever happens.
    fn loose_behind(&self, behind: Key) -> impl Iterator<Item = (Key, Turn)> {
        self.loose
            .range((behind, u32::MAX)..)
            .filter_map(|(key, handle)| {
                let waiting = self.waiting[*handle as usize].as_ref()?;
                let turn = Turn {
                    handle: *handle,
                    from: waiting.request.window_at(self.now).start,
                    until: waiting.start,
                    contested: false,
                };
                Some((*key, turn))
            })
    }

    fn note(&self, trial: &mut Trial, turns: &[Turn]) {
        for turn in turns {
            if let Some(waiting) = &self.waiting[turn.handle as usize] {
                let noted = trial.agenda.entry(waiting.key);
                noted.and_modify(|noted| noted.join(*turn)).or_insert(*turn);
            }
        }
    }

    /// Those behind `key` whose slots meet what was added: they must find out whether they can stay.
    fn in_the_way(&self, key: Key, added: Interval) -> Vec<Turn> {
        let contested = |(handle, _)| Turn {
            handle,
            from: Time::MAX,
            until: Time::MIN,
            contested: true,
        };
        self.meeting(key, added).map(contested).collect()
    }

    /// Those behind `key` that could start earlier because of what was freed.
    fn moving_up(&self, key: Key, freed: Interval) -> Vec<Turn> {
        let starts = (freed.start - self.duration_max, 0)..(freed.end + self.slack_max, u32::MAX);
        let reached = self.by_start.range(starts).filter_map(|(start, handle)| {
            let Waiting {
                request, key: later, ..
            } = self.waiting[*handle as usize].as_ref()?;
            let ready = request.window_at(self.now).start;
            let turn = Turn {
                handle: *handle,
                from: ready.max(freed.start - (request.duration - 1)),
                until: (*start).min(freed.end),
                contested: false,
            };
            (turn.from < turn.until && *later > key).then_some(turn)
        });
        reached.collect()
    }

    /// The waiting requests behind `key` whose slots meet `interval`.
    fn meeting(&self, key: Key, interval: Interval) -> impl Iterator<Item = (u32, &Waiting)> {
        let starts = (interval.start - self.duration_max, 0)..(interval.end, 0);
        self.by_start.range(starts).filter_map(move |(_, h)| {
            let waiting = self.waiting[*h as usize].as_ref()?;
            (waiting.key > key && waiting.slot().meets(interval)).then_some((*h, waiting))
        })
    }
}
