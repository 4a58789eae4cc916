//! The order in which a receiver is told its events: those of one agreement one after the other, those of several at the same time.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use domain::agreement::{PartyEvent, PartyEventKind};
use domain::clock::{MICROS_PER_SECOND, Micros};
use uuid::Uuid;

use super::retries::{GIVEN_UP_AFTER, wait_before_retry};

/// Events of one receiver that are looked at in its turn, beside those that were told ahead.
const WINDOW: u32 = 2_000;
/// Tries after which an event gives way to others: it may be the only one that its receiver does not take.
const STUBBORN: u32 = 3;
/// An event that could not be told is dropped once this many later ones were told: all of them are read again in each turn.
const TOLD_AHEAD_MAX: usize = 10_000;
/// For how long it is tried before that.
const IN_THE_WAY_FOR: Micros = 3_600 * MICROS_PER_SECOND;
/// The longest wait before the next try of a receiver that takes other events.
pub(super) const RETRY_OF_ALIVE_MAX: Micros = 60 * MICROS_PER_SECOND;

/// What is known of the events of a receiver after its cursor.
#[derive(Debug, Default)]
pub(super) struct EventsAhead {
    /// The ones that were told or dropped, while earlier ones were not.
    done: BTreeSet<i64>,
    /// The ones that could not be told.
    tries: BTreeMap<i64, Tries>,
}

/// The tries of an event that could not be told.
#[derive(Debug, Clone, Copy)]
struct Tries {
    attempts: u32,
    since: Micros,
    due: Micros,
}

impl EventsAhead {
    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty() && self.tries.is_empty()
    }

    /// How many events after the cursor are read, so that a turn always finds others than those that are done.
    pub(super) fn events_to_read(&self) -> u32 {
        let done = self.done.len().min(TOLD_AHEAD_MAX);
        WINDOW.saturating_add(u32::try_from(done).unwrap_or(u32::MAX))
    }

    /// How long a receiver waits that has taken nothing in its last turn, nor in this many before it. One that has taken an event ahead
    /// of another one is there: only the other one waits longer.
    pub(super) fn wait_after_turns(&self, turns: u32) -> Micros {
        let wait = wait_before_retry(turns);
        if self.done.is_empty() {
            wait
        } else {
            wait.min(RETRY_OF_ALIVE_MAX)
        }
    }

    /// Forgets what is behind a cursor.
    pub(super) fn forget_until(&mut self, cursor: i64) {
        self.done = self.done.split_off(&(cursor + 1));
        self.tries = self.tries.split_off(&(cursor + 1));
    }

    /// How many events up to a cursor are done.
    pub(super) fn done_until(&self, cursor: i64) -> usize {
        self.done.range(..=cursor).count()
    }

    /// When the first of the events that could not be told is tried again.
    pub(super) fn next_try(&self) -> Option<Micros> {
        self.tries.values().map(|one_try| one_try.due).min()
    }
}

/// An event to be told, in place of the moves of its agreement right before it where it is a move.
#[derive(Debug, Clone)]
pub(super) struct DueEvent {
    pub(super) event: PartyEvent,
    /// The numbers of these moves.
    moves: Vec<i64>,
}

impl DueEvent {
    /// The number by which it is known: a later move in its place does not change it.
    pub(super) fn key(&self) -> i64 {
        self.moves.first().copied().unwrap_or(self.event.number)
    }
}

/// Events of a receiver that are to be told, with those that are being told.
#[derive(Debug)]
pub(super) struct EventQueue {
    /// The events of each agreement, by the key of the first.
    by_key: BTreeMap<i64, VecDeque<DueEvent>>,
    /// The keys of those that are being told.
    in_flight: BTreeSet<i64>,
    /// The numbers of all events, in order, and of those that are not done.
    numbers: Vec<i64>,
    open: BTreeSet<i64>,
}

impl EventQueue {
    /// The events after the cursor of a receiver, given in order.
    pub(super) fn of(events: Vec<PartyEvent>, ahead: &EventsAhead) -> Self {
        let numbers: Vec<i64> = events.iter().map(|event| event.number).collect();
        let mut of_each: HashMap<Option<Uuid>, VecDeque<DueEvent>> = HashMap::new();
        let mut open = BTreeSet::new();
        for event in events {
            if ahead.done.contains(&event.number) {
                continue;
            }
            open.insert(event.number);
            let queue = of_each.entry(event.agreement.or(event.negotiation)).or_default();
            let is_move = |event: &PartyEvent| event.kind == PartyEventKind::Moved;
            match queue.back_mut() {
                Some(last) if is_move(&last.event) && is_move(&event) => {
                    last.moves.push(last.event.number);
                    last.event = event;
                }
                _ => queue.push_back(DueEvent {
                    event,
                    moves: Vec::new(),
                }),
            }
        }
        let queues = of_each.into_values();
        let by_key = queues.filter_map(|queue| Some((queue.front()?.key(), queue)));
        Self {
            by_key: by_key.collect(),
            in_flight: BTreeSet::new(),
            numbers,
            open,
        }
    }

