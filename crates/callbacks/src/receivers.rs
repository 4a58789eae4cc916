//! The turns of receivers: each is told its next events, in the order of [`EventQueue`].

use std::time::{Duration, Instant};

use domain::clock::Micros;
use futures_util::stream::{FuturesUnordered, StreamExt};
use store::party_events;
use store::registrations::{self, Registration};
use task::lock::lock;
use tracing::{debug, info, warn};

use super::event_queue::{DueEvent, EventQueue, EventsAhead, RETRY_OF_ALIVE_MAX};
use super::retries::GIVEN_UP_AFTER;
use super::{
    CALL_WAIT, CALLS_OF_EACH_MAX, CallBacks, CallClient, EventBody, Failure, Message, due_call_rows,
};

/// How long a turn lasts: the events that are being told then are the last ones.
const TURN: Duration = CALL_WAIT;
/// How often it is stored what was told, at most, while more is being told.
const NOTED_EVERY: Duration = Duration::from_millis(200);

/// How far a turn has come.
struct ReceiverTurn<'a> {
    calls: &'a CallBacks,
    receiver: &'a Registration,
    queue: EventQueue,
    ahead: EventsAhead,
    /// The cursor, and when it was stored.
    cursor: i64,
    noted: Instant,
    is_noted: bool,
    /// Events that were told, and those since the last one that could not be.
    told: usize,
    failed_in_row: usize,
    has_failed: bool,
}

impl CallBacks {
    /// Tells a receiver its next events, until its turn is over or it takes none.
    pub(super) async fn tell_receiver_events(&self, receiver: Registration) {
        let Some(address) = &receiver.address else { return };
        let ahead = lock(&self.ahead).remove(&receiver.id).unwrap_or_default();
        let events = party_events::events_of_party_after(
            &self.store,
            &receiver.party,
            receiver.told,
            ahead.events_to_read(),
        )
        .await;
        let mut turn = ReceiverTurn {
            queue: EventQueue::of(due_call_rows(events), &ahead),
            ahead,
            calls: self,
            cursor: receiver.told,
            noted: Instant::now(),
            is_noted: true,
            told: 0,
            failed_in_row: 0,
            has_failed: false,
            receiver: &receiver,
        };
        let line = self.line_to(address).await;
        if turn.tell_all(&line).await {
            turn.finish().await;
            let ahead = turn.ahead;
            if !ahead.is_empty() {
                lock(&self.ahead).insert(receiver.id, ahead);
            }
        }
    }

    /// Forgets what receivers were told ahead that are told nothing more.
    pub(super) async fn forget_receivers(&self) {
        let ids: Vec<uuid::Uuid> = lock(&self.ahead).keys().copied().collect();
        for id in ids {
            if let Ok(false) =
                registrations::is_registration_to_be_told(&self.store, id, self.clock.micros()).await
            {
                lock(&self.ahead).remove(&id);
            }
        }
    }

    /// Tells a receiver one event; the outcome is none where nothing more is to be told there.
    async fn tell_receiver_event(
        &self,
        receiver: &Registration,
        line: &Result<CallClient, String>,
        due: DueEvent,
    ) -> (i64, String, Option<Result<(), Failure>>) {
        let (party, name, key) = (&receiver.party, &receiver.name, due.key());
        let body = EventBody::of(due.event, &self.address);
        let _place = self.places.take(party).await;
        // Just before each call: a party without a key is told nothing more, and an address that was taken back neither.
        match registrations::is_registration_to_be_told(&self.store, receiver.id, self.clock.micros()).await {
            Ok(true) => {}
            Ok(false) => {
                info!(
                    party,
                    name,
                    "nothing more is told: the call-back was removed or replaced, or no key of its party works"
                );
                return (key, body.id, None);
            }
            Err(why) => {
                warn!(error = %why, party, name, "it cannot be read whether events are still to be told");
                return (key, body.id, None);
            }
        }
        let message = Message {
            id: &body.id,
            content_type: "application/json",
            body: body.text(),
            secret: Some(&receiver.secret),
        };
        let sent = self.send(line.as_ref(), message).await;
        (key, body.id, Some(sent))
    }
}

