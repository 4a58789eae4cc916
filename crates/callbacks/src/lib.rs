//! Calls to the outside: they report decisions and events to the clients that asked for that.
//!
//! A call about a decision is stored with the decision that it reports, and tried until it succeeds or is given up, over restarts. It
//! may arrive twice. A call that never arrives has a line in the log. The events of a party are stored with what they report, too; each
//! receiver has the number of the last event before which all were told, and is told the next ones several at a time, those of an
//! agreement in order. The other end is not trusted: only
//! addresses that may be reached are, no redirect is followed, and nothing of an answer but its status is read.

mod call_limits;
mod calls_under_way;
mod dropped_counts;
mod event_body;
mod event_queue;
mod receivers;
mod retries;
mod signature;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use call_limits::CallLimits;
use calls_under_way::CallsUnderWay;
pub use dropped_counts::DroppedCounts;
pub use event_body::{EventBody, EventData};
use event_queue::EventsAhead;
use retries::{is_given_up, wait_before_retry};
pub use signature::new_signing_secret;

use address::{Policy, error_without_address};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros, second_of};
use store::call_backs::{self, DueCallBack};
use store::registrations::{self, Registration};
use store::{Store, party_events};
use task::note_success;

/// How often to look for calls that are due.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a call may take, the name's address included.
const CALL_WAIT: Duration = Duration::from_secs(10);
/// Calls that are made at the same time, and decisions and receivers that have their turn at the same time.
const AT_ONCE_MAX: usize = 32;
/// The decisions and receivers of one party among those that have their turn.
const OF_EACH_MAX: usize = 4;
/// The calls of one party among those that are made. A single receiver may have all of them.
const CALLS_OF_EACH_MAX: usize = 8;
/// How long to wait before the outcome of a call is stored again after a failure, at first and at most; it doubles in between.
const RECORD_AGAIN: (Duration, Duration) = (LOOK_EVERY, Duration::from_secs(8));
/// For how long events are kept, to be told again.
const EVENTS_KEPT: Micros = 30 * 24 * 3_600 * MICROS_PER_SECOND;
/// How often older events are removed, and what is known of receivers that are no more.
const FORGET_EVERY: Duration = Duration::from_hours(1);

/// Makes the calls that are stored.
#[derive(Debug, Clone)]
pub struct CallBacks {
    store: Store,
    clock: Clock,
    policy: Policy,
    /// The address of the service.
    address: Arc<str>,
    /// What receivers were told beyond their cursors, by their ids.
    ahead: Arc<Mutex<BTreeMap<Uuid, EventsAhead>>>,
    places: Arc<CallLimits>,
    dropped: DroppedCounts,
}

/// Something that is to be told.
enum DueCall {
    /// A decision.
    Call(DueCallBack),
    /// The next events of a party.
    Events(Registration),
}

impl CallBacks {
    /// Of a store, to addresses that `policy` allows, from a service with an address.
    pub fn new(store: Store, clock: Clock, policy: Policy, address: Arc<str>) -> Self {
        Self {
            store,
            clock,
            policy,
            address,
            ahead: Arc::default(),
            places: Arc::default(),
            dropped: DroppedCounts::default(),
        }
    }

    /// What could not be told.
    pub fn dropped(&self) -> DroppedCounts {
        self.dropped.clone()
    }

