//! Displacement: a newcomer that does not fit is let in where few others have other places.
//!
//! The newcomer is placed where some requests have to leave (a *way*). Each of these goes to a free place, or where it has none to
//! a place that others have to leave in turn (an ejection chain, as Nagata and Bräysy use it for vehicle routes, 2009: what could
//! not be placed before is not made to leave again so soon). Of the chains that end, the one with the fewest moves is taken, of
//! these the one with the least delay. The plan between the requests stays as it is, so the search costs the same however many
//! wait.

use super::attempt::Attempt;
use super::least_gain::LeastGain;
use super::leaving::{ELEMENTS, Occupant, lacks_in_slot, lightest_leaving, steps_cut_at_borders};
use super::trial::Trial;
use super::waiting::WaitingRequest;
use super::work::{LOOK, SEARCH};
use crate::fraction::Fraction;
use crate::queue::{Key, mix_bits};
use crate::request::Request;
use crate::time::{Interval, Seconds, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Ways that are tried for the newcomer.
const WAYS_MAX: usize = 16;
/// Requests that move for one newcomer at most.
const MOVES_MAX: usize = 32;
/// Places that are given in one chain.
const LINKS_MAX: usize = 64;
/// Steps of the plan that are looked at for a way, at the beginning of a window and as far again at its end. Few are enough:
/// many ways tried are worth more than one well chosen.
const STEPS_MAX: usize = 32;
/// Parts of a window that are looked at between its beginning and its end. Where deadlines are at the same hours, all look at
/// the same ends, and only the middle still has requests with other places.
const PARTS_MAX: usize = 4;
/// 2⁶⁴ times the golden ratio: multiples of it are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Requests that are looked at there, unless one slot has more.
const OCCUPANTS_MAX: usize = 64;
/// Answers about other places that are remembered, of each kind.
const KNOWN_MAX: usize = 24;
/// Blocks of slots that are looked at for a guess whether a request has another place, from either end of its window.
const NEAR: u64 = 6;

/// The weight of a request that has another place or has moved already,
const EASY: u64 = 16;
/// of one that would make others leave in turn,
const HARD: u64 = 40;
/// and what is added to it for the one with the earliest deadline: the later a deadline, the more places there are.
const GRADE: u64 = 80;

/// Moves into places that a displacement has left, that were not forced,
const GAINS_MAX: usize = 4;
/// and their least gain.
const GAIN: LeastGain = LeastGain {
    seconds: 3_600,
    of_wait: Fraction::percent(25),
};

/// A place that is free once some requests have left it.
#[derive(Debug)]
struct Way {
    weight: u64,
    /// The wait of the request that is placed there, and the delay of the one that leaves, as far as it is known.
    delay: Seconds,
    start: Time,
    leaving: Vec<u32>,
}

/// The places that requests have left, into which others may move without need.
struct LeftPlaces {
    places: Vec<Interval>,
    /// None moves to a start before this.
    not_before: Time,
    /// These have moved already.
    settled: BTreeSet<u32>,
}

/// The lightest ways to place a request.
struct Ways {
    most: usize,
    found: Vec<Way>,
    /// By how much single requests would start later elsewhere.
    delays: BTreeMap<u32, Seconds>,
}

impl Ways {
    fn new(most: usize) -> Self {
        let (found, delays) = (Vec::with_capacity(most + 1), BTreeMap::new());
        Self { most, found, delays }
    }

    /// What a way must weigh less than.
    fn limit(&self) -> u64 {
        let last = self.found.get(self.most - 1);
        last.map_or(u64::MAX, |way| way.weight)
    }

    fn insert(&mut self, way: Way) {
        let value = (way.weight, way.delay);
        let at = self
            .found
            .partition_point(|other| (other.weight, other.delay) <= value);
        self.found.insert(at, way);
        self.found.truncate(self.most);
    }
}

/// Whether requests have places in the plan as it stands, by the answers about others.
#[derive(Debug, Default)]
struct KnownPlaces {
    /// Nodes and seconds that are free nowhere in these windows,
    none: Vec<(u32, Seconds, Interval)>,
    /// and that are free from these instants on.
    some: Vec<(u32, Seconds, Time)>,
}

impl KnownPlaces {
    fn about(&self, request: &Request, window: Interval) -> Option<bool> {
        let has = |(nodes, duration, start): &(u32, Seconds, Time)| {
            request.nodes <= *nodes && request.duration <= *duration && window.contains(request.slot(*start))
        };
        let lacks = |(nodes, duration, none): &(u32, Seconds, Interval)| {
            request.nodes >= *nodes && request.duration >= *duration && none.contains(window)
        };
        if self.some.iter().any(has) {
            return Some(true);
        }
        self.none.iter().any(lacks).then_some(false)
    }

    fn note(&mut self, request: &Request, window: Interval, found: Option<Time>) {
        let (nodes, duration) = (request.nodes, request.duration);
        match found {
            Some(start) if self.some.len() < KNOWN_MAX => self.some.push((nodes, duration, start)),
            None if self.none.len() < KNOWN_MAX => self.none.push((nodes, duration, window)),
            _ => {}
        }
    }
}

/// Requests that were displaced for a newcomer. The plan holds their places.
#[derive(Debug)]
struct Chain {
    trial: Trial,
    /// Where each is that was lifted; none as long as it has no place.
    places: BTreeMap<u32, Option<Time>>,
    /// How often each had no free place.
    failures: BTreeMap<u32, u64>,
    known: KnownPlaces,
}

impl Chain {
    fn after(known: KnownPlaces) -> Self {
        Self {
            trial: Trial::new(),
            places: BTreeMap::new(),
            failures: BTreeMap::new(),
            known,
        }
    }
}

/// A change of the plan that lets a newcomer in.
struct Displacement {
    start: Time,
    moved: Vec<(u32, Time)>,
    delay: Seconds,
}

impl Attempt<'_> {
    /// Places a newcomer that does not fit where few others have to move for it. `None` where no such place is found with the work
    /// that may be done; the plan is as it was then.
    pub(super) fn run_displacement(&mut self, newcomer: &Request) -> Option<Trial> {
        let mut chain = Chain::after(KnownPlaces::default());
        let mut best: Option<Displacement> = None;
        for way in self.ways_to_place(&mut chain, newcomer, WAYS_MAX) {
            let most = best.as_ref().map_or(MOVES_MAX, |best| best.moved.len());
            if way.leaving.len() > most {
                continue;
            }
            let start = way.start;
            if self.follow_chain(&mut chain, newcomer, &way, most) {
                chain.trial.moved = self.moved_in_chain(&chain);
                self.put_back(&mut chain.trial);
                let moved = std::mem::take(&mut chain.trial.moved);
                let delay = self.delay_of_moves(&moved) + (start - newcomer.window_at(self.now).start);
                let is_better = |best: &Displacement| (moved.len(), delay) < (best.moved.len(), best.delay);
                if !self.work.is_spent() && best.as_ref().is_none_or(is_better) {
                    best = Some(Displacement { start, moved, delay });
                }
            }
            chain.trial.take_back(self.tree);
            chain = Chain::after(chain.known);
            if self.work.is_spent() {
                break;
            }
        }
        let Displacement { start, moved, .. } = best?;
        Some(self.lay_moves(newcomer, start, moved))
    }

    /// Places a newcomer at `start`, and others where they move to.
    pub(super) fn lay_moves(&mut self, newcomer: &Request, start: Time, moved: Vec<(u32, Time)>) -> Trial {
        let list = self.list;
        let mut trial = Trial::new();
        let others = || {
            moved
                .iter()
                .filter_map(|(handle, to)| Some((list.get(*handle)?, *to)))
        };
        for (other, _) in others() {
            self.give_back(&mut trial, &other.request, other.start);
        }
        trial.start = start;
        self.take(&mut trial, newcomer, start);
        for (other, to) in others() {
            self.take(&mut trial, &other.request, to);
        }
        trial.moved = moved;
        trial
    }

    /// Puts those back that fit where they were, in rounds, until none does or the work is done. A round goes through them in the other
    /// direction than the one before: where each has taken the place of the next, or of the one before, all can go back in one round.
    pub(super) fn put_back(&mut self, trial: &mut Trial) {
        let list = self.list;
        let mut moved = std::mem::take(&mut trial.moved);
        let mut is_reversed = false;
        loop {
            let before = moved.len();
            moved.retain(|(handle, at)| {
                let Some(other) = list.get(*handle).filter(|_| !self.work.is_spent()) else {
                    return true;
                };
                self.give_back(trial, &other.request, *at);
                self.work.spend(SEARCH);
                let stays = self.tree.min_free(other.slot()) < other.request.nodes;
                self.take(trial, &other.request, if stays { *at } else { other.start });
                stays
            });
            if moved.len() == before || self.work.is_spent() {
                break;
            }
            moved.reverse();
            is_reversed = !is_reversed;
        }
        if is_reversed {
            moved.reverse();
        }
        trial.moved = moved;
    }

    /// Moves some requests up that gain much by the places that a trial has left, to no start before `not_before`.
    pub(super) fn use_left_places(
        &mut self,
        trial: &mut Trial,
        not_before: Time,
        mut may_move: impl FnMut(u64) -> bool,
    ) {
        let list = self.list;
        let slot = |handle: u32| list.get(handle).map(WaitingRequest::slot);
        let mut left = LeftPlaces {
            places: trial.moved.iter().filter_map(|(h, _)| slot(*h)).collect(),
            not_before,
            settled: trial.moved.iter().map(|(handle, _)| *handle).collect(),
        };
        for _ in 0..GAINS_MAX {
            let Some((handle, to)) = self.largest_gain(&left, &mut may_move) else {
                return;
            };
            let Some(other) = list.get(handle) else { return };
            self.give_back(trial, &other.request, other.start);
            self.take(trial, &other.request, to);
            trial.moved.push((handle, to));
            left.settled.insert(handle);
            left.places.push(other.slot());
        }
    }

    /// The request that gains most by moving into one of these places, and its new start.
    fn largest_gain(
        &mut self,
        left: &LeftPlaces,
        may_move: &mut impl FnMut(u64) -> bool,
    ) -> Option<(u32, Time)> {
        let list = self.list;
        let mut best: Option<(Seconds, u32, Time)> = None;
        for place in &left.places {
            let now = self.now;
            let from = |request: &Request| {
                let ready = request.window_at(now).start.max(left.not_before);
                ready.max(place.start - (request.duration - 1))
            };
            let near = list.requests_near(*place, self.work);
            // One that cannot start earlier there is not worth a second look.
            let near = near.filter(|(_, other)| from(&other.request) < place.end.min(other.start));
            let near: Vec<(u32, &WaitingRequest)> = near.collect();
            for (handle, WaitingRequest { request, start, .. }) in near {
                // Where not all could be looked at, none moves.
                if self.work.is_spent() {
                    return None;
                }
                let (from, start) = (from(request), *start);
                let enough = GAIN.of(request, start).max(self.least_gain.of(request, start));
                let enough = enough.max(best.map_or(0, |(gain, ..)| gain + 1));
                let until = place.end.min(start - (enough - 1));
                if from >= until || left.settled.contains(&handle) {
                    continue;
                }
                if !may_move(request.id) {
                    continue;
                }
                self.work.spend(2 * SEARCH);
                let (slot, nodes) = (request.slot(start), i64::from(request.nodes));
                self.tree.lay(slot, nodes);
                let window = Interval::new(from, until + (request.duration - 1));
                let found = self.search(request, window, u64::MAX);
                self.tree.lay(slot, -nodes);
                best = found.map(|to| (start - to, handle, to)).or(best);
            }
        }
        best.filter(|_| !self.work.is_spent())
            .map(|(_, handle, to)| (handle, to))
    }

    /// By how much the requests start later in all.
    fn delay_of_moves(&self, moved: &[(u32, Time)]) -> Seconds {
        let delays = moved
            .iter()
            .filter_map(|(handle, to)| Some(*to - self.list.get(*handle)?.start));
        delays.fold(0, Seconds::saturating_add)
    }

    /// The requests of a chain that lie elsewhere than before.
    fn moved_in_chain(&self, chain: &Chain) -> Vec<(u32, Time)> {
        let placed = chain
            .places
            .iter()
            .filter_map(|(handle, at)| Some((*handle, (*at)?)));
        let elsewhere = |(handle, at): &(u32, Time)| self.list.get(*handle).is_some_and(|w| w.start != *at);
        placed.filter(elsewhere).collect()
    }

    /// Places the newcomer in a way, and those that leave, and those that leave for them. Whether all have places, with `most`
    /// moves at most.
    fn follow_chain(&mut self, chain: &mut Chain, newcomer: &Request, way: &Way, most: usize) -> bool {
        let mut unplaced = Vec::new();
        self.lift(chain, &way.leaving, &mut unplaced);
        self.take(&mut chain.trial, newcomer, way.start);
        for _ in 0..LINKS_MAX {
            let Some((handle, WaitingRequest { request, start, .. })) = unplaced.pop() else {
                return true;
            };
            let place = self.other_place(&request, start);
            if self.work.is_spent() {
                return false;
            }
            let start = if let Some(free) = place {
                free
            } else {
                *chain.failures.entry(handle).or_insert(0) += 1;
                let Some(way) = self.ways_to_place(chain, &request, 1).pop() else {
                    return false;
                };
                self.lift(chain, &way.leaving, &mut unplaced);
                way.start
            };
            self.take(&mut chain.trial, &request, start);
            chain.places.insert(handle, Some(start));
            if chain.places.len() > most && self.moved_in_chain(chain).len() + unplaced.len() > most {
                return false;
            }
        }
        false
    }

    /// Lifts requests; the largest one is the next to be placed.
    fn lift(&mut self, chain: &mut Chain, leaving: &[u32], unplaced: &mut Vec<(u32, WaitingRequest)>) {
        let before = unplaced.len();
        for handle in leaving {
            let Some(other) = self.list.get(*handle) else {
                continue;
            };
            let at = chain.places.insert(*handle, None).flatten();
            self.give_back(&mut chain.trial, &other.request, at.unwrap_or(other.start));
            unplaced.push((*handle, *other));
        }
        unplaced[before..].sort_unstable_by_key(|(handle, other)| (other.request.area(), *handle));
    }

    /// The lightest ways to place a request that has no free place, `most` at most: near the beginning of its window, near the
    /// end, where those are that may go furthest, and where these are not light, in parts between.
    fn ways_to_place(&mut self, chain: &mut Chain, request: &Request, most: usize) -> Vec<Way> {
        let window = request.window_at(self.now);
        let mut ways = Ways::new(most);
        let until = self.note_ways(&mut ways, chain, request, window);
        if until >= window.end {
            return ways.found;
        }
        let as_far = window.end - (until - window.start);
        let from = window.start.max(as_far.max(until) - (request.duration - 1));
        self.note_ways(&mut ways, chain, request, Interval::new(from, window.end));
        let between = from - until;
        let mut place = mix_bits(request.id);
        for _ in 0..PARTS_MAX {
            let is_light = ways.found.first().is_some_and(|way| way.weight <= EASY);
            if between <= request.duration || is_light || self.work.is_spent() {
                break;
            }
            // Each request has parts of its own: what all look at is used up soon.
            place = place.wrapping_add(GOLDEN);
            let at = until + share_of(between - request.duration, place);
            self.note_ways(&mut ways, chain, request, Interval::new(at, from));
        }
        ways.found
    }

    /// Notes the ways in the first part of a window; answers where this part ends.
    fn note_ways(&mut self, ways: &mut Ways, chain: &mut Chain, request: &Request, window: Interval) -> Time {
        let steps = self.tree.steps_from(window.start).take(STEPS_MAX);
        let steps = steps.take_while(|(t, _)| *t < window.end);
        let mut steps: Vec<(Time, i64)> = steps
            .map(|(t, free)| (t.max(window.start), free.cast_signed().into()))
            .collect();
        let until = match steps.last() {
            Some((t, _)) if steps.len() == STEPS_MAX => *t,
            _ => window.end,
        };
        let mut part = Interval::new(window.start, until);
        // A part that is full has few steps.
        while part.duration() > 2 * request.duration && self.lie_in(part, OCCUPANTS_MAX) > OCCUPANTS_MAX {
            part.end = part.start + part.duration() / 2;
        }
        let until = part.end;
        steps.retain(|(t, _)| *t < until);
        let occupants = self.occupants(chain, part);
        let least = occupants.iter().map(|one| one.weight).min();
        let Some(least) = least.filter(|_| !self.work.is_spent()) else {
            return until;
        };
        let steps = steps_cut_at_borders(&steps, &occupants, part);
        let ready = request.window_at(self.now).start;
        let mut met: Vec<usize> = Vec::new();
        let (mut lacks, mut rest) = (Vec::new(), Vec::new());
        let mut next = 0;
        for (first, (start, _)) in steps.iter().enumerate() {
            let slot = request.slot(*start);
            if slot.end > until || ways.limit() <= least || self.work.is_spent() {
                break;
            }
            met.retain(|at| occupants[*at].slot.end > *start);
            while let Some(one) = occupants.get(next).filter(|one| one.slot.start < slot.end) {
                met.extend((one.slot.end > *start).then_some(next));
                next += 1;
            }
            lacks.clear();
            lacks.extend(lacks_in_slot(&steps[first..], slot, request.nodes.into()));
            self.work.spend(1 + (met.len() + lacks.len()) as u64 / ELEMENTS);
            self.note_single_ways(ways, &occupants, &met, &lacks, (*start, ready));
            if ways.limit() <= 2 * least {
                continue;
            }
            rest.clone_from(&lacks);
            let met = (&met[..], &occupants[..]);
            let several = lightest_leaving(&lacks, &mut rest, met, ways.limit(), self.work);
            if let Some((weight, leaving)) = several.filter(|(_, leaving)| leaving.len() > 1) {
                ways.insert(Way {
                    weight,
                    delay: *start - ready,
                    start: *start,
                    leaving,
                });
            }
        }
        until
    }

    /// Notes each request that frees a place by itself.
    fn note_single_ways(
        &mut self,
        ways: &mut Ways,
        occupants: &[Occupant],
        met: &[usize],
        lacks: &[(Interval, i64)],
        (start, ready): (Time, Time),
    ) {
        let (Some((first, _)), Some((last, _))) = (lacks.first(), lacks.last()) else {
            return;
        };
        let whole = Interval::new(first.start, last.end);
        let most = lacks.iter().map(|(_, nodes)| *nodes).max().unwrap_or(0);
        for at in met {
            let one = &occupants[*at];
            if one.nodes < most || !one.slot.contains(whole) || one.weight > ways.limit() {
                continue;
            }
            // A single way is taken for its start alone.
            let later = if ways.most == 1 {
                0
            } else {
                self.delay_elsewhere(one, &mut ways.delays)
            };
            ways.insert(Way {
                weight: one.weight,
                delay: (start - ready).saturating_add(later),
                start,
                leaving: vec![one.handle],
            });
        }
    }

    /// By how much an occupant starts later at its earliest free place; where it has none, its duration.
    fn delay_elsewhere(&mut self, one: &Occupant, delays: &mut BTreeMap<u32, Seconds>) -> Seconds {
        if let Some(known) = delays.get(&one.handle) {
            return *known;
        }
        let request = self.list.get(one.handle).map(|other| other.request);
        let request = request.filter(|_| one.is_easy);
        let found = request.and_then(|request| self.place_near_an_end(&request, NEAR));
        let delay = found.map_or(one.slot.duration(), |to| to - one.slot.start);
        delays.insert(one.handle, delay);
        delay
    }

    /// How many requests lie in an interval, about; `most` + 1 where they are more.
    fn lie_in(&mut self, interval: Interval, most: usize) -> usize {
        let meeting = self.list.meeting(Key::FIRST, interval, self.work);
        meeting.take(most + 1).count()
    }

    /// The requests in an interval that can move, with their weights, by start.
    fn occupants(&mut self, chain: &mut Chain, interval: Interval) -> Vec<Occupant> {
        let (list, now) = (self.list, self.now);
        let mut found: Vec<(Time, u32, &WaitingRequest)> = Vec::new();
        for (handle, other) in list.meeting(Key::FIRST, interval, self.work) {
            if !chain.places.contains_key(&handle) {
                found.push((other.start, handle, other));
            }
        }
        for (handle, at) in &chain.places {
            if let (Some(at), Some(other)) = (at, list.get(*handle))
                && other.request.slot(*at).meets(interval)
            {
                found.push((*at, *handle, other));
            }
        }
        found.retain(|(_, _, other)| other.request.slack(now) > 0);
        found.sort_unstable_by_key(|(at, handle, _)| (*at, *handle));
        self.work.spend(LOOK * found.len() as u64);
        let mut by_deadline: Vec<usize> = (0..found.len()).collect();
        by_deadline.sort_unstable_by_key(|at| (Reverse(found[*at].2.request.deadline), found[*at].1));
        let mut grades = vec![0; found.len()];
        for (rank, at) in (0_u64..).zip(by_deadline) {
            grades[at] = rank * GRADE / found.len() as u64;
        }
        let each = found.iter().zip(grades);
        each.map(|((at, handle, other), grade)| {
            let has_moved = chain.places.contains_key(handle);
            let has_other = self.has_other_place(&other.request, &mut chain.known);
            let weight = if has_moved || has_other {
                EASY
            } else {
                HARD + grade
            };
            let failures = chain.failures.get(handle).copied().unwrap_or(0);
            Occupant {
                handle: *handle,
                slot: other.request.slot(*at),
                nodes: other.request.nodes.into(),
                weight: weight * (1 + failures),
                is_easy: has_other,
            }
        })
        .collect()
    }

    /// Whether a request has another place in the plan, about as it stands.
    fn has_other_place(&mut self, request: &Request, known: &mut KnownPlaces) -> bool {
        let window = request.window_at(self.now);
        known.about(request, window).unwrap_or_else(|| {
            let found = self.place_near_an_end(request, NEAR);
            known.note(request, window, found);
            found.is_some()
        })
    }
}

/// The share `of_2_64` / 2⁶⁴ of some seconds.
fn share_of(seconds: Seconds, of_2_64: u64) -> Seconds {
    let share = (u128::from(seconds.unsigned_abs()) * u128::from(of_2_64)) >> 64;
    Seconds::try_from(share).unwrap_or(seconds)
}

#[cfg(test)]
mod tests;