impl ReceiverTurn<'_> {
    /// Tells events until the turn is over; false where the receiver is gone.
    async fn tell_all(&mut self, line: &Result<CallClient, String>) -> bool {
        let (calls, receiver) = (self.calls, self.receiver);
        let (party, name) = (&receiver.party, &receiver.name);
        let began = Instant::now();
        let (mut told, mut is_stopped) = (FuturesUnordered::new(), false);
        loop {
            // One that has taken nothing yet may be away.
            let at_once = if self.told > 0 { CALLS_OF_EACH_MAX } else { 1 };
            let goes_on = !is_stopped && began.elapsed() < TURN && self.failed_in_row < at_once;
            while goes_on && told.len() < at_once {
                let Some(due) = self.queue.take_next(&self.ahead, calls.clock.micros()) else {
                    break;
                };
                told.push(calls.tell_receiver_event(receiver, line, due));
            }
            let Some((key, event, came)) = told.next().await else {
                return true;
            };
            match came {
                Some(Ok(())) => {
                    info!(party, name, event, "an event was told");
                    self.queue.note_done(&mut self.ahead, key);
                    (self.told, self.failed_in_row) = (self.told + 1, 0);
                }
                Some(Err(Failure::Failed(why))) => {
                    let attempt = self.queue.note_failed(&mut self.ahead, key, calls.clock.micros());
                    info!(
                        party,
                        name, event, attempt, why, "an event could not be told; it is tried again later"
                    );
                    self.failed_in_row += 1;
                    self.has_failed = true;
                }
                None => is_stopped = true,
                Some(Err(Failure::Unwanted)) => {
                    info!(
                        party,
                        name, "the address is gone: no event is told there any more"
                    );
                    calls
                        .record(|| registrations::remove_registration(&calls.store, receiver.id))
                        .await;
                    return false;
                }
            }
            self.move_cursor();
            if !self.is_noted && self.noted.elapsed() >= NOTED_EVERY {
                self.note().await;
            }
        }
    }

    fn move_cursor(&mut self) {
        if let Some(cursor) = self.queue.cursor().filter(|cursor| *cursor > self.cursor) {
            self.cursor = cursor;
            self.ahead.forget_until(cursor);
            self.is_noted = false;
        }
    }

    /// Stores what was told.
    async fn note(&mut self) {
        let (calls, receiver, cursor) = (self.calls, self.receiver.id, self.cursor);
        let now = calls.clock.micros();
        calls
            .record(|| registrations::note_registration_told(&calls.store, receiver, cursor, now))
            .await;
        (self.noted, self.is_noted) = (Instant::now(), true);
    }

    /// Drops what could not be told for too long, and stores how the receiver stands.
    async fn finish(&mut self) {
        let (calls, receiver) = (self.calls, self.receiver);
        let now = calls.clock.micros();
        let is_alive = self.told > 0;
        let mut dropped = self.queue.drop_overdue(&mut self.ahead, now);
        self.move_cursor();
        // Also of one that was told beside an earlier one that was not: it takes events.
        if is_alive || !self.is_noted {
            if is_alive {
                self.note().await;
            } else {
                let cursor = self.cursor;
                calls
                    .record(|| registrations::note_registration_dropped(&calls.store, receiver.id, cursor))
                    .await;
            }
        }
        let failing = receiver.failing.filter(|_| !is_alive);
        if self.has_failed && failing.is_some_and(|since| now - since >= GIVEN_UP_AFTER) {
            dropped += self.drop_old_events(now - GIVEN_UP_AFTER).await;
        }
        if dropped > 0 {
            let (party, name) = (&receiver.party, &receiver.name);
            warn!(
                party,
                name, dropped, "events could not be told for too long, and are dropped"
            );
            calls.dropped.count_events(dropped);
        }
        let is_away = self.has_failed && !is_alive;
        let due = match self.ahead.next_try() {
            _ if is_away => now + self.ahead.wait_after_turns(receiver.attempts),
            // Where others can be told, they do not wait for the one that cannot.
            Some(next) if !self.queue.has_ready(&self.ahead, now) => next.min(now + RETRY_OF_ALIVE_MAX),
            _ => return,
        };
        calls
            .record(|| registrations::postpone_registration(&calls.store, receiver.id, due, now))
            .await;
    }

    /// Drops all events that happened before an instant: their receiver has taken none since then. Returns how many they were.
    async fn drop_old_events(&mut self, before: Micros) -> usize {
        let (calls, receiver) = (self.calls, self.receiver);
        let old =
            party_events::events_of_party_until(&calls.store, &receiver.party, self.cursor, before).await;
        match old {
            Ok(Some((last, count))) => {
                let dropped = usize::try_from(count).unwrap_or(0) - self.ahead.done_until(last);
                self.cursor = last;
                self.ahead.forget_until(last);
                calls
                    .record(|| registrations::note_registration_dropped(&calls.store, receiver.id, last))
                    .await;
                dropped
            }
            Ok(None) => 0,
            Err(why) => {
                debug!(error = %why, "the events that are too old cannot be read");
                0
            }
        }
    }
}