    /// The next event to tell: the oldest one whose time has come, and of which no earlier one of its agreement is to be told.
    pub(super) fn take_next(&mut self, ahead: &EventsAhead, now: Micros) -> Option<DueEvent> {
        let ready = |keys: &Self, most: u32| {
            let mut waiting = keys.by_key.keys().filter(|key| !keys.in_flight.contains(*key));
            let may_be = |key: &&i64| {
                let tries = ahead.tries.get(*key);
                tries.is_none_or(|tries| tries.due <= now && tries.attempts < most)
            };
            waiting.find(may_be).copied()
        };
        let key = ready(self, STUBBORN).or_else(|| ready(self, u32::MAX))?;
        self.in_flight.insert(key);
        self.by_key.get(&key)?.front().cloned()
    }

    /// Notes that an event was told, or is dropped: the next one of its agreement has its turn.
    pub(super) fn note_done(&mut self, ahead: &mut EventsAhead, key: i64) {
        self.in_flight.remove(&key);
        ahead.tries.remove(&key);
        let Some(mut queue) = self.by_key.remove(&key) else {
            return;
        };
        if let Some(event) = queue.pop_front() {
            for number in event.moves.into_iter().chain([event.event.number]) {
                self.open.remove(&number);
                ahead.done.insert(number);
            }
        }
        if let Some(next) = queue.front() {
            self.by_key.insert(next.key(), queue);
        }
    }

    /// Notes that an event could not be told. Returns how often that was so.
    pub(super) fn note_failed(&mut self, ahead: &mut EventsAhead, key: i64, now: Micros) -> u32 {
        self.in_flight.remove(&key);
        let tries = ahead.tries.entry(key).or_insert(Tries {
            attempts: 0,
            since: now,
            due: now,
        });
        tries.due = now + wait_before_retry(tries.attempts);
        tries.attempts += 1;
        tries.attempts
    }

    /// Drops the events that could not be told for too long, and the first one where too many later ones were told. Returns how many
    /// were dropped.
    pub(super) fn drop_overdue(&mut self, ahead: &mut EventsAhead, now: Micros) -> usize {
        let is_full = ahead.done.len() >= TOLD_AHEAD_MAX;
        let in_the_way = self.open.first().filter(|_| is_full);
        let overdue = ahead.tries.iter().filter(|(key, tries)| {
            let is_stubborn = tries.attempts >= STUBBORN && now - tries.since >= IN_THE_WAY_FOR;
            let is_in_the_way = in_the_way == Some(*key) && is_stubborn;
            (is_in_the_way || now - tries.since >= GIVEN_UP_AFTER) && self.by_key.contains_key(key)
        });
        let overdue: Vec<i64> = overdue.map(|(key, _)| *key).collect();
        for key in &overdue {
            self.note_done(ahead, *key);
        }
        overdue.len()
    }

    /// Whether there is an event that may be told now.
    pub(super) fn has_ready(&self, ahead: &EventsAhead, now: Micros) -> bool {
        let mut tries = self.by_key.keys().map(|key| ahead.tries.get(key));
        tries.any(|tries| tries.is_none_or(|one_try| one_try.due <= now))
    }

    /// The last event before which all are done; none where the first is not.
    pub(super) fn cursor(&self) -> Option<i64> {
        let end = match self.open.first() {
            Some(first) => self.numbers.partition_point(|number| number < first),
            None => self.numbers.len(),
        };
        self.numbers[..end].last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: i64, agreement: u128, kind: PartyEventKind) -> PartyEvent {
        PartyEvent {
            party: "physics".into(),
            number,
            id: format!("evt_{number}"),
            at: 0,
            kind,
            agreement: Some(Uuid::from_u128(agreement)),
            negotiation: None,
            state: None,
            planned: None,
            detail: String::new(),
        }
    }

    fn taken(queue: &mut EventQueue, ahead: &EventsAhead, now: Micros) -> Vec<i64> {
        let next = std::iter::from_fn(|| queue.take_next(ahead, now));
        next.map(|due| due.event.number).collect()
    }

    #[test]
    fn events_of_one_agreement_wait_for_each_other_and_others_do_not() {
        use PartyEventKind::{Accepted, Ended, Started};
        let mut ahead = EventsAhead::default();
        let events = [(1, 1, Accepted), (2, 2, Accepted), (3, 1, Started), (4, 1, Ended)];
        let events = events.map(|(number, one_event, kind)| event(number, one_event, kind));
        let mut queue = EventQueue::of(events.into(), &ahead);
        assert_eq!(taken(&mut queue, &ahead, 0), [1, 2]);
        queue.note_done(&mut ahead, 2);
        assert_eq!((queue.cursor(), taken(&mut queue, &ahead, 0)), (None, vec![]));
        queue.note_done(&mut ahead, 1);
        assert_eq!((queue.cursor(), taken(&mut queue, &ahead, 0)), (Some(2), vec![3]));
        queue.note_done(&mut ahead, 3);
        assert_eq!(taken(&mut queue, &ahead, 0), [4]);
        queue.note_done(&mut ahead, 4);
        assert_eq!(queue.cursor(), Some(4));
        ahead.forget_until(4);
        assert!(ahead.is_empty());
    }