    /// Makes calls until `stop`. A call that is being made then is made again later.
    pub async fn run(self, stop: CancellationToken) {
        let mut calls: JoinSet<()> = JoinSet::new();
        let mut ids: HashMap<tokio::task::Id, Uuid> = HashMap::new();
        let mut in_flight = CallsUnderWay::default();
        let mut forget = tokio::time::interval(FORGET_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(ended) = calls.join_next_with_id() => {
                    // Where it has panicked, it has another turn.
                    let task = ended.map_or_else(|why| why.id(), |(task, ())| task);
                    if let Some(id) = ids.remove(&task) {
                        in_flight.free_place(id);
                    }
                }
                _ = forget.tick() => {
                    let before = self.clock.micros() - EVENTS_KEPT;
                    if let Err(why) = party_events::forget_party_events(&self.store, before).await {
                        warn!(error = %why, "old events of parties were not forgotten");
                    }
                    self.forget_receivers().await;
                }
                () = tokio::time::sleep(LOOK_EVERY), if !in_flight.is_full() => {
                    for (id, party, due) in self.due().await {
                        if in_flight.take_place(id, &party) {
                            let this = self.clone();
                            let task = calls.spawn(async move {
                                match due {
                                    DueCall::Call(call) => this.tell(call).await,
                                    DueCall::Events(receiver) => this.tell_receiver_events(receiver).await,
                                }
                            });
                            ids.insert(task.id(), id);
                        }
                    }
                }
            }
        }
    }

    /// What is due, with its id and its party, decisions and events by turns: neither keeps the other waiting.
    async fn due(&self) -> Vec<(Uuid, String, DueCall)> {
        // More than are made at once, so that calls in flight hide no others.
        let [limit, of_each] =
            [2 * AT_ONCE_MAX, OF_EACH_MAX].map(|each| u32::try_from(each).unwrap_or(u32::MAX));
        let now = self.clock.micros();
        let calls = call_backs::call_backs_due(&self.store, now, limit, of_each).await;
        let receivers = registrations::registrations_due(&self.store, now, limit, of_each).await;
        if calls.is_ok() && receivers.is_ok() {
            note_success();
        }
        let calls = due_call_rows(calls).into_iter();
        let mut calls = calls.map(|due| (due.call.id, due.party.clone(), DueCall::Call(due)));
        let receivers = due_call_rows(receivers).into_iter();
        let mut receivers = receivers.map(|due| (due.id, due.party.clone(), DueCall::Events(due)));
        let pairs = std::iter::from_fn(|| {
            let pair = [calls.next(), receivers.next()];
            pair.iter().any(Option::is_some).then_some(pair)
        });
        pairs.flatten().flatten().collect()
    }

    /// Makes a call and stores its outcome.
    async fn tell(
        &self,
        DueCallBack {
            call, secret, party, ..
        }: DueCallBack,
    ) {
        let message = Message {
            id: &format!("msg_{}", call.id.simple()),
            content_type: "application/xml; charset=utf-8",
            body: call.body.clone(),
            secret: secret.as_deref(),
        };
        let line = self.line_to(&call.address).await;
        let result = {
            let _place = self.places.take(&party).await;
            self.send(line.as_ref(), message).await
        };
        let (agreement, now) = (call.agreement, self.clock.micros());
        let is_given_up = is_given_up((call.attempts > 0).then_some(call.since), now);
        if matches!(result, Err(Failure::Failed(_))) && !is_given_up {
            let due = now + wait_before_retry(call.attempts);
            self.record(|| call_backs::postpone_call_back(&self.store, call.id, due, now))
                .await;
        } else {
            self.record(|| call_backs::forget_call_back(&self.store, call.id))
                .await;
        }
        let attempt = call.attempts + 1;
        match result {
            Ok(()) => info!(%agreement, attempt, "a decision was told"),
            Err(Failure::Unwanted) => {
                info!(%agreement, attempt, "the address does not want the decision any more");
            }
            Err(Failure::Failed(why)) if is_given_up => {
                warn!(%agreement, attempt, why, "a decision could not be told, and is not tried again");
                self.dropped.count_decision();
            }
            Err(Failure::Failed(why)) => {
                info!(%agreement, attempt, why, "a decision could not be told; it is tried again later");
            }
        }
    }

    /// Stores what becomes of a call. Where that fails, it tries again until it succeeds: otherwise the call would stay due, and be made
    /// again and again.
    async fn record<S: Future<Output = Result<(), store::Error>>>(&self, store_outcome: impl Fn() -> S) {
        let mut wait = RECORD_AGAIN.0;
        while let Err(why) = store_outcome().await {
            warn!(error = %why, "the result of a call is not stored yet");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RECORD_AGAIN.1);
        }
    }
}

