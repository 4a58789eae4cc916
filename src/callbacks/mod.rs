//! Calls to the outside: they report decisions and events to the clients that asked for that.
//!
//! A call about a decision is stored with the decision that it reports, and tried until it succeeds or is given up, over restarts. It
//! may arrive twice. A call that never arrives has a line in the log. The events of a party are stored with what they report, too; each
//! receiver has the number of the last event that it was told, and is told the next ones in order. The other end is not trusted: only
//! addresses that may be reached are, no redirect is followed, and nothing of an answer but its status is read.

mod events;
mod signature;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

pub use events::{EventBody, EventData};
pub use signature::new_signing_secret;

use crate::address::{Policy, transfer_error_in_words};
use crate::clock::{Clock, MICROS_PER_SECOND, Micros, second_of};
use crate::store::{self, DueCallBack, Registration, Store};

/// How often to look for calls that are due.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a call may take, the name's address included.
const CALL_WAIT: Duration = Duration::from_secs(10);
/// Calls that are made at the same time.
const AT_ONCE_MAX: usize = 32;
/// Those of one party among them.
const OF_EACH_MAX: usize = 4;
/// The wait before the second try, and the longest; it doubles in between.
const RETRY: (Micros, Micros) = (MICROS_PER_SECOND, 3_600 * MICROS_PER_SECOND);
/// How long to wait before the outcome of a call is stored again after a failure, at first and at most; it doubles in between.
const RECORD_AGAIN: (Duration, Duration) = (LOOK_EVERY, Duration::from_secs(8));
/// A decision or an event is given up this long after the first attempt to tell it failed: the client can still ask. The time in which
/// the service was down before that attempt does not count.
const GIVEN_UP_AFTER: Micros = 24 * 3_600 * MICROS_PER_SECOND;

/// Events that are told to one receiver before others have their turn, and for how long: the event that is being told then is the last.
const TURN: (u32, Duration) = (20, CALL_WAIT);
/// For how long events are kept, to be told again.
const EVENTS_KEPT: Micros = 30 * 24 * 3_600 * MICROS_PER_SECOND;
/// How often older ones are removed.
const FORGET_EVERY: Duration = Duration::from_hours(1);

/// Makes the calls that are stored.
#[derive(Debug, Clone)]
pub struct CallBacks {
    store: Store,
    clock: Clock,
    policy: Policy,
    /// The address of the service.
    address: Arc<str>,
}

/// Something that is to be told.
enum Due {
    /// A decision.
    Call(DueCallBack),
    /// The next events of a party.
    Events(Registration),
}

impl Due {
    fn id(&self) -> Uuid {
        match self {
            Self::Call(due) => due.call.id,
            Self::Events(receiver) => receiver.id,
        }
    }

    fn party(&self) -> &str {
        match self {
            Self::Call(due) => &due.party,
            Self::Events(receiver) => &receiver.party,
        }
    }
}

/// The decisions and receivers that are being told now, each with its party.
#[derive(Default)]
struct InFlight(BTreeMap<Uuid, String>);

impl InFlight {
    fn is_full(&self) -> bool {
        self.0.len() >= AT_ONCE_MAX
    }

    /// Takes a place for a decision or a receiver; false where none is free, or where it has one.
    fn take_place(&mut self, due: &Due) -> bool {
        let of_party = self.0.values().filter(|party| *party == due.party());
        if self.is_full() || of_party.count() >= OF_EACH_MAX || self.0.contains_key(&due.id()) {
            return false;
        }
        self.0.insert(due.id(), due.party().to_owned());
        true
    }
}

impl CallBacks {
    /// Of a store, to addresses that `policy` allows, from a service with an address.
    pub fn new(store: Store, clock: Clock, policy: Policy, address: Arc<str>) -> Self {
        Self {
            store,
            clock,
            policy,
            address,
        }
    }