    #[test]
    fn moves_of_an_agreement_without_another_event_between_them_are_one_event() {
        use PartyEventKind::{Accepted, Moved, Started};
        let mut ahead = EventsAhead::default();
        let events = [
            (1, 1, Accepted),
            (2, 1, Moved),
            (3, 2, Moved),
            (4, 1, Moved),
            (5, 1, Started),
            (6, 1, Moved),
        ];
        let events = events.map(|(number, one_event, kind)| event(number, one_event, kind));
        let mut queue = EventQueue::of(events.into(), &ahead);
        let mut told = Vec::new();
        while let Some(due) = queue.take_next(&ahead, 0) {
            told.push(due.event.number);
            queue.note_done(&mut ahead, due.key());
        }
        assert_eq!(told, [1, 4, 3, 5, 6]);
        assert_eq!(queue.cursor(), Some(6));
    }

    #[test]
    fn an_event_that_cannot_be_told_keeps_its_agreement_waiting_and_is_dropped_after_a_day() {
        use PartyEventKind::{Accepted, Ended};
        let mut ahead = EventsAhead::default();
        let all = || {
            let events = [(1, 1, Accepted), (2, 1, Ended), (3, 2, Accepted)];
            events
                .map(|(number, one_event, kind)| event(number, one_event, kind))
                .to_vec()
        };
        let mut queue = EventQueue::of(all(), &ahead);
        assert_eq!(taken(&mut queue, &ahead, 0), [1, 3]);
        assert_eq!(queue.note_failed(&mut ahead, 1, 0), 1);
        queue.note_done(&mut ahead, 3);
        assert!(!queue.has_ready(&ahead, 0) && taken(&mut queue, &ahead, 0).is_empty());
        assert_eq!(
            (queue.cursor(), ahead.next_try()),
            (None, Some(MICROS_PER_SECOND))
        );
        // What was told meanwhile is not told again.
        let later = MICROS_PER_SECOND;
        let mut queue = EventQueue::of(all(), &ahead);
        assert_eq!(taken(&mut queue, &ahead, later), [1]);
        assert_eq!(queue.note_failed(&mut ahead, 1, GIVEN_UP_AFTER), 2);
        assert_eq!(queue.drop_overdue(&mut ahead, GIVEN_UP_AFTER - 1), 0);
        assert_eq!(queue.drop_overdue(&mut ahead, GIVEN_UP_AFTER), 1);
        assert_eq!(
            taken(&mut queue, &ahead, GIVEN_UP_AFTER),
            [2],
            "the next one has its turn"
        );
        assert_eq!(queue.cursor(), Some(1));
    }

    #[test]
    fn an_event_that_is_never_taken_stops_no_others_and_is_dropped_where_too_many_are_ahead_of_it() {
        const LAST: u32 = 14_000;
        let (mut ahead, mut now, mut cursor) = (EventsAhead::default(), 0, 0);
        let (mut told, mut told_before_drop) = (0, None);
        for _ in 0..10 {
            let after = (1..=LAST).filter(|number| i64::from(*number) > cursor);
            let read = after.take(usize::try_from(ahead.events_to_read()).unwrap());
            let events = read.map(|number| event(number.into(), number.into(), PartyEventKind::Accepted));
            let mut queue = EventQueue::of(events.collect(), &ahead);
            while let Some(due) = queue.take_next(&ahead, now) {
                if due.key() == 1 {
                    queue.note_failed(&mut ahead, 1, now);
                } else {
                    queue.note_done(&mut ahead, due.key());
                    told += 1;
                }
            }
            if queue.drop_overdue(&mut ahead, now) > 0 {
                told_before_drop.get_or_insert(told);
            }
            if let Some(reached) = queue.cursor() {
                cursor = reached;
                ahead.forget_until(cursor);
            }
            now += 10 * RETRY_OF_ALIVE_MAX;
        }
        assert_eq!((told, cursor), (LAST as usize - 1, i64::from(LAST)));
        assert!(told_before_drop.is_some_and(|told| told >= TOLD_AHEAD_MAX));
    }

    #[test]
    fn a_receiver_that_takes_other_events_is_tried_again_within_a_minute() {
        let mut ahead = EventsAhead::default();
        let events = [1_u32, 2].map(|number| event(number.into(), number.into(), PartyEventKind::Accepted));
        let mut queue = EventQueue::of(events.into(), &ahead);
        queue.note_failed(&mut ahead, 1, 0);
        assert_eq!(ahead.wait_after_turns(20), 3_600 * MICROS_PER_SECOND);
        queue.note_done(&mut ahead, 2);
        assert_eq!(ahead.wait_after_turns(20), RETRY_OF_ALIVE_MAX);
        assert_eq!(ahead.wait_after_turns(2), 4 * MICROS_PER_SECOND);
    }
}