/// Why a call did not succeed.
enum Failure {
    /// Worth another try.
    Failed(String),
    /// The other end says that it is gone for good.
    Unwanted,
}

/// The rows that are due, or none where they cannot be read now.
fn due_call_rows<T>(read: Result<Vec<T>, store::Error>) -> Vec<T> {
    read.unwrap_or_else(|why| {
        warn!(error = %why, "the calls that are due cannot be read");
        Vec::new()
    })
}

/// A message of a call.
struct Message<'a> {
    /// The same at each attempt.
    id: &'a str,
    content_type: &'static str,
    body: String,
    /// The secret that signs it, if there is one.
    secret: Option<&'a str>,
}

/// The way to an address that may be called.
struct CallClient {
    url: Url,
    client: Client,
}

impl CallBacks {
    /// The way to an address, or why there is none.
    async fn line_to(&self, address: &str) -> Result<CallClient, String> {
        let resolved = tokio::time::timeout(CALL_WAIT, self.policy.resolved(address)).await;
        let target = resolved.unwrap_or_else(|_| Err("its host is not found in time".to_owned()))?;
        // Connections are kept for no other call: each takes a descriptor.
        let client = target.client(|client| client.timeout(CALL_WAIT).pool_max_idle_per_host(0))?;
        let url = target.url;
        Ok(CallClient { url, client })
    }

    /// Makes a call that has a place, and answers its outcome.
    async fn send(&self, line: Result<&CallClient, &String>, message: Message<'_>) -> Result<(), Failure> {
        let line = line.map_err(|why| Failure::Failed(why.clone()))?;
        let made = tokio::time::timeout(CALL_WAIT, self.make_call(line, message)).await;
        made.unwrap_or_else(|_| Err(Failure::Failed("no answer in time".to_owned())))
    }

    async fn make_call(&self, line: &CallClient, message: Message<'_>) -> Result<(), Failure> {
        let second = second_of(self.clock.micros()).seconds();
        let sign = |secret| signature::sign_message(secret, message.id, second, &message.body);
        let signature = message.secret.and_then(sign);
        let mut request = line
            .client
            .post(line.url.clone())
            .header(CONTENT_TYPE, message.content_type)
            .header("webhook-id", message.id)
            .header("webhook-timestamp", second);
        if let Some(signature) = signature {
            request = request.header("webhook-signature", signature);
        }
        let answer = request.body(message.body).send().await;
        let answer = answer.map_err(|why| Failure::Failed(error_without_address(&why)))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::GONE => Err(Failure::Unwanted),
            status => Err(Failure::Failed(format!("it answers {status}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use store::keys::{self, KeyRow};

    use super::*;

    fn registration(party: &str) -> Registration {
        Registration {
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
        }
    }

    #[tokio::test]
    async fn what_is_known_of_a_receiver_is_forgotten_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("bespeak.db").display());
        let store = Store::open(&url).await.unwrap();
        let key = KeyRow {
            id: Uuid::now_v7(),
            digest: "digest".into(),
            party: "physics".into(),
            role: domain::access::Role::Consumer,
            label: None,
            created: 0,
            expires: None,
            revoked: None,
            read_only: false,
            spending_cap: None,
        };
        keys::add_key(&store, &key, None).await.unwrap();
        let there = registration("physics");
        assert!(
            registrations::put_registration(&store, there.clone(), 1)
                .await
                .unwrap()
        );
        let policy = Policy {
            private_addresses: true,
        };
        let calls = CallBacks::new(store, Clock::standing_at(0), policy, "http://localhost".into());
        let ahead = || calls.ahead.lock().unwrap();
        ahead().extend([there.id, Uuid::now_v7()].map(|id| (id, EventsAhead::default())));
        calls.forget_receivers().await;
        assert!(ahead().keys().eq([&there.id]));
    }
}