    /// Makes calls until `stop`. A call that is being made then is made again later.
    pub async fn run(self, stop: CancellationToken) {
        let mut calls: JoinSet<Uuid> = JoinSet::new();
        let mut in_flight = InFlight::default();
        let mut forget = tokio::time::interval(FORGET_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(ended) = calls.join_next() => {
                    // A call that panicked stays in flight, and is made again after a restart.
                    if let Ok(id) = ended {
                        in_flight.0.remove(&id);
                    }
                }
                _ = forget.tick() => {
                    let before = self.clock.micros() - EVENTS_KEPT;
                    if let Err(why) = self.store.forget_party_events(before).await {
                        warn!(error = %why, "old events of parties were not forgotten");
                    }
                }
                () = tokio::time::sleep(LOOK_EVERY), if !in_flight.is_full() => {
                    for due in self.due().await {
                        if in_flight.take_place(&due) {
                            let this = self.clone();
                            calls.spawn(async move {
                                let id = due.id();
                                match due {
                                    Due::Call(call) => this.tell(call).await,
                                    Due::Events(receiver) => this.tell_events(receiver).await,
                                }
                                id
                            });
                        }
                    }
                }
            }
        }
    }

    /// What is due, decisions and events by turns: neither keeps the other waiting.
    async fn due(&self) -> Vec<Due> {
        // More than are made at once, so that calls in flight hide no others.
        let [limit, of_each] = [2 * AT_ONCE_MAX, OF_EACH_MAX].map(|of| u32::try_from(of).unwrap_or(u32::MAX));
        let now = self.clock.micros();
        let calls = self.store.call_backs_due(now, limit, of_each).await;
        let receivers = self.store.registrations_due(now, limit, of_each).await;
        let mut calls = rows_or_none(calls).into_iter().map(Due::Call);
        let mut receivers = rows_or_none(receivers).into_iter().map(Due::Events);
        let pairs = std::iter::from_fn(|| {
            let pair = [calls.next(), receivers.next()];
            pair.iter().any(Option::is_some).then_some(pair)
        });
        pairs.flatten().flatten().collect()
    }

    /// Makes a call and stores its outcome.
    async fn tell(&self, DueCallBack { call, secret, .. }: DueCallBack) {
        let message = Message {
            address: &call.address,
            id: &format!("msg_{}", call.id.simple()),
            content_type: "application/xml; charset=utf-8",
            body: call.body.clone(),
            secret: secret.as_deref(),
        };
        let result = self.send(message).await;
        let (agreement, now) = (call.agreement, self.clock.micros());
        let is_given_up = is_given_up((call.attempts > 0).then_some(call.since), now);
        let outcome = match result {
            Err(Failure::Failed(_)) if !is_given_up => {
                Outcome::Failed(call.id, now + wait_after_attempts(call.attempts), now)
            }
            _ => Outcome::Done(call.id),
        };
        self.record(outcome).await;
        let attempt = call.attempts + 1;
        match result {
            Ok(()) => info!(%agreement, attempt, "a decision was told"),
            Err(Failure::Unwanted) => {
                info!(%agreement, attempt, "the address does not want the decision any more");
            }
            Err(Failure::Failed(why)) if is_given_up => {
                warn!(%agreement, attempt, why, "a decision could not be told, and is not tried again");
            }
            Err(Failure::Failed(why)) => {
                info!(%agreement, attempt, why, "a decision could not be told; it is tried again later");
            }
        }
    }

    /// Tells a receiver its next events, in order, until one cannot be told or its turn is over.
    async fn tell_events(&self, mut receiver: Registration) {
        let Some(address) = receiver.address.clone() else {
            return;
        };
        let (party, name) = (receiver.party.clone(), receiver.name.clone());
        let began = Instant::now();
        let next = self.store.party_events(&party, receiver.told, TURN.0);
        for event in rows_or_none(next.await) {
            if began.elapsed() >= TURN.1 {
                return;
            }
            // Just before each call: a party without a key is told nothing more, and an address that was taken back neither.
            match self.store.is_to_be_told(receiver.id, self.clock.micros()).await {
                Ok(true) => {}
                Ok(false) => {
                    info!(
                        party,
                        name,
                        "nothing more is told: the call-back was removed or replaced, or no key of its party works"
                    );
                    return;
                }
                Err(why) => {
                    warn!(error = %why, party, name, "it cannot be read whether events are still to be told");
                    return;
                }
            }
            let number = event.number;
            let body = EventBody::of(event, &self.address);
            let message = Message {
                address: &address,
                id: &body.id,
                content_type: "application/json",
                body: body.text(),
                secret: Some(&receiver.secret),
            };
            let failure = self.send(message).await.err();
            let now = self.clock.micros();
            let is_given_up = is_given_up(receiver.failing, now);
            match failure {
                None => info!(party, name, event = body.id, "an event was told"),
                Some(Failure::Failed(why)) if is_given_up => {
                    warn!(
                        party,
                        name,
                        event = body.id,
                        why,
                        "an event could not be told, and is not tried again"
                    );
                }
                Some(Failure::Failed(why)) => {
                    let (attempt, id) = (receiver.attempts + 1, receiver.id);
                    info!(
                        party,
                        name,
                        event = body.id,
                        attempt,
                        why,
                        "an event could not be told; it is tried again later"
                    );
                    let due = now + wait_after_attempts(receiver.attempts);
                    self.record(Outcome::Untold(id, due, now)).await;
                    return;
                }
                Some(Failure::Unwanted) => {
                    info!(
                        party,
                        name, "the address is gone: no event is told there any more"
                    );
                    self.record(Outcome::Gone(receiver.id)).await;
                    return;
                }
            }
            self.record(Outcome::Told(receiver.id, number, now)).await;
            (receiver.attempts, receiver.failing) = (0, None);
        }
    }

    /// Stores what becomes of a call. Where that fails, it tries again until it succeeds: otherwise the call would stay due, and be made
    /// again and again.
    async fn record(&self, outcome: Outcome) {
        let mut wait = RECORD_AGAIN.0;
        loop {
            let stored = match outcome {
                Outcome::Done(call) => self.store.forget_call_back(call).await,
                Outcome::Failed(call, due, now) => self.store.call_back_failed(call, due, now).await,
                Outcome::Told(receiver, number, now) => {
                    self.store.note_events_told(receiver, number, now).await
                }
                Outcome::Untold(receiver, due, now) => self.store.telling_failed(receiver, due, now).await,
                Outcome::Gone(receiver) => self.store.remove_registration(receiver).await,
            };
            let Err(why) = stored else { return };
            warn!(error = %why, "the result of a call is not stored yet");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RECORD_AGAIN.1);
        }
    }
}

/// Whether something that cannot be told since an instant, the first failure, is tried no more.
fn is_given_up(failing: Option<Micros>, now: Micros) -> bool {
    failing.is_some_and(|since| now - since >= GIVEN_UP_AFTER)
}

/// How long to wait after this many tries before the last one.
fn wait_after_attempts(attempts: u32) -> Micros {
    let doubled = RETRY.0.checked_shl(attempts.min(30)).unwrap_or(RETRY.1);
    doubled.clamp(RETRY.0, RETRY.1)
}

/// Why a call did not succeed.
enum Failure {
    /// Worth another try.
    Failed(String),
    /// The other end says that it is gone for good.
    Unwanted,
}

/// The rows that are due, or none where they cannot be read now.
fn rows_or_none<T>(read: Result<Vec<T>, store::Error>) -> Vec<T> {
    read.unwrap_or_else(|why| {
        warn!(error = %why, "the calls that are due cannot be read");
        Vec::new()
    })
}

/// What becomes of a call.
#[derive(Clone, Copy)]
enum Outcome {
    /// The call is made, or given up.
    Done(Uuid),
    /// The call is to be made again at the first of these times, and failed at the second.
    Failed(Uuid, Micros, Micros),
    /// A receiver was told its events up to this number, the last one at this time.
    Told(Uuid, i64, Micros),
    /// A receiver is to be told its next event again at the first of these times, and could not be told it at the second.
    Untold(Uuid, Micros, Micros),
    /// A receiver wants nothing more.
    Gone(Uuid),
}

/// A message of a call.
struct Message<'a> {
    address: &'a str,
    /// The same at each attempt.
    id: &'a str,
    content_type: &'static str,
    body: String,
    /// The secret that signs it, if there is one.
    secret: Option<&'a str>,
}

impl CallBacks {
    /// Makes a call, and answers its outcome.
    async fn send(&self, message: Message<'_>) -> Result<(), Failure> {
        let made = tokio::time::timeout(CALL_WAIT, self.make_call(message)).await;
        made.unwrap_or_else(|_| Err(Failure::Failed("no answer in time".to_owned())))
    }

    async fn make_call(&self, message: Message<'_>) -> Result<(), Failure> {
        let target = self.policy.resolved(message.address).await;
        let target = target.map_err(Failure::Failed)?;
        let client = target.client(|client| client.timeout(CALL_WAIT));
        let client = client.map_err(Failure::Failed)?;
        let second = second_of(self.clock.micros()).seconds();
        let sign = |secret| signature::sign_message(secret, message.id, second, &message.body);
        let signature = message.secret.and_then(sign);
        let mut request = client
            .post(target.url)
            .header(CONTENT_TYPE, message.content_type)
            .header("webhook-id", message.id)
            .header("webhook-timestamp", second);
        if let Some(signature) = signature {
            request = request.header("webhook-signature", signature);
        }
        let answer = request.body(message.body).send().await;
        let answer = answer.map_err(|why| Failure::Failed(transfer_error_in_words(&why)))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::GONE => Err(Failure::Unwanted),
            status => Err(Failure::Failed(format!("it answers {status}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_has_a_bounded_number_of_places_and_something_one() {
        let of = |party: &str| {
            Due::Events(Registration {
                id: Uuid::now_v7(),
                party: party.into(),
                name: "planner".into(),
                address: None,
                secret: String::new(),
                created: 0,
                told: 0,
                attempts: 0,
                failing: None,
                due: 0,
            })
        };
        let mut in_flight = InFlight::default();
        let one = of("physics");
        assert!(in_flight.take_place(&one) && !in_flight.take_place(&one));
        let more = (0..10).filter(|_| in_flight.take_place(&of("physics")));
        assert_eq!(more.count(), OF_EACH_MAX - 1);
        let others = (0..2 * AT_ONCE_MAX).filter(|number| in_flight.take_place(&of(&number.to_string())));
        assert_eq!(others.count(), AT_ONCE_MAX - OF_EACH_MAX);
        in_flight.0.remove(&one.id());
        assert!(in_flight.take_place(&of("physics")), "it is free again");
    }

    #[test]
    fn the_wait_doubles_up_to_an_hour() {
        assert_eq!(wait_after_attempts(0), MICROS_PER_SECOND);
        assert_eq!(wait_after_attempts(5), 32 * MICROS_PER_SECOND);
        assert_eq!(wait_after_attempts(12), RETRY.1);
        assert_eq!(wait_after_attempts(u32::MAX), RETRY.1);
    }
}
